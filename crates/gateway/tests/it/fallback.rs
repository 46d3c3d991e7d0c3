//! Outages: opening, falling over, probing, closing, and the honest answer when all is out.

use std::time::Duration;

use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply, Script};
use http_body_util::BodyExt as _;
use serde_json::Value;

use crate::support::{
    Answer, CHAT, breaker, chat, gateway, get, open, openai, post, provider, route, send, spawn,
    stream, until,
};

const QUICK: &str = "[breaker]\ncooldown = \"300ms\"\njitter = 0.0\ntrip = [{ rule = \"consecutive\", failures = 3 }]\n";
const SLOW: &str = "[breaker]\ncooldown = \"12s\"\njitter = 0.0\ntrip = [{ rule = \"consecutive\", failures = 3 }]\n";

struct Pair {
    primary: Mock,
    spare: Mock,
    gateway: Gateway,
}

async fn pair(primary: impl Into<Script>, breaker: &str) -> Pair {
    let (primary, spare) = (
        Mock::start(primary).await.unwrap(),
        Mock::start(Reply::ok()).await.unwrap(),
    );
    let providers = openai("primary", &primary.url()) + &openai("spare", &spare.url());
    let gateway = gateway(&format!(
        "{providers}{}{breaker}",
        route(&["primary", "spare"])
    ))
    .await;
    Pair {
        primary,
        spare,
        gateway,
    }
}

async fn alone(primary: &Mock, breaker: &str) -> Gateway {
    gateway(&format!(
        "{}{}{breaker}",
        openai("primary", &primary.url()),
        route(&["primary"])
    ))
    .await
}

async fn calls(gateway: &Gateway, times: u32) -> Vec<Answer> {
    let mut answers = Vec::new();
    for _ in 0..times {
        answers.push(send(gateway.addr(), chat()).await);
    }
    answers
}

async fn due(gateway: &Gateway, name: &str) {
    until(async || breaker(gateway, name).await["retry_after_ms"] == 0).await;
}

#[tokio::test]
async fn an_outage_opens_at_the_threshold_and_from_then_on_nothing_reaches_the_primary() {
    let Pair {
        primary,
        spare,
        gateway,
    } = pair(Reply::status(503), SLOW).await;
    let answers = calls(&gateway, 10).await;
    assert!(
        answers
            .iter()
            .all(|answer| answer.status == 200 && answer.header("x-fuseline-target") == "spare/m")
    );
    assert_eq!((primary.hits(), spare.hits()), (3, 10));
    assert_eq!(answers[0].header("x-fuseline-attempts"), "2");
    assert_eq!(answers[9].header("x-fuseline-attempts"), "1");
    assert_eq!(answers[9].header("x-fuseline-fallback"), "true");
    let page = send(gateway.admin_addr(), get("/metrics")).await;
    let page = String::from_utf8(page.body.to_vec()).unwrap();
    for line in [
        r#"breaker_opened_total{scope="model",provider="primary",model="m"} 1"#,
        r#"breaker_opened_total{scope="model",provider="spare",model="m"} 0"#,
        r#"breaker_rejected_total{scope="model",provider="primary",model="m",reason="open"} 7"#,
    ] {
        assert!(page.lines().any(|other| other == line), "{line}\n{page}");
    }
}

#[tokio::test]
async fn fifty_callers_after_the_cooldown_cause_one_probe_and_two_good_ones_close() {
    let Pair {
        primary,
        spare,
        gateway,
    } = pair(Reply::status(500), QUICK).await;
    calls(&gateway, 3).await;
    primary
        .set(Reply::ok().delay(Duration::from_millis(200)))
        .await
        .unwrap();
    due(&gateway, "primary/m").await;
    let addr = gateway.addr();
    let crowd: Vec<_> = (0..50).map(|_| spawn(send(addr, chat()))).collect();
    let mut by_primary = 0;
    for call in crowd {
        let answer = call.await.unwrap();
        assert_eq!(answer.status, 200);
        by_primary += u32::from(answer.header("x-fuseline-target") == "primary/m");
    }
    assert_eq!((primary.hits(), by_primary), (3 + 1, 1));
    assert_eq!(spare.hits(), 3 + 49);
    assert_eq!(breaker(&gateway, "primary/m").await["state"], "half_open");
    assert_eq!(
        calls(&gateway, 1).await[0].header("x-fuseline-target"),
        "primary/m"
    );
    assert_eq!(breaker(&gateway, "primary/m").await["state"], "closed");
}

