//! The same bytes come out, of every recorded stream in every division.

use std::collections::BTreeMap;

use fuseline::classify::{Dialect, Framing, StreamEnding};
use fuseline::{Kind, State, StreamError, StreamTerms};
use proptest::prelude::*;
use serde::Deserialize;

use super::world::{World, at_once};
use crate::support::{breaker, patient};

#[derive(Clone, Deserialize)]
struct Recorded {
    id: String,
    dialect: String,
    framing: String,
    transport: String,
    kind: String,
    chunks: Vec<Chunk>,
}

#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Chunk {
    Text(String),
    Frame {
        headers: BTreeMap<String, String>,
        payload: String,
    },
}

impl Recorded {
    fn all() -> Vec<Self> {
        let lines = include_str!("../../../../llm/tests/data/streams.jsonl").lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn terms(&self) -> StreamTerms {
        let dialect = match self.dialect.as_str() {
            "anthropic" => Dialect::Anthropic,
            "bedrock" => Dialect::Bedrock,
            "cohere" => Dialect::Cohere,
            "gemini" => Dialect::Gemini,
            "ollama" => Dialect::Ollama,
            "openai_chat" => Dialect::OpenAiChat,
            "openai_responses" => Dialect::OpenAiResponses,
            other => panic!("{other} is no dialect"),
        };
        let framing = match self.framing.as_str() {
            "event_stream" => Framing::EventStream,
            "json_array" => Framing::JsonArray,
            "ndjson" => Framing::NdJson,
            "sse" => Framing::Sse,
            other => panic!("{other} is no framing"),
        };
        let provider = self.id.split('-').next().unwrap();
        StreamTerms::new(dialect)
            .framing(framing)
            .provider(provider)
    }

    fn bytes(&self) -> Vec<u8> {
        self.chunks.iter().flat_map(Chunk::bytes).collect()
    }
}

impl Chunk {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.as_bytes().to_vec(),
            Self::Frame { headers, payload } => frame(headers, payload),
        }
    }
}

/// A frame of AWS.
fn frame(headers: &BTreeMap<String, String>, payload: &str) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(u8::try_from(name.len()).unwrap());
        head.extend_from_slice(name.as_bytes());
        head.push(7);
        head.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        head.extend_from_slice(value.as_bytes());
    }
    let total = u32::try_from(16 + head.len() + payload.len()).unwrap();
    let mut frame = total.to_be_bytes().to_vec();
    frame.extend(u32::try_from(head.len()).unwrap().to_be_bytes());
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    frame.extend(head);
    frame.extend_from_slice(payload.as_bytes());
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    frame
}

/// What comes out of a stream in these chunks, and how it ended.
fn pass(recorded: &Recorded, chunks: Vec<&[u8]>) -> (Vec<u8>, Option<StreamEnding>) {
    let (breaker, clock) = breaker(&patient());
    let world = World::new(&clock);
    let provider = world.provider(at_once(chunks));
    let mut stream = world.guard(&breaker, provider, recorded.terms());
    let (out, error) = world.read(&mut stream);
    assert_eq!(breaker.snapshot().in_flight, 0, "{}", recorded.id);
    match error {
        None => assert_eq!(stream.ending(), Some(StreamEnding::Complete)),
        Some(StreamError::Incomplete { ending, .. }) => assert_eq!(stream.ending(), Some(ending)),
        Some(other) => panic!("{}: {other}", recorded.id),
    }
    (out, stream.ending())
}

/// Up to an error that ends it, all of a stream comes out.
fn check(recorded: &Recorded, chunks: Vec<&[u8]>) {
    let stream = recorded.bytes();
    let (out, ending) = pass(recorded, chunks);
    match ending {
        Some(StreamEnding::Error) => {
            let end = String::from_utf8_lossy(&out).into_owned();
            assert!(stream.starts_with(&out), "{}: {end}", recorded.id);
            assert!(!out.is_empty() && !end.contains("[DONE]"), "{end}");
        }
        _ => assert_eq!(out, stream, "{}, {ending:?}", recorded.id),
    }
}

#[test]
fn recorded_streams_cut_anywhere() {
    for recorded in Recorded::all() {
        let stream = recorded.bytes();
        for cut in 0..stream.len() {
            let (before, after) = stream.split_at(cut);
            check(&recorded, vec![before, after]);
        }
        check(&recorded, stream.chunks(1).collect());
    }
}

proptest! {
    #[test]
    fn recorded_streams_in_any_division(
        which in any::<prop::sample::Index>(),
        sizes in prop::collection::vec(1_usize..200, 1..20),
    ) {
        let recorded = Recorded::all();
        let recorded = which.get(&recorded);
        let stream = recorded.bytes();
        let mut rest = &stream[..];
        let mut chunks = Vec::new();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (chunk, after) = rest.split_at((*size).min(rest.len()));
            chunks.push(chunk);
            rest = after;
        }
        check(recorded, chunks);
    }
}

#[test]
fn every_recorded_stream_is_recorded_as_what_it_is() {
    for recorded in Recorded::all() {
        let (breaker, clock) = breaker(&patient());
        breaker.try_acquire().unwrap().failure(Kind::Network);
        let world = World::new(&clock);
        let chunks = recorded.chunks.iter().map(Chunk::bytes);
        let mut script: Vec<_> = (1..).zip(chunks.map(|chunk| Some(Ok(chunk)))).collect();
        match recorded.transport.as_str() {
            "eof" => script.push((1_000, None)),
            "reset" => script.push((1_000, Some(Err("reset")))),
            _ => {}
        }
        let provider = world.provider(script);
        let mut stream = world.guard(&breaker, provider, recorded.terms());
        if recorded.transport == "client_abort" {
            assert!(world.next(&mut stream).is_some());
        } else {
            let (_, error) = world.read(&mut stream);
            let is_answer = matches!(recorded.kind.as_str(), "success" | "content_policy");
            assert_eq!(error.is_none(), is_answer, "{}: {error:?}", recorded.id);
        }
        let verdict = stream.verdict().cloned();
        let judged = verdict.as_ref().and_then(|verdict| verdict.kind);
        let is_limit = matches!(judged, Some(Kind::RateLimit | Kind::QuotaExhausted));
        let is_theirs = is_limit || verdict.is_some_and(|verdict| verdict.provider_fault);
        drop(stream);
        let seen = breaker.snapshot();
        let is_abort = recorded.transport == "client_abort";
        match recorded.kind.as_str() {
            "success" => assert_eq!((judged, seen.run), (None, u32::from(is_abort))),
            kind => assert_eq!(judged.map(Kind::as_str), Some(kind), "{}", recorded.id),
        }
        let is_counted = seen.run == 2 || seen.state == State::Open;
        assert_eq!(is_counted, is_theirs, "{}: {seen:?}", recorded.id);
        assert_eq!(seen.in_flight, 0);
    }
}
