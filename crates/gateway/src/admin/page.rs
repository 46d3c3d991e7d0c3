//! The dashboard: a page, its styles and its scripts, as they stand in `page/`. There is nothing secret in them, so that they
//! ask for no token; what they show is asked for by the page itself.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Response};

use super::refusal;

const PAGE: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const ICON: &str = "image/svg+xml";

/// Nothing but our own files, no code in texts, nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Name, type and text of what the page asks for.
const FILES: [(&str, &str, &str); 15] = [
    ("base.css", STYLE, include_str!("page/base.css")),
    ("board.css", STYLE, include_str!("page/board.css")),
    ("detail.css", STYLE, include_str!("page/detail.css")),
    ("app.js", SCRIPT, include_str!("page/app.js")),
    ("board.js", SCRIPT, include_str!("page/board.js")),
    ("chart.js", SCRIPT, include_str!("page/chart.js")),
    ("commands.js", SCRIPT, include_str!("page/commands.js")),
    ("detail.js", SCRIPT, include_str!("page/detail.js")),
    ("dom.js", SCRIPT, include_str!("page/dom.js")),
    ("link.js", SCRIPT, include_str!("page/link.js")),
    ("log.js", SCRIPT, include_str!("page/log.js")),
    ("model.js", SCRIPT, include_str!("page/model.js")),
    ("summary.js", SCRIPT, include_str!("page/summary.js")),
    ("words.js", SCRIPT, include_str!("page/words.js")),
    ("icon.svg", ICON, include_str!("page/icon.svg")),
];

/// `GET /`.
pub(super) async fn index() -> Response {
    answer(PAGE, include_str!("page/index.html"))
}

/// `GET /ui/{file}`.
pub(super) async fn file(Path(name): Path<String>) -> Response {
    match FILES.iter().find(|(file, ..)| *file == name) {
        Some((_, kind, text)) => answer(kind, text),
        None => refusal(
            StatusCode::NOT_FOUND,
            &format!("the dashboard has no file {name:?}; it is at /"),
        ),
    }
}

fn answer(kind: &'static str, text: &'static str) -> Response {
    let headers: [(HeaderName, &str); 5] = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        // Another version of the program may answer next time.
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}
