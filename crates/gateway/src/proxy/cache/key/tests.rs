//! What two requests must have in common to share an answer, and what they may differ in.

use bytes::Bytes;
use fuseline_llm::{Fallback, RequestFacts};
use http::Method;
use http::header::{HeaderName, HeaderValue};

use super::super::super::ingress::{Lane, Origin};
use super::super::super::memory::Memory;
use super::super::super::replay::ReplayMemory;
use super::*;
use crate::config::{Overrides, Sources};

const CHAT: &str = "/v1/chat/completions";
const BODY: &str = r#"{"model":"m","messages":[{"role":"user","content":"Why?"}],"seed":1}"#;

struct Asked<'a> {
    path: &'a str,
    headers: &'a [(&'static str, &'static str)],
    body: &'a str,
    route: &'static str,
}

impl Default for Asked<'_> {
    fn default() -> Self {
        Self {
            path: CHAT,
            headers: &[],
            body: BODY,
            route: "*",
        }
    }
}

impl Asked<'_> {
    fn slot(&self) -> Option<Slot> {
        let limits = Sources {
            file: None,
            overrides: &Overrides::default(),
            env: &|_| None,
        }
        .load()
        .config
        .unwrap()
        .limits;
        let (path, query) = match self.path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (self.path, None),
        };
        let headers: HeaderMap = self
            .headers
            .iter()
            .map(|(name, value)| {
                let name = HeaderName::from_static(name);
                (name, HeaderValue::from_static(value))
            })
            .collect();
        let protocol = Protocol::of_path(path);
        let body = Bytes::copy_from_slice(self.body.as_bytes());
        let tenant = Tenant::of(b"salt", &headers, query);
        let call = Call {
            budget: std::time::Duration::MAX,
            is_repeated: false,
            facts: RequestFacts::read(protocol, &Method::POST, path, &body),
            method: Method::POST,
            path: path.to_owned(),
            query: query.map(str::to_owned),
            headers,
            replay: ReplayMemory::new(&limits).keep(body.len()),
            body,
            lane: Lane::Route(0),
            fallback: Fallback::On,
            slot: None,
            tenant: None,
            origin: Origin::Caller,
            place: None,
            _share: Memory::new(0).share(),
        };
        Slot::of(&call, self.route, tenant)
    }

    fn plain(&self) -> Digest {
        *self.slot().unwrap().plain()
    }

    fn streamed(&self) -> Digest {
        self.slot().unwrap().streamed().unwrap().digest
    }
}

fn plain(body: &str) -> Digest {
    Asked {
        body,
        ..Asked::default()
    }
    .plain()
}

fn with(headers: &[(&'static str, &'static str)]) -> Digest {
    Asked {
        headers,
        ..Asked::default()
    }
    .plain()
}

#[test]
fn the_order_of_keys_spaces_and_the_shape_do_not_matter() {
    for same in [
        r#"{ "seed": 1, "messages": [ {"content": "Why?", "role": "user"} ], "model": "m" }"#,
        r#"{"model":"m","messages":[{"role":"user","content":"Wh\u0079?"}],"seed":1}"#,
        r#"{"stream":true,"model":"m","messages":[{"role":"user","content":"Why?"}],"seed":1}"#,
        r#"{"stream_options":{"include_usage":true},"stream":true,"model":"m","messages":[{"role":"user","content":"Why?"}],"seed":1}"#,
    ] {
        assert_eq!(plain(same), plain(BODY), "{same}");
    }
}

#[test]
fn everything_else_in_the_body_does() {
    let bodies = [
        BODY,
        "{}",
        r#"{"a":{"b":1,"c":2}}"#,
        r#"{"a":{"b":1},"c":2}"#,
        r#"{"a":[["b"],"c"]}"#,
        r#"{"a":["b",["c"]]}"#,
        r#"{"a":"1"}"#,
        r#"{"a":1}"#,
        r#"{"a":1.5}"#,
        r#"{"a":null}"#,
        r#"{"a":"null"}"#,
        r#"{"a":{}}"#,
        r#"{"a":[]}"#,
        r#"{"a":{"stream":true}}"#,
    ];
    for (at, one) in bodies.iter().enumerate() {
        for other in &bodies[at + 1..] {
            assert_ne!(plain(one), plain(other), "{one} {other}");
        }
    }
}

#[test]
fn who_asks_by_which_route_and_under_which_beta_does_too() {
    let cases = [
        with(&[]),
        with(&[("authorization", "Bearer one")]),
        with(&[("authorization", "Bearer two")]),
        with(&[("x-api-key", "Bearer one")]),
        with(&[("x-goog-api-key", "one")]),
        with(&[("cookie", "session=1")]),
        with(&[("openai-organization", "one")]),
        with(&[("anthropic-beta", "one")]),
        with(&[("accept-encoding", "gzip")]),
        Asked {
            route: "m",
            ..Asked::default()
        }
        .plain(),
        Asked {
            path: "/v1/chat/completions?key=one",
            ..Asked::default()
        }
        .plain(),
        Asked {
            path: "/v1/chat/completions?x=1",
            ..Asked::default()
        }
        .plain(),
        Asked {
            path: "/v1/responses",
            ..Asked::default()
        }
        .plain(),
    ];
    for (at, one) in cases.iter().enumerate() {
        assert!(!cases[at + 1..].contains(one), "case {at}");
    }
    let noise = [("traceparent", "1"), ("x-stainless-retry-count", "2")];
    assert_eq!(with(&noise), with(&[]));
}

#[test]
fn streams_of_different_makes_are_kept_apart() {
    let stream = |options: &str| {
        let body = format!("{{\"stream\":true,{options}\"model\":\"m\"}}");
        Asked {
            body: &body,
            ..Asked::default()
        }
        .streamed()
    };
    let with_usage = stream("\"stream_options\":{\"include_usage\":true},");
    assert_ne!(stream(""), with_usage);
    let gemini = |path| Asked {
        path,
        ..Asked::default()
    };
    let list = gemini("/v1beta/models/g:streamGenerateContent");
    let sse = gemini("/v1beta/models/g:streamGenerateContent?alt=sse");
    let plain = gemini("/v1beta/models/g:generateContent");
    assert_ne!(list.streamed(), sse.streamed());
    assert_eq!(list.plain(), sse.plain());
    assert_eq!(list.plain(), plain.plain());
    assert!(plain.slot().unwrap().streamed().is_none());
}

#[test]
fn what_is_no_object_or_no_create_call_has_no_slot() {
    for body in ["", "[]", "no json", "{\"a\":1"] {
        let asked = Asked {
            body,
            ..Asked::default()
        };
        assert!(asked.slot().is_none(), "{body}");
    }
    let files = Asked {
        path: "/v1/files",
        ..Asked::default()
    };
    assert!(files.slot().is_none());
}
