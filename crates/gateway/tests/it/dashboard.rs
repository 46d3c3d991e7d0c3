//! The dashboard's files, and the past that it asks for. What it does with them is shown by a browser, in `tests/sdk`.

use fuseline_mock::{Mock, Reply};
use serde_json::Value;

use crate::support::{chat, gateway, get, open, openai, post, route, send, within};
use http_body_util::BodyExt as _;

/// A gateway that asks for a token.
async fn guarded() -> fuseline_gateway::Gateway {
    let provider = openai("a", "http://127.0.0.1:9");
    gateway(&format!("admin_token = \"t\"\n{provider}{}", route(&["a"]))).await
}

/// What stands between two marks, each time.
fn between<'t>(text: &'t str, before: &str, after: &str) -> Vec<&'t str> {
    let parts = text.split(before).skip(1);
    parts
        .filter_map(|part| Some(part.split_once(after)?.0))
        .collect()
}

#[tokio::test]
async fn the_page_and_all_that_it_names_are_served_without_a_token_and_under_a_strict_policy() {
    let gateway = guarded().await;
    let page = send(gateway.admin_addr(), get("/")).await;
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    let text = std::str::from_utf8(&page.body).unwrap().to_owned();
    let mut wanted: Vec<_> = ["href=\"", "src=\""]
        .iter()
        .flat_map(|mark| between(&text, mark, "\""))
        .filter(|link| !link.starts_with('#'))
        .map(|link| link.strip_prefix("ui/").unwrap().to_owned())
        .collect();
    let mut seen = Vec::new();
    while let Some(name) = wanted.pop() {
        if seen.contains(&name) {
            continue;
        }
        let file = send(gateway.admin_addr(), get(&format!("/ui/{name}"))).await;
        assert_eq!(file.status, 200, "{name}");
        let policy = file.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"));
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(file.header("x-content-type-options"), "nosniff");
        let kind = match name.rsplit_once('.').unwrap().1 {
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            _ => "image/svg+xml",
        };
        assert_eq!(file.header("content-type"), kind, "{name}");
        let text = std::str::from_utf8(&file.body).unwrap();
        for forbidden in [
            "innerHTML",
            "outerHTML",
            "insertAdjacent",
            "eval(",
            "https://",
        ] {
            assert!(!text.contains(forbidden), "{name} has {forbidden}");
        }
        assert!(text.lines().count() < 300, "{name} is long");
        wanted.extend(
            between(text, "from \"./", "\"")
                .into_iter()
                .map(str::to_owned),
        );
        seen.push(name);
    }
    assert_eq!(seen.len(), 15, "every file is asked for: {seen:?}");
    for forbidden in [" style=", " onclick=", "<style", "<script>"] {
        assert!(!text.contains(forbidden), "{forbidden}");
    }
}

#[tokio::test]
async fn what_is_no_file_of_the_page_is_not_found_and_data_still_asks_for_the_token() {
    let gateway = guarded().await;
    for path in ["/ui/nothing.js", "/ui/..%2F..%2FCargo.toml"] {
        assert_eq!(
            send(gateway.admin_addr(), get(path)).await.status,
            404,
            "{path}"
        );
    }
    assert_eq!(send(gateway.admin_addr(), post("/", "")).await.status, 405);
    for path in ["/breakers", "/events?past=5"] {
        assert_eq!(
            send(gateway.admin_addr(), get(path)).await.status,
            401,
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_listener_is_told_of_the_past_that_he_asks_for_and_then_of_what_happens() {
    let mock = Mock::start(Reply::status(503)).await.unwrap();
    let gateway = gateway(&format!("{}{}", openai("a", &mock.url()), route(&["a"]))).await;
    for _ in 0..5 {
        send(gateway.addr(), chat()).await;
    }
    for (query, told) in [
        ("", 0),
        ("?past=0", 0),
        ("?past=1", 1),
        ("?a=b&past=1000", 2),
    ] {
        let path = format!("/events{query}");
        let mut feed = open(gateway.admin_addr(), get(&path)).await.into_body();
        let mut heard = String::new();
        while !heard.starts_with(": listening\n\n") || heard.matches("event: past\n").count() < told
        {
            let frame = within(feed.frame()).await.unwrap().unwrap();
            heard += std::str::from_utf8(&frame.into_data().unwrap()).unwrap();
        }
        let events: Vec<Value> = between(&heard, "event: past\ndata: ", "\n\n")
            .into_iter()
            .map(|data| serde_json::from_str(data).unwrap())
            .collect();
        assert_eq!(events.len(), told, "{query}");
        if let Some(latest) = events.last() {
            assert_eq!(
                (&latest["breaker"], &latest["to"]),
                (&"a/m".into(), &"open".into())
            );
            assert_eq!(latest["number"], 2);
        }
    }
    for past in ["1001", "-1", "all", ""] {
        let answer = send(gateway.admin_addr(), get(&format!("/events?past={past}"))).await;
        assert_eq!(answer.status, 400, "{past}");
        let why = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(why.contains("write one of 0 to 1000"), "{why}");
    }
}
