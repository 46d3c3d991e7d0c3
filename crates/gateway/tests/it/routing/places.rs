//! `max_in_flight` of a target.

use fuseline_mock::Reply;

use super::{Scene, by, targets};
use crate::support::{SOON, chat, open, send, spawn, stream, until};

fn endless() -> Reply {
    Reply::ok().events(50).stall_after(2)
}

#[tokio::test]
async fn a_full_target_is_passed_over() {
    let text = targets(&["a max_in_flight = 1", "b"]);
    let scene = Scene::of([endless(), Reply::ok()], &text).await;
    let first = open(scene.gateway.addr(), stream()).await;
    assert_eq!(first.headers()["x-fuseline-target"], "a/m");
    let answer = scene.call().await;
    assert_eq!(by(&answer), "b/m");
    let why = answer.header("x-fuseline-why");
    assert!(why.contains("a/m: max_in_flight calls under way"), "{why}");
    assert_eq!(scene.hits(), [1, 1]);
}

#[tokio::test]
async fn report_126_a_stream_that_is_left_gives_its_place_back() {
    let text = targets(&["a max_in_flight = 1"]) + "retries = 0\n";
    let scene = Scene::of([endless()], &text).await;
    let addr = scene.gateway.addr();
    for _ in 0..3 {
        let first = open(addr, stream()).await;
        assert_eq!(first.status(), 200);
        let refused = send(addr, chat()).await;
        assert_eq!(refused.status, 503);
        let error = &refused.json()["error"];
        assert_eq!(error["skipped"][0]["reason"], "saturated");
        assert_eq!(refused.header("retry-after"), "1");
        drop(first);
        scene.mocks[0].set(Reply::ok()).await.unwrap();
        until(async || scene.call().await.status == 200).await;
        assert_eq!(
            scene.call().await.status,
            200,
            "a whole answer gives it back at once"
        );
        scene.mocks[0].set(endless()).await.unwrap();
    }
    // A caller who leaves before there is an answer.
    scene.mocks[0].set(Reply::stall()).await.unwrap();
    let hits = scene.mocks[0].hits();
    let waiting = spawn(send(addr, chat()));
    scene.mocks[0].wait_for_hits(hits + 1, SOON).await.unwrap();
    waiting.abort();
    scene.mocks[0].set(Reply::ok()).await.unwrap();
    until(async || scene.call().await.status == 200).await;
}

#[tokio::test]
async fn a_target_that_failed_is_free_while_the_next_one_is_at_work() {
    let text = targets(&["a max_in_flight = 1", "b"]) + "retries = 0\n";
    let scene = Scene::of([Reply::status(500), Reply::stall()], &text).await;
    let waiting = spawn(send(scene.gateway.addr(), chat()));
    scene.mocks[1].wait_for_hits(1, SOON).await.unwrap();
    scene.mocks[0].set(Reply::ok()).await.unwrap();
    assert_eq!(by(&scene.call().await), "a/m");
    waiting.abort();
}
