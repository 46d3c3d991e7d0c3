//! A call that is sent from the queue is one of the calls under way, and its body among theirs.

use std::time::Duration;

use fuseline_mock::{Mock, Reply};

use super::{TOUCHY, answer, call, gateway, one, outage, queue};
use crate::support::{CHAT, open, openai, post, send, until};

#[tokio::test]
async fn a_call_that_is_sent_takes_a_place_and_room_until_it_is_done() {
    for listener in ["max_calls = 1", "body_memory = \"1KiB\""] {
        let more = format!("{TOUCHY}[timeouts]\nanswer = \"1500ms\"\n[listener]\n{listener}\n");
        let (_folder, mock, gateway) = outage(&more).await;
        let place = queue(&gateway, "me", "one").await;
        mock.set(Reply::stall()).await.unwrap();
        until(async || mock.in_flight() > 0).await;
        let other = || call("me", &"x".repeat(900));
        let refused = send(gateway.addr(), other()).await;
        assert_eq!(refused.status, 503, "{listener}");
        assert_eq!(refused.json()["error"]["code"], "gateway_busy");
        mock.set(Reply::ok()).await.unwrap();
        assert_eq!(answer(&gateway, "me", &place).await.status, 200);
        until(async || send(gateway.addr(), other()).await.status == 200).await;
    }
}

#[tokio::test]
async fn where_callers_have_taken_all_places_or_all_room_the_queue_waits() {
    for listener in ["max_calls = 1", "body_memory = \"1KiB\""] {
        let folder = tempfile::tempdir().unwrap();
        let mock = Mock::start(Reply::status(503)).await.unwrap();
        let busy = Mock::start(Reply::stall()).await.unwrap();
        let text = format!(
            "{}{}[[routes]]\nmodel = \"busy\"\ntargets = [{{ provider = \"b\" }}]\n{TOUCHY}[listener]\n{listener}\n",
            one(&mock),
            openai("b", &busy.url())
        );
        let gateway = gateway(folder.path(), &text).await;
        let place = queue(&gateway, "me", "one").await;
        let addr = gateway.addr();
        let long = "x".repeat(900);
        let held = crate::support::spawn(async move {
            let body = format!(r#"{{"model":"busy","messages":[],"user":"{long}"}}"#);
            open(addr, post(CHAT, body)).await
        });
        until(async || busy.in_flight() > 0).await;
        // What may have been on its way before.
        until(async || mock.in_flight() == 0).await;
        let hits = mock.hits();
        mock.set(Reply::ok()).await.unwrap();
        let sent = until(async || mock.hits() > hits);
        let sent = tokio::time::timeout(Duration::from_millis(800), sent).await;
        assert!(sent.is_err(), "{listener}");
        held.abort();
        assert_eq!(answer(&gateway, "me", &place).await.status, 200);
    }
}
