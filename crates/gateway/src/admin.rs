//! The admin listener: health, readiness, metrics and the breakers as they stand.

mod breakers;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use secrecy::SecretString;

use crate::fleet::Gauge;
use crate::proxy::Proxy;
use crate::shutdown::Tasks;
use crate::state::Meter;
use crate::token;

/// What the admin listener looks at.
#[derive(Clone)]
pub(crate) struct Admin(Arc<Seen>);

struct Seen {
    proxy: Arc<Proxy>,
    tasks: Tasks,
    token: Option<SecretString>,
    meter: Meter,
    gauge: Gauge,
}

impl Admin {
    pub(crate) fn new(
        proxy: Arc<Proxy>,
        tasks: Tasks,
        token: Option<SecretString>,
        meter: Meter,
        gauge: Gauge,
    ) -> Self {
        Self(Arc::new(Seen {
            proxy,
            tasks,
            token,
            meter,
            gauge,
        }))
    }
}

/// The routes. Health and readiness are for those who watch over the process, and ask for no token.
pub(crate) fn router(admin: Admin) -> Router {
    let guarded = Router::new()
        .route("/metrics", get(metrics))
        .route("/breakers", get(list))
        .layer(from_fn_with_state(admin.clone(), ask_for_token));
    Router::new()
        .route("/healthz", get("ok"))
        .route("/readyz", get(ready))
        .merge(guarded)
        .with_state(admin)
}

async fn ask_for_token(State(admin): State<Admin>, request: Request, next: Next) -> Response {
    let shown = request
        .headers()
        .get(AUTHORIZATION)
        .map_or(&b""[..], |value| value.as_bytes());
    if admin
        .0
        .token
        .as_ref()
        .is_none_or(|expected| token::matches(expected, token::bearer(shown)))
    {
        return next.run(request).await;
    }
    (
        StatusCode::UNAUTHORIZED,
        "this listener asks for `authorization: Bearer` with `admin_token`\n",
    )
        .into_response()
}

async fn ready(State(admin): State<Admin>) -> (StatusCode, &'static str) {
    if admin.0.tasks.is_draining() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining")
    } else {
        (StatusCode::OK, "ready")
    }
}

async fn metrics(State(admin): State<Admin>) -> Response {
    let (registry, kept) = (admin.0.proxy.registry(), admin.0.meter.read());
    match fuseline_telemetry::metrics_page(registry, kept, admin.0.gauge.read()) {
        Ok(page) => ([(CONTENT_TYPE, fuseline_telemetry::CONTENT_TYPE)], page).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn list(State(admin): State<Admin>) -> Json<Vec<breakers::View>> {
    let registry = admin.0.proxy.registry();
    let now = registry.now();
    Json(
        registry
            .breakers()
            .iter()
            .map(|breaker| breakers::View::of(&breaker.snapshot(now)))
            .collect(),
    )
}
