//! The circuit breaker for LLM calls, as a drop-in gateway.

mod admin;
mod caller;
pub mod cli;
pub mod config;
mod crew;
mod door;
mod fleet;
mod live;
pub mod log;
mod observe;
mod otlp;
mod proxy;
mod queue;
mod server;
mod shutdown;
mod state;
mod token;
mod traffic;
mod view;
mod webhook;

pub use crew::Crew;
pub use live::{ReloadError, Reloaded};
pub use proxy::BuildError;
pub use server::{Gateway, StartError};

/// The admin listener's routes without a listener, for the fuzzer alone.
///
/// # Errors
/// Never: the configuration that it stands on is fixed.
#[cfg(fuzzing)]
pub fn admin_router() -> anyhow::Result<axum::Router> {
    admin::alone::router()
}
