//! The metrics page: what is counted adds up, and callers cannot make it grow.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply, Rule, Script};

use crate::support::{
    CHAT, breaker, chat, gateway, get, openai, post, provider, route, send, stream, until,
};

async fn page(gateway: &Gateway) -> BTreeMap<String, f64> {
    page_at(gateway.admin_addr()).await
}

/// The page: every series with its value.
pub(crate) async fn page_at(admin: SocketAddr) -> BTreeMap<String, f64> {
    let page = send(admin, get("/metrics")).await.body;
    let page = String::from_utf8(page.to_vec()).unwrap();
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let values = lines.map(|line| line.rsplit_once(' ').unwrap());
    values
        .map(|(series, value)| (series.to_owned(), value.parse().unwrap()))
        .collect()
}

/// The sum of a metric's series whose labels hold all of these.
pub(crate) fn sum(page: &BTreeMap<String, f64>, name: &str, labels: &[&str]) -> f64 {
    let of_name = page.iter().filter(|(series, _)| {
        series.as_str() == name
            || series
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('{'))
    });
    of_name
        .filter(|(series, _)| labels.iter().all(|label| series.contains(label)))
        .map(|(_, value)| value)
        .sum()
}

/// A route for the one model `m` over these providers, each tried once.
fn route_m(providers: &[&str]) -> String {
    route(providers).replace('*', "m")
}

