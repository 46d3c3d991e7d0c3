//! Field reports on what ends a stream, and what only looks like it.

use tokio::time::timeout;

use super::*;

#[tokio::test]
async fn report_56_an_end_without_a_marker_is_a_cut_unless_the_model_had_finished() {
    let done = "data: [DONE]\n\n".to_owned();
    for (chunks, is_good) in [
        (vec![token(), token()], false),
        (vec![token(), finish()], true),
        (vec![token(), done.clone()], true),
    ] {
        let stage = Stage::alone(Reply::ok().chunks(chunks.clone()), "").await;
        let told = text(&stage.chat().await);
        assert!(told.starts_with(&chunks.concat()));
        assert_eq!(told.contains("upstream_disconnect"), !is_good, "{told}");
        assert_eq!(stage.kind_counts("stream_truncated").await, !is_good);
    }
    let nothing = Reply::ok()
        .chunks([""; 0])
        .header("content-type", "text/event-stream");
    let stage = Stage::of("openai", nothing, Some(Reply::ok()), "").await;
    let answer = stage.chat().await;
    assert_eq!(answer.header("x-fuseline-target"), "b/m");
    assert!(stage.kind_counts("empty_response").await);
}

#[tokio::test]
async fn report_57_a_cut_tool_call_is_never_closed_for_the_provider() {
    let chat_call = chunk(
        r#"{"tool_calls":[{"index":0,"id":"t","function":{"name":"rm","arguments":"{\"path\":\"a"}}]}"#,
    );
    let anthropic_call = [
        START,
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"rm\",\"input\":{}}}\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"path\\\":\\\"a\"}}\n\n",
    ]
    .concat();
    let responses_call = [
        "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"name\":\"rm\"}}\n\n",
        "event: response.function_call_arguments.delta\ndata: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":0,\"delta\":\"{\\\"path\\\":\\\"a\"}\n\n",
    ]
    .concat();
    for (protocol, call, request) in [
        ("openai", chat_call, stream()),
        ("anthropic", anthropic_call, messages("m")),
        ("openai", responses_call, responses()),
    ] {
        let reply = Reply::ok()
            .chunks([call.clone(), ": more".to_owned()])
            .cut_after(1);
        let stage = Stage::of(protocol, reply, None, "").await;
        let told = text(&send(stage.gateway.addr(), request).await);
        let ours = told.strip_prefix(&call).unwrap();
        assert_eq!(ours.matches("data: ").count(), 1, "{ours}");
        assert!(ours.contains("\"error\""), "{ours}");
        for finish in [
            "_stop",
            "message_delta",
            "finish_reason",
            ".done",
            "completed",
        ] {
            assert!(!ours.contains(finish), "{ours}");
        }
    }
}

#[tokio::test]
async fn report_58_an_error_is_an_error_whatever_its_chunk_holds_besides() {
    let first =
        "data: {\"id\":\"x\",\"choices\":[],\"error\":{\"code\":502,\"message\":\"x\"}}\n\n";
    let chunks = [first, "data: [DONE]\n\n"];
    let stage = Stage::of("openai", Reply::ok().chunks(chunks), Some(Reply::ok()), "").await;
    let answer = stage.chat().await;
    assert_eq!(answer.header("x-fuseline-target"), "b/m");
    assert!(stage.kind_counts("server_error").await);

    let late = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"error\"}],\"error\":{\"code\":502,\"message\":\"x\"}}\n\n";
    let chunks = [token(), token(), late.to_owned()];
    let stage = Stage::alone(Reply::ok().chunks(chunks.clone()), "").await;
    assert_eq!(text(&stage.chat().await), chunks.concat());
    assert!(stage.kind_counts("server_error").await);
}

#[tokio::test]
async fn report_59_a_chunk_that_only_counts_passes_unchanged() {
    let usage = "{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5}";
    for counts in [
        format!("data: {{\"choices\":[],\"usage\":{usage}}}\n\n"),
        format!("data: {{\"usage\":{usage}}}\n\n"),
        format!("data: {{\"choices\":[],\"x_groq\":{{\"usage\":{usage}}}}}\n\n"),
        format!("data: {{\"choices\":null,\"usage\":{usage}}}\n\n"),
    ] {
        let chunks = [token(), finish(), counts, "data: [DONE]\n\n".to_owned()];
        let stage = Stage::alone(Reply::ok().chunks(chunks.clone()), "").await;
        assert_eq!(text(&stage.chat().await), chunks.concat());
        assert_eq!(breaker(&stage.gateway, "a").await["run"], 0);
    }
}

