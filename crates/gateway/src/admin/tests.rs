//! The routes against `openapi.json`: each is described, and nothing else is.

use std::collections::{BTreeMap, BTreeSet};

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request};
use serde_json::Value;
use tower_service::Service as _;

use super::*;

fn described() -> Value {
    serde_json::from_str(include_str!("../../openapi.json")).unwrap()
}

fn router() -> Router {
    alone::router().unwrap()
}

async fn ask(router: &mut Router, method: &str, path: &str, body: &str) -> Response {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .body(Body::from(body.to_owned()))
        .unwrap();
    router.call(request).await.unwrap()
}

async fn json_of(answer: Response) -> Value {
    assert_eq!(answer.headers()[CONTENT_TYPE], "application/json");
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    serde_json::from_slice(&body).unwrap()
}

#[tokio::test]
async fn every_route_is_described_with_its_methods_and_nothing_else_is() {
    let mut router = router();
    let unguarded = unguarded().map(|(path, _)| path);
    let guarded = guarded().map(|(path, _)| path);
    let methods = [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
        Method::TRACE,
    ];
    let mut served = BTreeMap::new();
    for path in unguarded.iter().chain(&guarded) {
        let mut taken = BTreeSet::new();
        for method in &methods {
            let answer = ask(
                &mut router,
                method.as_str(),
                &path.replace("{name}", "a").replace("{file}", "app.js"),
                "",
            )
            .await;
            if answer.status() == StatusCode::METHOD_NOT_ALLOWED {
                assert!(json_of(answer).await["error"].is_string());
            } else {
                taken.insert(method.as_str().to_lowercase());
            }
        }
        served.insert((*path).to_owned(), taken);
    }
    let paths = &described()["paths"];
    let described = paths.as_object().unwrap().iter().map(|(path, methods)| {
        let methods = methods.as_object().unwrap().keys().cloned();
        (path.clone(), methods.collect::<BTreeSet<_>>())
    });
    assert_eq!(served, described.collect());
    for path in unguarded {
        let security = &paths[path]["get"]["security"];
        assert_eq!(security.as_array().map(Vec::len), Some(0), "{path}");
    }
}

#[tokio::test]
async fn what_is_answered_has_the_keys_that_are_described() {
    let mut router = router();
    let schemas = &described()["components"]["schemas"];
    let ensure = |name: &str, value: &Value| {
        let keys = |object: &Value| -> BTreeSet<String> {
            let object = object
                .as_object()
                .unwrap_or_else(|| panic!("{name}: {object}"));
            object.keys().cloned().collect()
        };
        assert_eq!(keys(value), keys(&schemas[name]["properties"]), "{name}");
    };
    let command = r#"{"to":"open","for":"1h30m","note":"n"}"#;
    let detail = json_of(ask(&mut router, "POST", "/breakers/a/force", command).await).await;
    ensure("Detail", &detail);
    ensure("Why", &detail["why"]);
    ensure("Why", &detail["history"][0]);
    ensure("Rule", &detail["rules"][0]);
    let list = json_of(ask(&mut router, "GET", "/breakers", "").await).await;
    ensure("Breaker", &list[0]);
    let config = json_of(ask(&mut router, "GET", "/config", "").await).await;
    ensure("Config", &config);
    ensure("Entry", &config["entries"][0]);
    assert!(!config.to_string().contains("canary"), "{config}");
    let refused = ask(&mut router, "POST", "/reload", "").await;
    assert_eq!(refused.status(), StatusCode::CONFLICT);
    ensure("NotReloaded", &json_of(refused).await);
    let released = json_of(ask(&mut router, "POST", "/release", "").await).await;
    ensure("Released", &released);
    assert_eq!(released["released"], 1);
    ensure(
        "Reset",
        &json_of(ask(&mut router, "POST", "/reset", "").await).await,
    );
    let all = described();
    assert_eq!(
        json_of(ask(&mut router, "GET", "/openapi.json", "").await).await,
        all
    );
}

#[tokio::test]
async fn whatever_is_wrong_is_told_as_json() {
    let mut router = router();
    let long = "x".repeat(MAX_COMMAND + 1);
    for (method, path, body, status) in [
        ("GET", "/nowhere", "", 404),
        ("GET", "/breakers/nobody", "", 404),
        ("GET", "/breakers/%FF", "", 400),
        ("POST", "/breakers/a/force", "{", 400),
        ("POST", "/breakers/a/force", &long, 413),
        ("DELETE", "/breakers", "", 405),
    ] {
        let answer = ask(&mut router, method, path, body).await;
        assert_eq!(answer.status().as_u16(), status, "{method} {path}");
        let allow = answer.headers().get(ALLOW).cloned();
        assert_eq!(allow.is_some(), status == 405);
        let told = json_of(answer).await;
        ensure_error(&told);
    }
}

fn ensure_error(told: &Value) {
    let told = told.as_object().unwrap();
    assert!(told.len() == 1 && told["error"].is_string(), "{told:?}");
}