#[tokio::test]
async fn a_failed_probe_reopens_and_its_caller_is_served_by_the_spare() {
    let Pair {
        primary,
        spare: _spare,
        gateway,
    } = pair(Reply::status(500), QUICK).await;
    calls(&gateway, 3).await;
    due(&gateway, "primary/m").await;
    let answer = calls(&gateway, 1).await.remove(0);
    assert_eq!(
        (answer.status.as_u16(), answer.header("x-fuseline-target")),
        (200, "spare/m")
    );
    let view = breaker(&gateway, "primary/m").await;
    assert_eq!(
        (view["state"].as_str(), view["episodes"].as_u64()),
        (Some("open"), Some(1))
    );
    assert_eq!(primary.hits(), 4);
}

#[tokio::test]
async fn a_caller_who_leaves_during_a_probe_gives_its_slot_back() {
    let Pair {
        primary,
        spare: _spare,
        gateway,
    } = pair(Reply::status(500), QUICK).await;
    calls(&gateway, 3).await;
    due(&gateway, "primary/m").await;
    primary.set(Reply::stall()).await.unwrap();
    let call = spawn(send(gateway.addr(), chat()));
    primary
        .wait_for_hits(4, crate::support::SOON)
        .await
        .unwrap();
    assert_eq!(breaker(&gateway, "primary/m").await["live_probes"], 1);
    // The connection of an aborted test task is driven by another task; it ends once its sender is gone.
    call.abort();
    until(async || breaker(&gateway, "primary/m").await["live_probes"] == 0).await;
    assert_eq!(breaker(&gateway, "primary/m").await["state"], "half_open");
}

#[tokio::test]
async fn a_primary_on_a_closed_port_opens_its_provider() {
    let Pair {
        primary,
        spare,
        gateway,
    } = pair(Script::refuse(), SLOW).await;
    assert!(
        calls(&gateway, 6)
            .await
            .iter()
            .all(|answer| answer.status == 200)
    );
    assert_eq!((primary.hits(), spare.hits()), (0, 6));
    let view = breaker(&gateway, "primary").await;
    assert_eq!(
        (view["state"].as_str(), view["why"]["kind"].as_str()),
        (Some("open"), Some("network"))
    );
}

#[tokio::test]
async fn streams_fall_over_before_their_first_byte() {
    let Pair {
        primary,
        spare: _spare,
        gateway,
    } = pair(Reply::status(529), SLOW).await;
    let answer = send(gateway.addr(), stream()).await;
    assert_eq!(answer.status, 200);
    assert!(
        answer
            .header("content-type")
            .starts_with("text/event-stream")
    );
    assert_eq!(
        (answer.header("x-fuseline-target"), primary.hits()),
        ("spare/m", 1)
    );
}

#[tokio::test]
async fn the_callers_own_mistakes_open_nothing_and_arrive_as_they_came() {
    for status in [400, 401, 403, 404, 413, 422] {
        let body = format!("{{ \"error\" : {status} }}");
        let primary = Mock::start(Reply::status(status).body(body.clone()))
            .await
            .unwrap();
        let gateway = alone(&primary, SLOW).await;
        for answer in calls(&gateway, 10).await {
            assert_eq!(
                (answer.status.as_u16(), &answer.body[..]),
                (status, body.as_bytes())
            );
            assert!(!answer.headers.contains_key("x-should-retry"));
        }
        assert_eq!(primary.hits(), 10);
        assert_eq!(breaker(&gateway, "primary").await["state"], "closed");
    }
}

