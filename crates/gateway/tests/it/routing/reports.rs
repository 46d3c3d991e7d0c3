//! How others failed at retries and fallback.

use std::time::Duration;

use fuseline_mock::{Mock, Reply, Rule, Script};
use http::Request;
use http_body_util::Full;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::{Scene, again, by, targets};
use crate::support::{
    CHAT, Program, breaker, chat, gateway, get, openai, post, provider, send, spawn, stream, until,
};

/// No breaker that gets in the way.
const OFF: &str = "[breaker]\nmode = \"off\"\n";

#[tokio::test]
async fn report_70_retries_are_counted_in_one_place() {
    let text = targets(&["a"]) + "retries = 5\n" + OFF;
    let scene = Scene::of([again(500)], &text).await;
    let answer = scene.call().await;
    assert_eq!((answer.status.as_u16(), scene.hits()), (500, vec![6]));
    assert_eq!(answer.header("x-fuseline-attempts"), "6");
    assert_eq!(answer.header("x-should-retry"), "false");
}

#[tokio::test]
async fn report_71_rules_that_point_at_each_other_end() {
    let on = |next: &str| format!("on.server_error = \"{next}\"\nretries = 1\n");
    let text = targets(&["a"])
        + &on("b/m")
        + "[[routes]]\nmodel = \"m\"\n"
        + &targets(&["a", "b", "c"])
        + &on("a/m")
        + OFF;
    let scene = Scene::of([again(500), again(500), again(500)], &text).await;
    let began = Instant::now();
    let answer = scene.call().await;
    assert!(began.elapsed() < Duration::from_secs(2));
    assert_eq!((answer.status.as_u16(), scene.hits()), (500, vec![1, 1, 1]));
    assert!(answer.header("x-fuseline-why").len() <= 512);
    // Routes that lead to each other are refused at start: the case `cycles` of the mistakes.
}

/// The program at its most talkative, in front of three providers that fail; the log is what it wrote.
#[tokio::test]
async fn report_71_a_call_that_fails_everywhere_writes_little_and_holds_nobody_up() {
    let failing = Reply::status(500)
        .header("retry-after-ms", "1")
        .delay(Duration::from_millis(50));
    let mut text = String::new();
    let mut mocks = Vec::new();
    for name in ["a", "b", "c"] {
        let mock = Mock::start(failing.clone()).await.unwrap();
        text += &openai(name, &mock.url());
        mocks.push(mock);
    }
    let on = |next: &str| format!("on.server_error = \"{next}/m\"\nretries = 1\n");
    text += &format!(
        "[[routes]]\nmodel = \"*\"\n{}{}{OFF}",
        targets(&["a", "b", "c"]),
        on("a")
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fuseline.toml");
    std::fs::write(&file, text).unwrap();
    let program = Program::logging("trace", file.to_str().unwrap());
    let (addr, admin) = (
        program.listen.parse().unwrap(),
        program.admin.parse().unwrap(),
    );
    let before = program.logged();
    let began = Instant::now();
    let call = spawn(send(addr, chat()));
    let mut fastest = Duration::MAX;
    while !call.is_finished() {
        let asked = Instant::now();
        assert_eq!(send(admin, get("/healthz")).await.status, 200);
        fastest = fastest.min(asked.elapsed());
    }
    let answer = call.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(2));
    assert!(fastest < Duration::from_millis(100), "{fastest:?}");
    assert_eq!(answer.status, 500);
    let hits: u64 = mocks.iter().map(Mock::hits).sum();
    assert!(hits <= 6, "each at most once, and once again: {hits}");
    until(async || program.logged() > before).await;
    let wrote = program.logged() - before;
    assert!(wrote < 64 << 10, "{wrote} bytes");
}

#[tokio::test]
async fn report_73_the_next_target_does_not_start_the_retries_anew() {
    let text = targets(&["a", "b"]) + "retries = 3\nmax_attempts = 8\n" + OFF;
    let scene = Scene::of([again(500), again(500)], &text).await;
    let answer = scene.call().await;
    assert_eq!((answer.status.as_u16(), scene.hits()), (500, vec![4, 4]));
    let why = answer.header("x-fuseline-why");
    let order: Vec<_> = why.split("; ").map(|part| &part[..1]).collect();
    assert_eq!(order.concat(), "aaaabbbb", "{why}");
    let text = targets(&["a", "b"]) + "retries = 3\nmax_attempts = 5\n" + OFF;
    let scene = Scene::of([again(500), again(500)], &text).await;
    scene.call().await;
    assert_eq!(scene.hits(), [4, 1]);
}

