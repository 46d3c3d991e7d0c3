//! `GET /config` and `POST /reload`: what is in force, and reading it anew; and the description of all that is here.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Json, Response};
use serde_json::json;

use super::Admin;
use crate::live::ReloadError;

/// What this listener can be asked, for people and for tools.
const OPENAPI: &str = include_str!("../../openapi.json");

pub(super) async fn openapi() -> Response {
    ([(CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

/// Every key with the value that holds, and where it comes from.
pub(super) async fn show(State(admin): State<Admin>) -> Response {
    let proxy = admin.proxy();
    Json(json!({ "entries": proxy.config().entries() })).into_response()
}

pub(super) async fn reload(State(admin): State<Admin>) -> Response {
    let error = match admin.0.live.reload().await {
        Ok(reloaded) => return Json(reloaded).into_response(),
        Err(error) => error,
    };
    let why = error.to_string();
    let (status, findings) = match error {
        ReloadError::NoSource => (StatusCode::CONFLICT, Vec::new()),
        ReloadError::Mistakes(findings) => (StatusCode::UNPROCESSABLE_ENTITY, findings),
        ReloadError::Build(_) | ReloadError::Unread => {
            (StatusCode::UNPROCESSABLE_ENTITY, Vec::new())
        }
    };
    let told = Json(json!({ "error": why, "findings": findings }));
    (status, told).into_response()
}