#[tokio::test]
async fn with_everything_open_the_answer_is_honest_in_every_dialect() {
    let calls = [
        ("openai", CHAT, "/error/code"),
        ("anthropic", "/v1/messages", "/error/message"),
        (
            "gemini",
            "/v1beta/models/m:generateContent",
            "/error/message",
        ),
    ];
    for (protocol, path, place) in calls {
        let primary = Mock::start(Reply::status(503)).await.unwrap();
        let text = format!(
            "{}{}{SLOW}",
            provider("primary", protocol, &primary.url()),
            route(&["primary"])
        );
        let gateway = gateway(&text).await;
        for _ in 0..3 {
            assert_eq!(
                send(gateway.addr(), post(path, r#"{"model":"m"}"#))
                    .await
                    .status,
                503
            );
        }
        let answer = send(gateway.addr(), post(path, r#"{"model":"m"}"#)).await;
        assert_eq!(
            (answer.status.as_u16(), primary.hits()),
            (503, 3),
            "{protocol}"
        );
        let told = answer
            .json()
            .pointer(place)
            .and_then(Value::as_str)
            .unwrap()
            .to_owned();
        assert!(told.starts_with("circuit_open"), "{told}");
        assert_eq!(
            (
                answer.header("retry-after"),
                answer.header("x-should-retry")
            ),
            ("12", "false")
        );
        let millis: u64 = answer.header("retry-after-ms").parse().unwrap();
        assert!((10_000..=12_000).contains(&millis), "{millis}");
        assert_eq!(
            (
                answer.header("x-fuseline-attempts"),
                answer.header("x-fuseline-breaker")
            ),
            ("0", "open")
        );
        assert!(answer.header("x-fuseline-why").contains("open"));
    }
}

#[tokio::test]
async fn a_short_wait_is_worth_an_sdks_retry() {
    let primary = Mock::start(Reply::status(503)).await.unwrap();
    let gateway = alone(&primary, &SLOW.replace("12s", "4s")).await;
    calls(&gateway, 3).await;
    assert_eq!(calls(&gateway, 1).await[0].header("x-should-retry"), "true");
}

#[tokio::test]
async fn rate_limits_with_long_hints_rest_the_key_and_end_as_429() {
    let primary = Mock::start(Reply::status(429).retry_after(100))
        .await
        .unwrap();
    let gateway = alone(&primary, SLOW).await;
    let first = calls(&gateway, 1).await.remove(0);
    assert_eq!(
        (first.status.as_u16(), first.header("retry-after")),
        (429, "100")
    );
    let second = calls(&gateway, 1).await.remove(0);
    assert_eq!((second.status.as_u16(), primary.hits()), (429, 1));
    assert_eq!(second.json()["error"]["code"], "circuit_open");
    assert_eq!(second.header("x-should-retry"), "false");
    assert_eq!(breaker(&gateway, "primary").await["state"], "closed");
}

#[tokio::test]
async fn the_last_answer_is_returned_as_it_came_once_all_was_tried() {
    let (a, b) = (
        Mock::start(Reply::status(500).body("first")).await.unwrap(),
        Mock::start(
            Reply::status(502)
                .body("{\"last\" : 1}")
                .header("x-theirs", "kept")
                .header("x-should-retry", "true"),
        )
        .await
        .unwrap(),
    );
    let gateway = gateway(&format!(
        "{}{}{}",
        openai("a", &a.url()),
        openai("b", &b.url()),
        route(&["a", "b"])
    ))
    .await;
    let answer = calls(&gateway, 1).await.remove(0);
    assert_eq!(
        (answer.status.as_u16(), &answer.body[..]),
        (502, &b"{\"last\" : 1}"[..])
    );
    assert_eq!(
        (answer.header("x-theirs"), answer.header("x-should-retry")),
        ("kept", "false")
    );
    assert_eq!(
        (
            answer.header("x-fuseline-attempts"),
            answer.header("x-fuseline-target")
        ),
        ("2", "b/m")
    );
    assert!(
        answer
            .header("x-fuseline-why")
            .contains("a/m: server_error (status 500)")
    );
}

#[tokio::test]
async fn an_answer_is_returned_under_the_name_of_who_gave_it() {
    let Pair {
        primary: _primary,
        spare,
        gateway,
    } = pair(Reply::status(500), SLOW).await;
    spare.set(Reply::close()).await.unwrap();
    let answer = calls(&gateway, 1).await.remove(0);
    assert_eq!(
        (answer.status.as_u16(), answer.header("x-fuseline-target")),
        (500, "primary/m")
    );
    assert_eq!(
        (
            answer.header("x-fuseline-attempts"),
            answer.header("x-fuseline-fallback")
        ),
        ("2", "false")
    );
}

#[tokio::test]
async fn without_one_whole_answer_it_is_504() {
    let primary = Mock::start(Reply::close()).await.unwrap();
    let gateway = alone(&primary, SLOW).await;
    let answer = calls(&gateway, 1).await.remove(0);
    assert_eq!(
        (
            answer.status.as_u16(),
            answer.json()["error"]["code"].as_str()
        ),
        (504, Some("exhausted"))
    );
    assert_eq!(answer.header("x-should-retry"), "false");
}

#[tokio::test]
async fn callers_can_decline_the_fallback_and_choose_the_route() {
    let (a, b) = (
        Mock::start(Reply::status(500)).await.unwrap(),
        Mock::start(Reply::ok()).await.unwrap(),
    );
    let text = format!(
        "{}{}{}[[routes]]\nmodel = \"other\"\ntargets = [{{ provider = \"b\" }}]\n",
        openai("a", &a.url()),
        openai("b", &b.url()),
        route(&["a", "b"])
    );
    let gateway = gateway(&text).await;
    let with = |name: &'static str, value: &'static str| {
        let mut request = chat();
        request.headers_mut().insert(name, value.parse().unwrap());
        send(gateway.addr(), request)
    };
    assert_eq!(with("x-fuseline-fallback", "off").await.status, 500);
    assert_eq!((a.hits(), b.hits()), (1, 0));
    assert_eq!(with("x-fuseline-route", "other").await.status, 200);
    assert_eq!((a.hits(), b.hits()), (1, 1));
    assert_eq!(with("x-fuseline-route", "nowhere").await.status, 404);
}

#[tokio::test]
async fn a_retry_goes_to_the_same_target_before_the_next() {
    let (a, b) = (
        Mock::start(Script::sequence([Reply::status(500), Reply::ok()]))
            .await
            .unwrap(),
        Mock::start(Reply::ok()).await.unwrap(),
    );
    let text = format!(
        "{}{}{}",
        openai("a", &a.url()),
        openai("b", &b.url()),
        route(&["a", "b"]).replace("retries = 0", "retries = 1")
    );
    let gateway = gateway(&text).await;
    let answer = calls(&gateway, 1).await.remove(0);
    assert_eq!(
        (
            answer.header("x-fuseline-target"),
            answer.header("x-fuseline-attempts")
        ),
        ("a/m", "2")
    );
    assert_eq!((a.hits(), b.hits()), (2, 0));
    assert_eq!(breaker(&gateway, "a/m").await["run"], 0);
}

#[tokio::test]
async fn report_2_a_probe_with_a_neutral_or_broken_answer_never_jams_the_breaker() {
    let primary = Mock::start(Reply::status(500)).await.unwrap();
    let gateway = alone(&primary, QUICK).await;
    calls(&gateway, 3).await;
    due(&gateway, "primary/m").await;
    primary.set(Reply::status(404)).await.unwrap();
    for answer in calls(&gateway, 3).await {
        assert_eq!(
            answer.status, 404,
            "a neutral probe is followed by the next"
        );
    }
    assert_eq!(breaker(&gateway, "primary/m").await["state"], "half_open");
    primary
        .set(Reply::ok().events(9).cut_after(1))
        .await
        .unwrap();
    let answer = open(gateway.addr(), stream()).await;
    let told = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&told).contains("upstream_disconnect"));
    until(async || breaker(&gateway, "primary/m").await["state"] == "open").await;
    assert_eq!(breaker(&gateway, "primary/m").await["live_probes"], 0);
}

#[tokio::test]
async fn report_20_invented_models_do_not_grow_the_table() {
    let primary = Mock::start(Reply::ok()).await.unwrap();
    let text = format!(
        "max_breakers = 20\n{}{}",
        openai("primary", &primary.url()),
        route(&["primary"])
    );
    let gateway = gateway(&text).await;
    for number in 0..200 {
        let body = format!("{{\"model\":\"invented-{number}\"}}");
        assert_eq!(send(gateway.addr(), post(CHAT, body)).await.status, 200);
    }
    let list = send(gateway.admin_addr(), get("/breakers")).await.json();
    assert!(list.as_array().unwrap().len() <= 20);
    assert_eq!(breaker(&gateway, "primary").await["state"], "closed");
}