#[tokio::test]
async fn report_74_a_target_that_is_switched_off_is_not_drawn() {
    let text = targets(&["a", "b", "c", "d", "e"])
        + "strategy = \"weighted\"\nretries = 1\nmax_attempts = 30\n[breaker]\ntrip = [{ rule = \"consecutive\", failures = 100000 }]\n";
    let scene = Scene::of(["a", "b", "c", "d", "e"].map(|_| again(500)), &text).await;
    let switch = |scene: &Scene, name| {
        let name = fuseline_core::ScopeName::provider(name);
        let found = scene.gateway.registry().find_breaker(&name).unwrap();
        found.force_open(None, found.now());
    };
    scene.call().await;
    switch(&scene, "c");
    let before = scene.hits()[2];
    for _ in 0..30 {
        let answer = scene.call().await;
        assert_eq!(answer.status, 500);
        let tried: u32 = answer.header("x-fuseline-attempts").parse().unwrap();
        assert!(tried <= 8, "each of four at most twice: {tried}");
    }
    assert_eq!(scene.hits()[2], before);
    // A call that is under way learns of it, too.
    scene.mocks[0]
        .set(Reply::status(500).delay(Duration::from_millis(300)))
        .await
        .unwrap();
    for name in ["b", "d"] {
        switch(&scene, name);
    }
    let hits = scene.mocks[0].hits();
    let call = spawn(send(scene.gateway.addr(), chat()));
    scene.mocks[0]
        .wait_for_hits(hits + 1, crate::support::SOON)
        .await
        .unwrap();
    switch(&scene, "a");
    call.await.unwrap();
    assert_eq!(scene.mocks[0].hits(), hits + 1, "no retry there any more");
}

#[tokio::test]
async fn report_76_the_longer_pause_rules() {
    let text = targets(&["a", "b"])
        + "retries = 0\n[breaker.kinds.rate_limit]\nimmediate_open = true\ncooldown = \"60s\"\n";
    let limited = Reply::status(429);
    let script = Script::sequence([limited.clone().retry_after(1), limited]);
    let scene = Scene::of([script, Reply::ok().into()], &text).await;
    let addr = scene.gateway.addr();
    let crowd: Vec<_> = (0..4).map(|_| spawn(send(addr, chat()))).collect();
    for call in crowd {
        assert_eq!(by(&call.await.unwrap()), "b/m");
    }
    let asked = scene.hits()[0];
    assert!((2..=4).contains(&asked), "{asked}");
    until(async || breaker(&scene.gateway, "a#0").await["hold_ms"].is_null()).await;
    for _ in 0..5 {
        assert_eq!(
            by(&scene.call().await),
            "b/m",
            "the hint of a second is over"
        );
    }
    assert_eq!(scene.hits()[0], asked);
    let left = breaker(&scene.gateway, "a#0").await["retry_after_ms"].as_u64();
    assert!(left > Some(50_000), "{left:?}");
}

