//! The admin listener: health, readiness, metrics, the breakers as they stand and as they change, the operator's hand, and a
//! page that shows it all.
//!
//! A breaker's name is one segment of a path: `openai%2Fgpt-5` is the model `gpt-5` at `openai`, `openai%23key` a key.

mod commands;
mod door;
mod events;
mod page;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use fuseline_core::{Breaker, Tick};
use secrecy::SecretString;
use serde_json::json;

use crate::fleet::Gauge;
use crate::observe::Feed;
use crate::proxy::Proxy;
use crate::queue::Desk;
use crate::shutdown::Tasks;
use crate::state::Meter;
use crate::view::{Detail, View};
use commands::{Force, Notes};
use events::Seats;

/// Longest command taken, in bytes.
const MAX_COMMAND: usize = 16 << 10;

/// What the admin listener looks at.
#[derive(Clone)]
pub(crate) struct Admin(Arc<Seen>);

struct Seen {
    proxy: Arc<Proxy>,
    tasks: Tasks,
    token: Option<SecretString>,
    seats: Seats,
    notes: Notes,
    meter: Meter,
    gauge: Gauge,
}

impl Admin {
    pub(crate) fn new(
        proxy: Arc<Proxy>,
        tasks: Tasks,
        feed: Feed,
        token: Option<SecretString>,
        meter: Meter,
        gauge: Gauge,
    ) -> Self {
        Self(Arc::new(Seen {
            proxy,
            tasks,
            token,
            seats: Seats::new(feed),
            notes: Notes::default(),
            meter,
            gauge,
        }))
    }

    fn now(&self) -> Tick {
        self.0.proxy.registry().now()
    }

    /// Does something to the breaker of this name, and shows it afterwards.
    fn with(&self, name: &str, act: impl FnOnce(&Breaker, Tick) -> Result<(), String>) -> Response {
        let now = self.now();
        let elsewhere = || {
            let troubled = self.0.gauge.troubled();
            let named = troubled.iter().find(|one| one.to_string() == name)?;
            self.0.proxy.shared_breaker(named, now)
        };
        let Some(breaker) = self.0.proxy.breaker(name, now).or_else(elsewhere) else {
            let why = format!(
                "no breaker is called {name:?}, nor a provider or a model of one; GET /breakers lists them"
            );
            return refusal(StatusCode::NOT_FOUND, &why);
        };
        match act(&breaker, now) {
            Ok(()) => self.shown(&breaker, now),
            Err(why) => refusal(StatusCode::BAD_REQUEST, &why),
        }
    }

    fn shown(&self, breaker: &Breaker, now: Tick) -> Response {
        let note = self.0.notes.read(breaker, now);
        Json(Detail::of(breaker, note, self.0.proxy.metrics(), now)).into_response()
    }
}

/// The routes. Health and readiness are for those who watch over the process, and ask for no token; nor does the page, which
/// asks its reader for it.
pub(crate) fn router(admin: Admin) -> Router {
    let guarded = Router::new()
        .route("/metrics", get(metrics))
        .route("/breakers", get(list))
        .route("/breakers/{name}", get(one))
        .route("/breakers/{name}/force", post(force))
        .route("/breakers/{name}/release", post(release))
        .route("/breakers/{name}/reset", post(reset))
        .route("/reset", post(reset_all))
        .route("/events", get(events))
        .layer(DefaultBodyLimit::max(MAX_COMMAND))
        .layer(from_fn_with_state(admin.clone(), door::ask));
    Router::new()
        .route("/", get(page::index))
        .route("/ui/{file}", get(page::file))
        .route("/healthz", get("ok"))
        .route("/readyz", get(ready))
        .merge(guarded)
        .with_state(admin)
}

/// An answer that says why there is none.
fn refusal(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({ "error": why }))).into_response()
}

async fn ready(State(admin): State<Admin>) -> (StatusCode, &'static str) {
    if admin.0.tasks.is_draining() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining")
    } else {
        (StatusCode::OK, "ready")
    }
}

async fn metrics(State(admin): State<Admin>) -> Response {
    let (kept, fleet) = (admin.0.meter.read(), admin.0.gauge.read());
    let queue = admin.0.proxy.desk().map(Desk::state);
    match admin.0.proxy.metrics().page(kept, fleet, queue) {
        Ok(page) => ([(CONTENT_TYPE, fuseline_telemetry::CONTENT_TYPE)], page).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn list(State(admin): State<Admin>) -> Json<Vec<View>> {
    let now = admin.now();
    let breakers = admin.0.proxy.registry().breakers();
    Json(
        breakers
            .iter()
            .map(|breaker| View::of(&breaker.snapshot(now), admin.0.proxy.metrics()))
            .collect(),
    )
}

async fn one(State(admin): State<Admin>, Path(name): Path<String>) -> Response {
    let registry = admin.0.proxy.registry().breakers();
    match registry
        .iter()
        .find(|breaker| breaker.name().to_string() == name)
    {
        Some(breaker) => admin.shown(breaker, admin.now()),
        None => refusal(
            StatusCode::NOT_FOUND,
            &format!("no breaker is called {name:?} so far; GET /breakers lists them"),
        ),
    }
}

async fn force(State(admin): State<Admin>, Path(name): Path<String>, command: Bytes) -> Response {
    let command: Force = match serde_json::from_slice(&command) {
        Ok(command) => command,
        Err(error) => {
            let why = format!(
                "{error}; write {{\"to\": \"open\" or \"closed\", \"for\": \"10m\", \"note\": \"...\"}}"
            );
            return refusal(StatusCode::BAD_REQUEST, &why);
        }
    };
    admin.with(&name, |breaker, now| {
        command.carry_out(breaker, &admin.0.notes, now)
    })
}

async fn release(State(admin): State<Admin>, Path(name): Path<String>) -> Response {
    admin.with(&name, |breaker, now| {
        commands::release(breaker, now);
        Ok(())
    })
}

async fn reset(State(admin): State<Admin>, Path(name): Path<String>) -> Response {
    admin.with(&name, |breaker, now| {
        commands::reset(breaker, now);
        Ok(())
    })
}

async fn reset_all(State(admin): State<Admin>) -> Response {
    let now = admin.now();
    // Those, too, that only other replicas know.
    for name in admin.0.gauge.troubled() {
        drop(admin.0.proxy.shared_breaker(&name, now));
    }
    let reset = commands::reset_all(admin.0.proxy.registry());
    Json(json!({ "reset": reset })).into_response()
}

async fn events(State(admin): State<Admin>, RawQuery(query): RawQuery) -> Response {
    let registry = admin.0.proxy.registry();
    admin.0.seats.listen(query.as_deref(), registry)
}
