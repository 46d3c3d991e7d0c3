//! The stream guard in virtual time: every ending in every dialect, the bytes that go on, and how others failed.

mod endings;
mod error_events;
pub(crate) mod identity;
mod reports;
mod run;
mod speech;
mod timers;
