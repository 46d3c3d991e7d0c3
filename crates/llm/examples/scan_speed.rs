//! What scanning, reading and guarding a stream costs: nanoseconds of one core per event, by framing and dialect.

use std::hint::black_box;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fuseline_core::Tick;
use fuseline_llm::{Dialect, Framing, Piece, Scanner, StreamGuard, StreamReader, StreamTimers};

/// The size of a chunk: what one read of a socket brings when a provider is quick.
const CHUNK: usize = 16 * 1024;
const EVENTS: usize = 1_000;
const PATIENCE: Duration = Duration::from_millis(500);

struct Case {
    name: &'static str,
    framing: Framing,
    dialect: Dialect,
    event: Vec<u8>,
}

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{:<22}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}",
        "one event", "bytes", "scan", "scan, read", "cut, read", "guard", "cut, guard"
    )?;
    for case in cases() {
        let stream = case.event.repeat(EVENTS);
        let scanned = nanoseconds(|| scan(&case, &stream, CHUNK, |_| true));
        let read = nanoseconds(|| scan_and_read(&case, &stream, CHUNK));
        // Every event comes in two chunks, and most in three.
        let cut = nanoseconds(|| scan_and_read(&case, &stream, case.event.len() / 2));
        let stream = Bytes::from(stream);
        let guarded = nanoseconds(|| guard(&case, &stream, CHUNK));
        let cut_guarded = nanoseconds(|| guard(&case, &stream, case.event.len() / 2));
        writeln!(
            out,
            "{:<22}{:>12}{scanned:>12.0}{read:>12.0}{cut:>12.0}{guarded:>12.0}{cut_guarded:>12.0}",
            case.name,
            case.event.len()
        )?;
    }
    Ok(())
}

fn scan_and_read(case: &Case, stream: &[u8], size: usize) -> usize {
    let mut reader = StreamReader::new(case.dialect);
    scan(case, stream, size, |event| reader.read(event).is_content())
}

/// How many events' bytes went on.
fn guard(case: &Case, stream: &Bytes, size: usize) -> usize {
    let timers = StreamTimers::default();
    let (dialect, framing) = (case.dialect, case.framing);
    let mut guard = StreamGuard::new(dialect, framing, timers, Duration::ZERO, Tick::ZERO);
    let (mut begin, mut forwarded) = (0, 0);
    while begin < stream.len() {
        let end = stream.len().min(begin + size);
        guard.bytes(stream.slice(begin..end), Tick::ZERO);
        while let Some(bytes) = guard.forward() {
            forwarded += black_box(bytes).len();
        }
        begin = end;
    }
    forwarded / case.event.len()
}

/// How many events passed the question.
fn scan(
    case: &Case,
    stream: &[u8],
    size: usize,
    mut question: impl FnMut(&fuseline_llm::StreamEvent<'_>) -> bool,
) -> usize {
    let mut scanner = Scanner::new(case.framing, Scanner::EVENT_LIMIT);
    let mut count = 0;
    for chunk in stream.chunks(size) {
        let mut rest = chunk;
        while let Some(scanned) = scanner.scan(rest) {
            if let Piece::Event(event) = &scanned.piece {
                count += usize::from(question(black_box(event)));
            }
            rest = rest.get(scanned.end..).unwrap_or_default();
        }
    }
    count
}

/// The best of many passes, each shorter than a time slice, per event.
#[expect(
    clippy::disallowed_methods,
    clippy::panic,
    reason = "a benchmark reads the clock, and measures nothing when events are missed"
)]
fn nanoseconds(pass: impl Fn() -> usize) -> f64 {
    let begin = Instant::now();
    let mut best = Duration::MAX;
    while begin.elapsed() < PATIENCE {
        let begin = Instant::now();
        let count = pass();
        best = best.min(begin.elapsed());
        if count != EVENTS {
            panic!("{count} of {EVENTS} events were seen");
        }
    }
    best.as_secs_f64() * 1e9 / EVENTS as f64
}

fn cases() -> Vec<Case> {
    let text = |name, framing, dialect, event: &str| Case {
        name,
        framing,
        dialect,
        event: event.as_bytes().to_vec(),
    };
    vec![
        text("sse, openai chat", Framing::Sse, Dialect::OpenAiChat, "data: {\"id\":\"chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG\",\"object\":\"chat.completion.chunk\",\"created\":1796040000,\"model\":\"gpt-4o-2024-08-06\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_44709d6fcb\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" token\"},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}\n\n"),
        text("sse, openai responses", Framing::Sse, Dialect::OpenAiResponses, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"msg_67c9fdcf37fc8190ba82116e33fb28c507b8b0ad4e5eb654\",\"output_index\":0,\"content_index\":0,\"delta\":\" token\",\"logprobs\":[],\"sequence_number\":17}\n\n"),
        text("sse, anthropic", Framing::Sse, Dialect::Anthropic, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" token\"}}\n\n"),
        text("sse, gemini", Framing::Sse, Dialect::Gemini, "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \" some tokens at once\"}],\"role\": \"model\"},\"index\": 0}],\"usageMetadata\": {\"promptTokenCount\": 3,\"totalTokenCount\": 3},\"modelVersion\": \"gemini-2.5-pro\",\"responseId\": \"q1lIaJbZ\"}\r\n\r\n"),
        text("sse, cohere", Framing::Sse, Dialect::Cohere, "event: content-delta\ndata: {\"type\":\"content-delta\",\"index\":0,\"delta\":{\"message\":{\"content\":{\"text\":\" token\"}}}}\n\n"),
        text("lines, ollama", Framing::NdJson, Dialect::Ollama, "{\"model\":\"llama3.2\",\"created_at\":\"2026-11-30T12:00:00.123456Z\",\"message\":{\"role\":\"assistant\",\"content\":\" token\"},\"done\":false}\n"),
        text("array, gemini", Framing::JsonArray, Dialect::Gemini, "{\"candidates\": [{\"content\": {\"parts\": [{\"text\": \" some tokens at once\"}],\"role\": \"model\"},\"index\": 0}],\"usageMetadata\": {\"promptTokenCount\": 3,\"totalTokenCount\": 3},\"modelVersion\": \"gemini-2.5-pro\",\"responseId\": \"q1lIaJbZ\"}\r\n,\r\n"),
        Case {
            name: "frames, bedrock",
            framing: Framing::EventStream,
            dialect: Dialect::Bedrock,
            event: frame(&[(":event-type", "contentBlockDelta"), (":content-type", "application/json"), (":message-type", "event")], br#"{"contentBlockIndex":0,"delta":{"text":" token"},"p":"abcdefghijklmnopqrstuvwxyz"}"#),
        },
    ]
}

fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(name.len() as u8);
        head.extend_from_slice(name.as_bytes());
        head.push(7);
        head.extend((value.len() as u16).to_be_bytes());
        head.extend_from_slice(value.as_bytes());
    }
    let total = (16 + head.len() + payload.len()) as u32;
    let mut frame = total.to_be_bytes().to_vec();
    frame.extend((head.len() as u32).to_be_bytes());
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(&head);
    frame.extend_from_slice(payload);
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    frame
}
