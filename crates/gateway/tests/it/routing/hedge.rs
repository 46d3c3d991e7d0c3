//! A second attempt beside one that takes long.

use std::time::Duration;

use fuseline_mock::Reply;

use super::{Scene, by, targets};
use crate::support::{breaker, send, stream, until};

const LONG: Duration = Duration::from_secs(5);

/// Two targets, of which the first has answered so often, and then answers like this.
async fn after(calls: usize, text: &str, then: Reply) -> Scene {
    let text = targets(&["a", "b"]) + "retries = 0\n" + text;
    let scene = Scene::of([Reply::ok(), Reply::ok()], &text).await;
    for _ in 0..calls {
        assert_eq!(by(&scene.call().await), "a/m");
        send(scene.gateway.addr(), stream()).await;
    }
    scene.mocks[0].set(then).await.unwrap();
    scene
}

#[tokio::test]
async fn a_slow_call_is_answered_by_whoever_is_first() {
    let scene = after(20, "hedge = 0.95\n", Reply::ok().delay(LONG)).await;
    for (at, request) in [crate::support::chat(), stream()].into_iter().enumerate() {
        let answer = send(scene.gateway.addr(), request).await;
        assert_eq!((answer.status.as_u16(), by(&answer)), (200, "b/m"));
        assert_eq!(answer.header("x-fuseline-attempts"), "2");
        assert_eq!(answer.header("x-fuseline-fallback"), "true");
        let why = answer.header("x-fuseline-why");
        assert!(why.contains("so b/m was asked as well"), "{why}");
        until(async || scene.mocks[0].left() == at as u64 + 1).await;
    }
    assert_eq!(scene.hits(), [42, 2]);
    let view = breaker(&scene.gateway, "a").await;
    assert_eq!(
        (&view["run"], &view["in_flight"]),
        (&0.into(), &0.into()),
        "nobody is blamed"
    );
}

#[tokio::test]
async fn nothing_is_sent_twice_without_the_operators_word_or_enough_answers() {
    let slow = Reply::ok().delay(Duration::from_millis(300));
    for (calls, text) in [(20, ""), (9, "hedge = 0.95\n")] {
        let scene = after(calls, text, slow.clone()).await;
        assert_eq!(by(&scene.call().await), "a/m");
        assert_eq!(scene.hits()[1], 0, "{calls} {text}");
    }
}

#[tokio::test]
async fn a_second_attempt_that_fails_leaves_the_first_alone() {
    let slow = Reply::ok().delay(Duration::from_millis(500));
    let scene = after(20, "hedge = 0.95\n", slow).await;
    scene.mocks[1].set(Reply::status(500)).await.unwrap();
    let answer = scene.call().await;
    assert_eq!((answer.status.as_u16(), by(&answer)), (200, "a/m"));
    assert_eq!(answer.header("x-fuseline-fallback"), "false");
    assert!(
        answer
            .header("x-fuseline-why")
            .contains("b/m: server_error")
    );
    assert_eq!(breaker(&scene.gateway, "b/m").await["run"], 1);
}

#[tokio::test]
async fn when_both_fail_the_caller_gets_the_last_answer() {
    let slow = Reply::status(500).delay(Duration::from_millis(300));
    let scene = after(20, "hedge = 0.95\n", slow).await;
    scene.mocks[1].set(Reply::status(503)).await.unwrap();
    let answer = scene.call().await;
    assert_eq!((answer.status.as_u16(), by(&answer)), (500, "a/m"));
    assert_eq!(
        (scene.hits(), answer.header("x-should-retry")),
        (vec![41, 1], "false")
    );
}
