//! Field reports on silence, overload and cuts.

use super::*;

#[tokio::test]
async fn report_43_a_silent_stream_ends_and_says_so() {
    let begun = Reply::ok().events(9).stall_after(3);
    let stage = Stage::alone(begun, QUICK).await;
    let answer = stage.chat().await;
    assert_eq!(answer.status, 200);
    let told = text(&answer);
    assert!(told.contains("\"code\":\"stream_stall\""), "{told}");
    assert!(told.contains("limit stall"), "{told}");
    within(stage.a.wait_for_left(1, AT_ONCE)).await.unwrap();
    until(async || stage.kind_counts("stream_stall").await).await;

    for (silent, kind) in [
        (
            Reply::ok().chunks([": head\n\n"]).stall_after(1),
            "stream_stall",
        ),
        (Reply::stall(), "timeout"),
    ] {
        let stage = Stage::alone(silent.clone(), QUICK).await;
        let began = Instant::now();
        let answer = stage.chat().await;
        // The clock moves in steps of up to 4 ms.
        assert!(began.elapsed() >= Duration::from_millis(390));
        assert_eq!(answer.status, 504);
        assert!(
            answer
                .header("x-fuseline-why")
                .contains("limit first_token")
        );
        assert!(stage.kind_counts(kind).await, "{kind}");
        within(stage.a.wait_for_left(1, AT_ONCE)).await.unwrap();

        let stage = Stage::of("openai", silent, Some(Reply::ok()), QUICK).await;
        let answer = stage.chat().await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("x-fuseline-target"), "b/m");
        assert!(text(&answer).ends_with("data: [DONE]\n\n"));
    }
}

#[tokio::test]
async fn report_44_a_long_answer_that_goes_on_is_never_cut() {
    let long = Reply::ok().events(30).gap(STEP);
    let limits = "[timeouts]\nfirst_token = \"600ms\"\nstall = \"600ms\"\nidle = \"600ms\"\nanswer = \"600ms\"\n";
    let stage = Stage::alone(long.clone(), limits).await;
    let told = text(&stage.chat().await);
    assert!(told.ends_with("data: [DONE]\n\n"), "{told}");
    assert!(told.matches("\"content\"").count() >= 30);

    let stage = Stage::alone(long, "[timeouts]\ntotal = \"300ms\"\n").await;
    let told = text(&stage.chat().await);
    assert!(told.contains("\"code\":\"stream_total\""), "{told}");
    assert!(!told.contains("[DONE]"), "{told}");
}

#[tokio::test]
async fn report_45_pings_of_any_sort_keep_no_dead_generation_alive() {
    for ping in [
        ": OPENROUTER PROCESSING\n\n",
        "event: ping\ndata: {\"type\":\"ping\"}\n\n",
        "\n",
        "id: 7\n",
        "data:\n\n",
    ] {
        let mut chunks = vec![token(), token()];
        chunks.extend((0..50).map(|_| ping.to_owned()));
        let stage = Stage::alone(Reply::ok().chunks(chunks).gap(STEP), QUICK).await;
        let told = text(&stage.chat().await);
        assert!(
            told.contains("\"code\":\"stream_stall\""),
            "{ping:?}: {told}"
        );
        assert!(stage.kind_counts("stream_stall").await, "{ping:?}");
    }
}

#[tokio::test]
async fn report_48_a_thinking_model_has_its_own_limit() {
    let slow = Reply::ok().delay(Duration::from_millis(600));
    let models = "[[models]]\nmatch = \"thinks\"\ntimeouts = { first_token = \"9s\" }\n";
    let stage = Stage::alone(slow, &format!("{models}{QUICK}")).await;
    let ask = |model: &str| {
        let body = format!("{{\"model\":\"{model}\",\"stream\":true,\"messages\":[]}}");
        send(stage.gateway.addr(), post("/v1/chat/completions", body))
    };
    let answer = ask("thinks").await;
    assert_eq!((answer.status.as_u16(), stage.a.hits()), (200, 1));
    let answer = ask("fast").await;
    assert_eq!(answer.status, 504);
    let why = answer.header("x-fuseline-why");
    assert!(
        why.contains("no answer within 400ms (limit first_token)"),
        "{why}"
    );
}

#[tokio::test]
async fn report_49_overload_as_the_first_event_falls_over_unseen() {
    let busy = Reply::ok().chunks([OVERLOADED]);
    let stage = Stage::of("anthropic", busy.clone(), Some(Reply::ok()), "").await;
    let answer = send(stage.gateway.addr(), messages("m")).await;
    assert_eq!(answer.status, 200);
    assert!(text(&answer).starts_with("event: message_start"));
    assert_eq!((stage.a.hits(), stage.b.as_ref().unwrap().hits()), (1, 1));
    assert!(stage.kind_counts("overloaded").await);

    let stage = Stage::of("anthropic", busy, None, "").await;
    let answer = send(stage.gateway.addr(), messages("m")).await;
    assert_eq!(answer.status, 529);
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.json()["error"]["type"], "overloaded_error");
}

#[tokio::test]
async fn report_51_errors_after_content_reach_the_caller_unchanged_and_the_breaker() {
    let chunks = [START, DELTA, DELTA, DELTA, OVERLOADED];
    let stage = Stage::of("anthropic", Reply::ok().chunks(chunks), None, FIVE).await;
    for call in 1..=10 {
        let answer = send(stage.gateway.addr(), messages("m")).await;
        if call <= 5 {
            assert_eq!(text(&answer), chunks.concat(), "call {call}");
        } else {
            assert_eq!(answer.status, 503, "call {call}");
        }
    }
    assert_eq!(stage.a.hits(), 5);
    let view = breaker(&stage.gateway, "a/m").await;
    assert_eq!(
        (&view["state"], &view["why"]["kind"]),
        (&"open".into(), &"overloaded".into())
    );
}

#[tokio::test]
async fn report_53_a_cut_is_told_and_no_end_is_invented() {
    for reply in [
        Reply::ok().events(60).cut_after(40),
        Reply::ok().events(60).reset_after(40),
    ] {
        let stage = Stage::alone(reply, "").await;
        let answer = stage.chat().await;
        let told = text(&answer);
        let events: Vec<&str> = told.trim_end().split("\n\n").collect();
        let (last, before) = events.split_last().unwrap();
        assert_eq!(
            before
                .iter()
                .filter(|event| event.contains("\"content\""))
                .count(),
            41
        );
        let error: serde_json::Value = serde_json::from_str(&last["data: ".len()..]).unwrap();
        assert_eq!(error["error"]["type"], "upstream_disconnect");
        assert!(!told.contains("\"finish_reason\":\"") && !told.contains("[DONE]"));
        assert!(stage.kind_counts("stream_truncated").await);
    }
}