#[tokio::test]
async fn report_62_letters_cut_anywhere_arrive_whole() {
    let whole = [chunk("{\"content\":\"你好🙂\"}"), finish()].concat();
    let pieces = |size: usize| -> Vec<Vec<u8>> {
        whole.as_bytes().chunks(size).map(<[u8]>::to_vec).collect()
    };
    for size in [1, 2, 3, 7, 50] {
        let stage = Stage::alone(Reply::ok().chunks(pieces(size)), "").await;
        assert_eq!(text(&stage.chat().await), whole, "pieces of {size}");
    }
}

#[tokio::test]
async fn report_65_an_event_without_an_end_is_cut_off_at_its_limit() {
    let more = Bytes::from(vec![b'x'; 1 << 16]);
    let endless = std::iter::once(Bytes::from("data: ")).chain(std::iter::repeat_n(more, 1 << 11));
    let stage = Stage::alone(Reply::ok().chunks(endless.clone()), "").await;
    assert_eq!(stage.chat().await.status, 504, "nothing was committed");

    let begun = Reply::ok().chunks(std::iter::once(Bytes::from(token())).chain(endless));
    let stage = Stage::alone(begun, "").await;
    let told = text(&stage.chat().await);
    assert!(
        told.len() < 1_000 && told.contains("\"code\":\"stream_oversized\""),
        "{told}"
    );
    within(stage.a.wait_for_left(1, AT_ONCE)).await.unwrap();
}

#[tokio::test]
async fn report_68_a_drip_is_ended_where_a_rate_is_asked_for() {
    let drip = Reply::ok().events(4).gap(Duration::from_secs(4));
    let stage = Stage::alone(drip, "[timeouts]\nmin_tokens_per_second = 20\n").await;
    let body = open(stage.gateway.addr(), stream()).await.into_body();
    let told = timeout(Duration::from_secs(16), body.collect())
        .await
        .unwrap();
    let told = String::from_utf8(told.unwrap().to_bytes().to_vec()).unwrap();
    assert!(told.contains("\"code\":\"stream_slow\""), "{told}");
    assert!(told.contains("min_tokens_per_second"), "{told}");
}

#[tokio::test]
async fn report_69_each_end_of_the_responses_dialect_is_known() {
    let event =
        |name: &str, more: &str| format!("event: {name}\ndata: {{\"type\":\"{name}\"{more}}}\n\n");
    let delta = event("response.output_text.delta", ",\"delta\":\"so\"");
    let end = |status: &str, more: &str| {
        let response = format!(",\"response\":{{\"status\":\"{status}\"{more}}}");
        event(&format!("response.{status}"), &response)
    };
    let failed = end(
        "failed",
        ",\"error\":{\"code\":\"server_error\",\"message\":\"x\"}",
    );
    let incomplete = end(
        "incomplete",
        ",\"incomplete_details\":{\"reason\":\"max_output_tokens\"}",
    );
    let done = "data: [DONE]\n\n".to_owned();
    for (last, kind, is_ours) in [
        (end("completed", ""), None, false),
        (incomplete, None, false),
        (failed, Some("server_error"), false),
        (String::new(), Some("stream_truncated"), true),
        (done, Some("stream_truncated"), true),
    ] {
        let chunks = [delta.clone(), last.clone()];
        let stage = Stage::alone(Reply::ok().chunks(chunks), "").await;
        let told = text(&send(stage.gateway.addr(), responses()).await);
        assert_eq!(
            told.contains("upstream_disconnect"),
            is_ours,
            "{last}: {told}"
        );
        assert!(!is_ours || !told.contains("response.completed"), "{told}");
        match kind {
            Some(kind) => assert!(stage.kind_counts(kind).await, "{last}"),
            None => assert_eq!(breaker(&stage.gateway, "a").await["run"], 0, "{last}"),
        }
    }
}
