//! What requests say about themselves, however oddly they say it.

use proptest::prelude::*;

use super::body::MAX_PLACES;
use super::*;

fn chat(body: &[u8]) -> RequestFacts {
    RequestFacts::read(
        Protocol::OpenAi,
        &Method::POST,
        "/v1/chat/completions",
        body,
    )
}

fn rewritten(body: &str) -> String {
    let body = Bytes::from(body.to_owned());
    String::from_utf8(chat(&body).body_for("new\"☃", &body).to_vec()).unwrap()
}

#[test]
fn only_create_calls_are_routed() {
    use Protocol::{Anthropic, OpenAi};
    for (protocol, method, path, operation) in [
        (
            OpenAi,
            Method::POST,
            "/v1/chat/completions",
            Operation::Create,
        ),
        (OpenAi, Method::POST, "/v1/responses", Operation::Create),
        (OpenAi, Method::POST, "/v1/completions", Operation::Create),
        (OpenAi, Method::POST, "/v1/embeddings/", Operation::Create),
        (OpenAi, Method::POST, "/chat/completions", Operation::Create),
        (Anthropic, Method::POST, "/v1/messages", Operation::Create),
        (Anthropic, Method::POST, "//v1//messages", Operation::Create),
        (
            OpenAi,
            Method::GET,
            "/v1/chat/completions",
            Operation::Other,
        ),
        (
            OpenAi,
            Method::POST,
            "/v1/responses/r1/cancel",
            Operation::Other,
        ),
        (
            OpenAi,
            Method::POST,
            "/v1/threads/t1/messages",
            Operation::Other,
        ),
        (
            OpenAi,
            Method::POST,
            "/v1/audio/transcriptions",
            Operation::Other,
        ),
        (OpenAi, Method::GET, "/v1/models", Operation::Other),
        (
            Anthropic,
            Method::POST,
            "/v1/messages/count_tokens",
            Operation::Other,
        ),
        (
            Anthropic,
            Method::POST,
            "/v1/messages/batches",
            Operation::Other,
        ),
        (OpenAi, Method::POST, "/v1/messages", Operation::Other),
        (OpenAi, Method::POST, "", Operation::Other),
        (OpenAi, Method::POST, "/v1", Operation::Other),
    ] {
        let facts = RequestFacts::read(protocol, &method, path, b"{}");
        assert_eq!(facts.operation(), operation, "{method} {path}");
    }
}

#[test]
fn a_path_belongs_to_a_dialect() {
    for (path, protocol) in [
        ("/v1/chat/completions", Protocol::OpenAi),
        ("/v1/models", Protocol::OpenAi),
        ("/v1/models/large", Protocol::OpenAi),
        ("/", Protocol::OpenAi),
        ("/v1/messages", Protocol::Anthropic),
        ("/v1/messages/count_tokens", Protocol::Anthropic),
        ("/v1beta/models", Protocol::Gemini),
        ("/v1beta/models/g:generateContent", Protocol::Gemini),
        ("/v1/models/g:streamGenerateContent", Protocol::Gemini),
    ] {
        assert_eq!(Protocol::of_path(path), protocol, "{path}");
    }
}