#[tokio::test]
async fn what_was_sent_is_success_failure_neutral_and_rejected_exactly_under_load() {
    let script = Script::always(Reply::ok())
        .rule(Rule::model("broken").reply(Reply::status(500)))
        .rule(Rule::model("wrong").reply(Reply::status(400)));
    let mock = Mock::start(script).await.unwrap();
    let gateway = gateway(&format!("{}{}", openai("a", &mock.url()), route(&["a"]))).await;
    let addr = gateway.addr();
    let mut callers = Vec::new();
    for model in ["m", "broken", "wrong", "m"] {
        callers.push(crate::support::spawn(async move {
            let mut refused = 0;
            for _ in 0..100 {
                let call = post(CHAT, format!(r#"{{"model":"{model}","messages":[]}}"#));
                refused += u64::from(send(addr, call).await.header("x-fuseline-attempts") == "0");
            }
            refused
        }));
    }
    let mut refused = 0;
    for caller in callers {
        refused += caller.await.unwrap();
    }
    send(addr, post("/v1/nothing-of-the-kind", "{}")).await;
    send(addr, get("/v1/models")).await;
    let page = page(&gateway).await;
    let calls = |outcome: &str| sum(&page, "calls_total", &[&format!("outcome=\"{outcome}\"")]);
    assert!(refused > 0);
    // The one path that nobody serves is sent to the provider of the `*` route, and is a success there.
    assert_eq!(
        calls("success") + calls("failure") + calls("neutral") + calls("rejected"),
        401.0
    );
    assert_eq!(calls("success"), 201.0);
    assert_eq!(calls("neutral"), 100.0);
    assert_eq!(calls("rejected"), refused as f64);
    assert_eq!(calls("failure"), (100 - refused) as f64);
    assert_eq!(
        sum(&page, "calls_total", &["kind=\"server_error\""]),
        calls("failure")
    );
    assert_eq!(sum(&page, "attempts_total", &[]), mock.hits() as f64);
    assert_eq!(
        sum(&page, "breaker_rejected_total", &["reason=\"open\""]),
        refused as f64
    );
    assert_eq!(sum(&page, "call_seconds_count", &[]), 401.0);
}

#[tokio::test]
async fn answers_of_a_fallback_and_first_tokens_are_counted() {
    let (down, up) = (
        Mock::start(Reply::status(500)).await,
        Mock::start(Reply::ok()).await,
    );
    let (down, up) = (down.unwrap(), up.unwrap());
    let text = format!(
        "{}{}{}",
        openai("a", &down.url()),
        openai("b", &up.url()),
        route_m(&["a", "b"])
    );
    let gateway = gateway(&text).await;
    for _ in 0..3 {
        assert_eq!(send(gateway.addr(), chat()).await.status, 200);
    }
    send(gateway.addr(), stream()).await;
    until(async || sum(&page(&gateway).await, "calls_total", &[]) == 4.0).await;
    let page = page(&gateway).await;
    assert_eq!(sum(&page, "fallback_total", &[]), 4.0);
    assert_eq!(sum(&page, "first_token_seconds_count", &[]), 1.0);
    let of = |provider: &str, kind: &str| {
        let provider = format!("provider=\"{provider}\"");
        sum(
            &page,
            "attempts_total",
            &[&provider, "model=\"m\"", &format!("kind=\"{kind}\"")],
        )
    };
    assert_eq!((of("a", "server_error"), of("b", "none")), (4.0, 4.0));
}

#[tokio::test]
async fn a_caller_who_leaves_is_neutral_and_his_attempt_is_counted() {
    let mock = Mock::start(Reply::ok().events(1).stall_after(1))
        .await
        .unwrap();
    let gateway = gateway(&format!("{}{}", openai("a", &mock.url()), route_m(&["a"]))).await;
    drop(crate::support::open(gateway.addr(), stream()).await);
    let cancelled = ["outcome=\"neutral\"", "kind=\"cancelled\""];
    until(async || sum(&page(&gateway).await, "calls_total", &cancelled) == 1.0).await;
    let page = page(&gateway).await;
    assert_eq!(sum(&page, "attempts_total", &cancelled), 1.0);
}

#[tokio::test]
async fn report_107_made_up_models_and_keys_mint_no_series() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let base = mock.url();
    let own = provider("a", "openai", &base).replace("api_key = \"key-of-a\"", "auth = \"caller\"");
    let routes: String = ["one", "two", "three", "*"]
        .map(|model| route(&["a"]).replace('*', model))
        .concat();
    let gateway = gateway(&format!("{own}{routes}")).await;
    let before = page(&gateway).await;
    for number in 0..1_000 {
        let body =
            format!(r#"{{"model":"made-up-{number}","user":"user-{number}","messages":[]}}"#);
        let mut call = post(CHAT, body);
        let key = format!("Bearer sk-key-{number}").parse().unwrap();
        call.headers_mut().insert("authorization", key);
        assert_eq!(send(gateway.addr(), call).await.status, 200);
    }
    let scrape = send(gateway.admin_addr(), get("/metrics"));
    let limit = Duration::from_millis(200);
    let answer = tokio::time::timeout(limit, scrape).await.unwrap();
    assert!(answer.body.len() < 1 << 20);
    let after = page(&gateway).await;
    let new: Vec<_> = after
        .keys()
        .filter(|series| !before.contains_key(*series))
        .collect();
    assert!(new.len() <= 20, "{new:#?}");
    for series in after.keys() {
        assert!(
            !series.contains("made-up") && !series.contains("user-"),
            "{series}"
        );
        assert!(!series.contains("sk-"), "{series}");
    }
    let other = ["model=\"other\"", "outcome=\"success\""];
    assert_eq!(sum(&after, "attempts_total", &other), 1_000.0);
}

#[tokio::test]
async fn report_111_a_refused_call_is_counted_once() {
    for call in [chat, stream] {
        for has_spare in [false, true] {
            let (down, up) = (
                Mock::start(Reply::status(500)).await,
                Mock::start(Reply::ok()).await,
            );
            let (down, up) = (down.unwrap(), up.unwrap());
            let providers: &[&str] = if has_spare { &["a", "b"] } else { &["a"] };
            let text = format!(
                "{}{}{}",
                openai("a", &down.url()),
                openai("b", &up.url()),
                route_m(providers)
            );
            let gateway = gateway(&text).await;
            for _ in 0..5 {
                send(gateway.addr(), call()).await;
            }
            until(async || sum(&page(&gateway).await, "calls_total", &[]) == 5.0).await;
            let (before, hits) = (page(&gateway).await, down.hits());
            for _ in 0..100 {
                send(gateway.addr(), call()).await;
            }
            until(async || sum(&page(&gateway).await, "calls_total", &[]) == 105.0).await;
            let after = page(&gateway).await;
            let grown = |name: &str, labels: &[&str]| {
                sum(&after, name, labels) - sum(&before, name, labels)
            };
            assert_eq!(grown("breaker_rejected_total", &[]), 100.0);
            assert_eq!(down.hits(), hits);
            assert_eq!(grown("attempts_total", &["provider=\"a\""]), 0.0);
            let outcome = if has_spare {
                "outcome=\"success\""
            } else {
                "outcome=\"rejected\""
            };
            assert_eq!(grown("calls_total", &[outcome]), 100.0);
            assert_eq!(
                grown("fallback_total", &[]),
                if has_spare { 100.0 } else { 0.0 }
            );
        }
    }
}

#[tokio::test]
async fn report_113_cut_streams_are_their_targets_statistic() {
    let cut = Reply::ok().events(5).cut_after(3);
    let mut replies = vec![Reply::ok().events(5); 9];
    replies.push(cut);
    let script = Script::cycle(replies);
    let mock = Mock::start(script).await.unwrap();
    let calm = "[breaker]\ntrip = [{ rule = \"rate\", threshold = 0.5, window = \"60s\", min_calls = 200 }]\n";
    let text = format!("{}{}{calm}", openai("a", &mock.url()), route_m(&["a"]));
    let gateway = gateway(&text).await;
    for _ in 0..100 {
        send(gateway.addr(), stream()).await;
    }
    let all = ["provider=\"a\"", "model=\"m\""];
    until(async || sum(&page(&gateway).await, "attempts_total", &all) == 100.0).await;
    let page = page(&gateway).await;
    let cut = ["provider=\"a\"", "model=\"m\"", "kind=\"stream_truncated\""];
    assert_eq!(sum(&page, "attempts_total", &cut), 10.0);
    let view = breaker(&gateway, "a/m").await;
    assert_eq!(
        (view["attempts"].as_u64(), view["failures"].as_u64()),
        (Some(100), Some(10))
    );
}

#[tokio::test]
async fn the_alerts_ask_for_metrics_that_there_are() {
    let alerts = include_str!("../../../../deploy/alerts.yml");
    let gateway = gateway("").await;
    let page = page(&gateway).await;
    let words = alerts.split(|sign: char| !sign.is_ascii_lowercase() && sign != '_');
    let is_metric = |word: &&str| word.ends_with("_total") || word.ends_with("_seconds");
    let named: BTreeSet<&str> = words.filter(is_metric).collect();
    assert_eq!(named.len(), 5, "{named:?}");
    for name in named {
        assert!(page.keys().any(|series| series.starts_with(name)), "{name}");
    }
}

#[tokio::test]
async fn the_guide_names_metrics_and_requests_that_there_are() {
    let guide = include_str!("../../../../docs/guide/seeing-it.md");
    let gateway = gateway("").await;
    let page = page(&gateway).await;
    let quoted = || guide.split('`').skip(1).step_by(2);
    let is_metric = |word: &&str| {
        ["_total", "_seconds"].iter().any(|end| word.ends_with(end)) || *word == "breaker_state"
    };
    let metrics: BTreeSet<&str> = quoted().filter(is_metric).collect();
    assert!(metrics.len() >= 13, "{metrics:?}");
    for name in metrics {
        assert!(page.keys().any(|series| series.starts_with(name)), "{name}");
    }
    let mut requests = 0;
    for request in quoted() {
        let Some((method @ ("GET" | "POST"), path)) = request.split_once(' ') else {
            continue;
        };
        // Both methods of a path are asked for by the wrong one: only a path that there is says so.
        let path = path.replace("{name}", "openai");
        let wrong = if method == "GET" {
            post(&path, "")
        } else {
            get(&path)
        };
        assert_eq!(
            send(gateway.admin_addr(), wrong).await.status,
            405,
            "{request}"
        );
        requests += 1;
    }
    assert_eq!(requests, 16);
    let snippets = guide.split("```toml\n").skip(1);
    let snippets: String = snippets
        .map(|rest| rest.split_once("```").unwrap().0)
        .collect();
    let toml = snippets.replace("{ env = \"SLACK_WEBHOOK\" }", "\"https://hooks.example/x\"");
    let config = crate::support::config(&toml);
    assert_eq!(config.webhooks.len(), 2);
    let traces = config.otlp.traces.unwrap();
    assert_eq!(traces, "http://127.0.0.1:4318/v1/traces");
}