#[tokio::test]
async fn report_77_no_target_left_is_told_in_the_callers_dialect() {
    let lasting = "[breaker]\ntrip = [{ rule = \"consecutive\", failures = 1 }]\ncooldown = \"1s\"\njitter = 0.0\n";
    let create =
        |stream| move |path| post(path, format!("{{\"model\":\"m\",\"stream\":{stream}}}"));
    for (protocol, paths) in [
        ("openai", &[CHAT, "/v1/responses"][..]),
        ("anthropic", &["/v1/messages"][..]),
    ] {
        let (a, b) = (
            Mock::start(Reply::status(500).retry_after(12))
                .await
                .unwrap(),
            Mock::start(Reply::status(429).retry_after(7))
                .await
                .unwrap(),
        );
        let text = format!(
            "{}{}[[routes]]\nmodel = \"*\"\nretries = 0\nmax_wait = \"1s\"\n{}{lasting}",
            provider("a", protocol, &a.url()),
            provider("b", protocol, &b.url()),
            targets(&["a", "b"])
        );
        let gateway = gateway(&text).await;
        assert_eq!(
            send(gateway.addr(), create(false)(paths[0])).await.status,
            429
        );
        let counters = async || {
            let mut seen = Vec::new();
            for name in ["a", "a/m", "b", "b/m", "b#0"] {
                let view = breaker(&gateway, name).await;
                seen.push([
                    view["run"].clone(),
                    view["kinds"].clone(),
                    view["late"].clone(),
                ]);
            }
            seen
        };
        let before = counters().await;
        let mut fastest = Duration::MAX;
        for path in paths {
            for is_stream in [false, true] {
                for _ in 0..10 {
                    let began = Instant::now();
                    send(gateway.addr(), create(is_stream)(path)).await;
                    fastest = fastest.min(began.elapsed());
                }
                let answer = send(gateway.addr(), create(is_stream)(path)).await;
                assert_eq!(answer.status, 503, "{path}");
                assert_eq!(answer.header("retry-after"), "7");
                assert_eq!(answer.header("content-type"), "application/json");
                let told = answer.json()["error"].to_string();
                assert!(told.contains("circuit_open"), "{told}");
                let is_anthropic = answer.json()["type"] == "error";
                assert_eq!(is_anthropic, protocol == "anthropic");
            }
        }
        // The quickest, since others use the machine.
        assert!(fastest < Duration::from_millis(10), "{fastest:?}");
        assert_eq!((a.hits(), b.hits()), (1, 1));
        assert_eq!(before, counters().await);
    }
}

#[tokio::test]
async fn report_78_one_models_trouble_leaves_its_siblings_alone() {
    let script = Script::always(Reply::ok()).rule(Rule::model("big").reply(Reply::status(529)));
    let text = targets(&["a"])
        + "retries = 0\n[[routes]]\nmodel = \"q\"\n"
        + &targets(&["b"])
        + "[breaker]\ntrip = [{ rule = \"consecutive\", failures = 5 }]\n";
    let scene = Scene::of([script, Reply::ok().into()], &text).await;
    let ask = |model: &str| {
        let mut request: Request<Full<_>> = chat();
        *request.body_mut() = Full::new(format!(r#"{{"model":"{model}"}}"#).into());
        send(scene.gateway.addr(), request)
    };
    for _ in 0..5 {
        assert_eq!(ask("big").await.status, 529);
    }
    assert_eq!(ask("big").await.status, 503);
    assert_eq!(breaker(&scene.gateway, "a/big").await["state"], "open");
    for _ in 0..50 {
        assert_eq!(ask("small").await.status, 200);
        assert_eq!(ask("q").await.status, 200);
    }
    scene.mocks[0].set(Script::refuse()).await.unwrap();
    for _ in 0..5 {
        assert_eq!(ask("small").await.status, 504);
    }
    assert_eq!(breaker(&scene.gateway, "a").await["state"], "open");
}

#[tokio::test]
async fn report_80_each_status_has_its_way() {
    for request in [chat, stream] {
        for (status, hits, answered) in [(401, [1, 1], 200), (429, [2, 1], 200), (418, [1, 0], 418)]
        {
            let text = targets(&["a", "b"]) + "retries = 1\n";
            let scene = Scene::of([again(status), Reply::ok()], &text).await;
            let answer = send(scene.gateway.addr(), request()).await;
            assert_eq!(answer.status, answered, "{status}");
            assert_eq!(scene.hits(), hits, "{status}");
        }
    }
}

#[tokio::test]
async fn report_83_a_connection_that_was_just_closed_is_replaced_unseen() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            spawn(async move {
                let mut seen = Vec::new();
                while !seen.ends_with(b"}") && stream.read_buf(&mut seen).await.unwrap() > 0 {}
                let answer =
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok";
                stream.write_all(answer).await.unwrap();
                // Kept alive by what it said, and closed: before, during or after the next request.
            });
        }
    });
    let text = format!(
        "{}[[routes]]\nmodel = \"*\"\nretries = 0\n{}",
        openai("a", &format!("http://{address}")),
        targets(&["a"])
    );
    let gateway = gateway(&text).await;
    for call in 0..200 {
        let answer = send(gateway.addr(), chat()).await;
        assert_eq!(answer.status, 200, "{call}: {answer:?}");
        assert_eq!(answer.header("x-fuseline-attempts"), "1");
        assert_eq!(answer.header("x-fuseline-why"), "answered at first try");
    }
    let view = breaker(&gateway, "a").await;
    assert_eq!(
        (&view["run"], &view["kinds"]),
        (&Value::from(0), &serde_json::json!({}))
    );
}