#[test]
fn gemini_names_its_model_and_its_stream_in_the_path() {
    let read = |path| {
        RequestFacts::read(
            Protocol::Gemini,
            &Method::POST,
            path,
            br#"{"model":"x","stream":true}"#,
        )
    };
    for (path, model, operation, shape) in [
        (
            "/v1beta/models/g-2.5:generateContent",
            Some("g-2.5"),
            Operation::Create,
            Shape::Plain,
        ),
        (
            "/v1beta/models/g-2.5:streamGenerateContent",
            Some("g-2.5"),
            Operation::Create,
            Shape::Stream,
        ),
        (
            "/v1beta/tunedModels/mine:generateContent",
            Some("mine"),
            Operation::Create,
            Shape::Plain,
        ),
        (
            "/v1beta/models/a:b:generateContent",
            Some("a:b"),
            Operation::Create,
            Shape::Plain,
        ),
        (
            "/v1beta/models/g:countTokens",
            Some("g"),
            Operation::Other,
            Shape::Plain,
        ),
        (
            "/v1beta/models/:generateContent",
            None,
            Operation::Other,
            Shape::Plain,
        ),
        ("/v1beta/models", None, Operation::Other, Shape::Plain),
        ("/v1beta/models/g", None, Operation::Other, Shape::Plain),
        (
            "/v1beta/files/f:generateContent",
            None,
            Operation::Other,
            Shape::Plain,
        ),
    ] {
        let facts = read(path);
        assert_eq!(
            (facts.model(), facts.operation(), facts.shape()),
            (model, operation, shape),
            "{path}"
        );
    }
    let path = "/v1beta/models/g-2.5:streamGenerateContent";
    assert_eq!(
        read(path).path_for("other", path),
        "/v1beta/models/other:streamGenerateContent"
    );
    let body = Bytes::from_static(br#"{"model":"x"}"#);
    assert_eq!(read(path).body_for("other", &body), body);
    assert_eq!(
        chat(b"{}").path_for("other", "/v1/responses"),
        "/v1/responses"
    );
}

#[test]
fn the_model_is_found_however_it_is_written() {
    for (body, model) in [
        (r#"{"model":"a"}"#, Some("a")),
        (" \r\n\t{ \"model\" :\n \"a\" } ", Some("a")),
        ("\u{feff}{\"model\":\"a\"}", Some("a")),
        (r#"{"\u006dodel":"a"}"#, Some("a")),
        (r#"{"model":"a\/\u00e9\"\ud83d\ude42"}"#, Some("a/é\"🙂")),
        (
            r#"{"x":{"model":"no"},"messages":["{\"model\":\"no\"}"],"model":"a","y":[{"model":"no"}]}"#,
            Some("a"),
        ),
        (r#"{"model":"no","model":"a"}"#, Some("a")),
        (r#"{"model":"no","model":null}"#, None),
        (r#"{"model":5}"#, None),
        (r#"{"Model":"a"}"#, None),
        (r#"["model","a"]"#, None),
        (r#""model""#, None),
        (r#"{"model":"a"} x"#, None),
        (r#"{"model":"a"}{"model":"b"}"#, None),
        (r#"{"model":"a","x":"#, None),
        (r#"{"model":"a",}"#, None),
        (r#"{"model":"\ud800"}"#, None),
        ("", None),
        ("\u{feff}", None),
        ("{", None),
    ] {
        assert_eq!(chat(body.as_bytes()).model(), model, "{body}");
    }
    assert_eq!(chat(b"{\"model\":\"\xff\"}").model(), None);
    assert_eq!(
        chat(format!(r#"{{"model":"{}"}}"#, "x".repeat(MAX_NAME + 1)).as_bytes()).model(),
        None
    );
}

#[test]
fn a_stream_is_asked_for_by_the_last_true() {
    for (body, shape) in [
        (r#"{"stream":true}"#, Shape::Stream),
        (r#"{"stream" : true , "model":"a"}"#, Shape::Stream),
        (r#"{"stream":false,"stream":true}"#, Shape::Stream),
        (r#"{"stream":true,"stream":false}"#, Shape::Plain),
        (r#"{"stream":"true"}"#, Shape::Plain),
        (r#"{"stream":null}"#, Shape::Plain),
        (r#"{"options":{"stream":true}}"#, Shape::Plain),
        ("stream=true", Shape::Plain),
    ] {
        assert_eq!(chat(body.as_bytes()).shape(), shape, "{body}");
    }
}

#[test]
fn rewriting_touches_nothing_but_the_model() {
    for (body, expected) in [
        (
            r#"{ "model" : "a" , "n":1.0e5 }"#,
            r#"{ "model" : "new\"☃" , "n":1.0e5 }"#,
        ),
        (
            r#"{"model":1,"x":{"model":"a"},"\u006dodel":"b"}"#,
            r#"{"model":"new\"☃","x":{"model":"a"},"\u006dodel":"new\"☃"}"#,
        ),
        (
            "\u{feff}{\"model\":\"a\"}\n",
            "\u{feff}{\"model\":\"new\\\"☃\"}\n",
        ),
        (r#"{"model":null}"#, r#"{"model":null}"#),
        ("no json", "no json"),
    ] {
        assert_eq!(rewritten(body), expected);
    }
}

#[test]
fn depth_size_and_repetition_do_no_harm() {
    let deep = format!(
        r#"{{"x":{}{},"model":"a"}}"#,
        "[".repeat(200_000),
        "]".repeat(200_000)
    );
    assert_eq!(chat(deep.as_bytes()).model(), Some("a"));
    let huge = format!(r#"{{"x":"{}","model":"a"}}"#, "\\\"".repeat(4_000_000));
    assert_eq!(chat(huge.as_bytes()).model(), Some("a"));
    let keys = |count| format!("{{{}\"stream\":true}}", r#""model":"a","#.repeat(count));
    assert_eq!(chat(keys(MAX_PLACES).as_bytes()).model(), Some("a"));
    let many = chat(keys(500_000).as_bytes());
    assert_eq!((many.model(), many.shape()), (None, Shape::Stream));
}

/// A JSON text whose top level holds `model` somewhere, in any company.
fn object_with_model() -> impl Strategy<Value = (String, String)> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        "\\PC{0,8}".prop_map(|text| serde_json::Value::from(text).to_string()),
    ];
    let value = leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(" ,\n"))),
            prop::collection::vec(inner, 0..4).prop_map(|items| {
                let fields: Vec<_> = items
                    .iter()
                    .map(|item| format!("\"model\": {item}"))
                    .collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    });
    (
        prop::collection::vec(("[a-z]{0,6}", value), 0..6),
        "\\PC{1,20}",
        any::<prop::sample::Index>(),
    )
        .prop_map(|(others, name, at)| {
            let mut fields: Vec<_> = others
                .iter()
                .filter(|(key, _)| key != "model")
                .map(|(key, value)| format!("\"{key}\" : {value}"))
                .collect();
            fields.insert(
                at.index(fields.len() + 1),
                format!("\"model\":{}", serde_json::Value::from(name.as_str())),
            );
            (format!("{{{}}}", fields.join(",")), name)
        })
}

proptest! {
    #[test]
    fn facts_agree_with_a_full_parser((body, name) in object_with_model()) {
        let facts = chat(body.as_bytes());
        prop_assert_eq!(facts.model(), Some(name.as_str()));
        let bytes = Bytes::from(body.clone());
        let rewritten = chat(&bytes).body_for("other", &bytes);
        let mut parsed: serde_json::Value = serde_json::from_str(&body).unwrap();
        parsed["model"] = "other".into();
        prop_assert_eq!(serde_json::from_slice::<serde_json::Value>(&rewritten).unwrap(), parsed);
        let back = chat(&rewritten).body_for(&name, &rewritten);
        let facts = chat(&back);
        prop_assert_eq!(facts.model(), Some(name.as_str()));
    }

    #[test]
    fn mutated_bytes_never_panic_and_never_mislead(
        (body, _) in object_with_model(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = body.into_bytes();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        for body in [bytes.clone(), bytes[..cut.index(bytes.len())].to_vec()] {
            let body = Bytes::from(body);
            let facts = chat(&body);
            let parsed = serde_json::from_slice::<serde_json::Value>(&body).ok();
            if let Some(parsed) = parsed {
                prop_assert_eq!(facts.model(), parsed.get("model").and_then(serde_json::Value::as_str).filter(|name| name.len() <= MAX_NAME));
            }
            let again = facts.body_for("other", &body);
            if facts.model().is_some() {
                let facts = chat(&again);
                prop_assert_eq!(facts.model(), Some("other"));
            } else {
                prop_assert_eq!(again, body);
            }
        }
    }

    #[test]
    fn paths_never_panic(path in "\\PC{0,40}", tail in "(/models/)?[a-z:/é]{0,20}") {
        for path in [&path, &tail] {
            let facts = RequestFacts::read(Protocol::of_path(path), &Method::POST, path, b"");
            let _ = facts.path_for("other", path);
        }
    }
}

#[test]
fn the_language_of_a_stream_is_that_of_its_path() {
    use Protocol::{Anthropic, Gemini, OpenAi};
    for (protocol, path, dialect) in [
        (OpenAi, "/v1/chat/completions/", Some(Dialect::OpenAiChat)),
        (OpenAi, "/v1/completions", Some(Dialect::OpenAiChat)),
        (
            OpenAi,
            "/openai/deployments/x/chat/completions",
            Some(Dialect::OpenAiChat),
        ),
        (OpenAi, "/v1/responses", Some(Dialect::OpenAiResponses)),
        (OpenAi, "/api/chat", Some(Dialect::Ollama)),
        (OpenAi, "/v2/chat", Some(Dialect::Cohere)),
        (OpenAi, "/model/x/converse-stream", Some(Dialect::Bedrock)),
        (OpenAi, "/v1/threads/t/messages", None),
        (OpenAi, "/v1/embeddings", None),
        (Anthropic, "//v1//messages", Some(Dialect::Anthropic)),
        (Anthropic, "/v1/chat/completions", None),
        (
            Gemini,
            "/v1beta/models/m:streamGenerateContent",
            Some(Dialect::Gemini),
        ),
        (Gemini, "/v1beta/models/m:countTokens", None),
    ] {
        let facts = RequestFacts::read(protocol, &Method::POST, path, b"{}");
        assert_eq!(facts.dialect(), dialect, "{path}");
    }
}
