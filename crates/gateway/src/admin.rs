//! The admin listener: health, readiness, metrics, the breakers as they stand and as they change, the operator's hand, and a
//! page that shows it all.
//!
//! A breaker's name is one segment of a path: `openai%2Fgpt-5` is the model `gpt-5` at `openai`, `openai%23key` a key.

#[cfg(any(test, fuzzing))]
pub(crate) mod alone;
mod commands;
mod configuration;
mod door;
mod events;
mod page;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{MethodRouter, get, post};
use fuseline_core::{Breaker, Tick};
use serde_json::json;

use crate::fleet::Gauge;
use crate::live::Live;
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
    live: Arc<Live>,
    tasks: Tasks,
    seats: Seats,
    notes: Notes,
    meter: Meter,
    gauge: Gauge,
}

impl Admin {
    pub(crate) fn new(
        live: Arc<Live>,
        tasks: Tasks,
        feed: Feed,
        meter: Meter,
        gauge: Gauge,
    ) -> Self {
        Self(Arc::new(Seen {
            live,
            tasks,
            seats: Seats::new(feed),
            notes: Notes::default(),
            meter,
            gauge,
        }))
    }

    /// Who serves the next call.
    fn proxy(&self) -> Arc<Proxy> {
        self.0.live.proxy()
    }

    fn now(&self) -> Tick {
        self.proxy().registry().now()
    }

    /// Does something to the breaker of this name, and shows it afterwards.
    fn with(&self, name: &str, act: impl FnOnce(&Breaker, Tick) -> Result<(), String>) -> Response {
        let now = self.now();
        let proxy = self.proxy();
        let elsewhere = || {
            let troubled = self.0.gauge.troubled();
            let named = troubled.iter().find(|one| one.to_string() == name)?;
            proxy.shared_breaker(named, now)
        };
        let Some(breaker) = proxy.breaker(name, now).or_else(elsewhere) else {
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
        Json(Detail::of(breaker, note, self.proxy().metrics(), now)).into_response()
    }
}

/// The routes. Health and readiness are for those who watch over the process, and ask for no token; nor does the page, which
/// asks its reader for it.
pub(crate) fn router(admin: Admin) -> Router {
    let guarded = routes_of(guarded())
        .layer(DefaultBodyLimit::max(MAX_COMMAND))
        .layer(from_fn_with_state(admin.clone(), door::ask));
    routes_of(unguarded())
        .merge(guarded)
        .layer(map_response(in_words))
        .with_state(admin)
}

fn routes_of<const N: usize>(routes: [(&str, MethodRouter<Admin>); N]) -> Router<Admin> {
    let add = |router: Router<Admin>, (path, methods)| router.route(path, methods);
    routes.into_iter().fold(Router::new(), add)
}

/// What `openapi.json` describes, these and the following.
fn unguarded() -> [(&'static str, MethodRouter<Admin>); 4] {
    [
        ("/", get(page::index)),
        ("/ui/{file}", get(page::file)),
        ("/healthz", get("ok")),
        ("/readyz", get(ready)),
    ]
}

fn guarded() -> [(&'static str, MethodRouter<Admin>); 12] {
    [
        ("/openapi.json", get(configuration::openapi)),
        ("/metrics", get(metrics)),
        ("/breakers", get(list)),
        ("/breakers/{name}", get(one)),
        ("/breakers/{name}/force", post(force)),
        ("/breakers/{name}/release", post(release)),
        ("/breakers/{name}/reset", post(reset)),
        ("/release", post(release_all)),
        ("/reset", post(reset_all)),
        ("/events", get(events)),
        ("/config", get(configuration::show)),
        ("/reload", post(configuration::reload)),
    ]
}

/// Whatever is wrong with a request is told as JSON, by whomever it was found out.
async fn in_words(mut answer: Response) -> Response {
    let kind = answer.headers().get(CONTENT_TYPE);
    let is_told = kind.is_some_and(|kind| kind == "application/json");
    if is_told || !answer.status().is_client_error() {
        return answer;
    }
    let why = match answer.status() {
        StatusCode::NOT_FOUND => "nothing is here; GET /openapi.json tells what is".to_owned(),
        StatusCode::METHOD_NOT_ALLOWED => "this path takes other methods; see `allow`".to_owned(),
        StatusCode::PAYLOAD_TOO_LARGE => format!("a command has at most {MAX_COMMAND} bytes"),
        _ => "the request cannot be read".to_owned(),
    };
    let (mut told, body) = refusal(answer.status(), &why).into_parts();
    told.headers.extend(
        answer
            .headers_mut()
            .remove(ALLOW)
            .map(|allow| (ALLOW, allow)),
    );
    Response::from_parts(told, body)
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
    let proxy = admin.proxy();
    let queue = proxy.desk().map(Desk::state);
    match proxy.metrics().page(kept, fleet, queue) {
        Ok(page) => ([(CONTENT_TYPE, fuseline_telemetry::CONTENT_TYPE)], page).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn list(State(admin): State<Admin>) -> Json<Vec<View>> {
    let now = admin.now();
    let breakers = admin.proxy().registry().breakers();
    Json(
        breakers
            .iter()
            .map(|breaker| View::of(&breaker.snapshot(now), admin.proxy().metrics()))
            .collect(),
    )
}

async fn one(State(admin): State<Admin>, Path(name): Path<String>) -> Response {
    let registry = admin.proxy().registry().breakers();
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

async fn release_all(State(admin): State<Admin>) -> Response {
    let released = commands::release_all(admin.proxy().registry());
    Json(json!({ "released": released })).into_response()
}

async fn reset_all(State(admin): State<Admin>) -> Response {
    let (proxy, now) = (admin.proxy(), admin.now());
    // Those, too, that only other replicas know.
    for name in admin.0.gauge.troubled() {
        drop(proxy.shared_breaker(&name, now));
    }
    let reset = commands::reset_all(proxy.registry());
    Json(json!({ "reset": reset })).into_response()
}

async fn events(State(admin): State<Admin>, RawQuery(query): RawQuery) -> Response {
    let proxy = admin.proxy();
    admin.0.seats.listen(query.as_deref(), proxy.registry())
}
