//! A provider that answers well with the caller's canary, or badly in as many ways as there are numbers.

use fastrand::Rng;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::CANARY;
use crate::raw::find;
use crate::support::spawn;

/// Starts it, and gives its URL.
pub(super) async fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    spawn(async move {
        while let Ok((caller, _)) = listener.accept().await {
            spawn(serve(caller));
        }
    });
    url
}

async fn serve(mut caller: TcpStream) {
    let mut seen = Vec::new();
    loop {
        let Some(body) = request(&mut caller, &mut seen).await else {
            return;
        };
        let text = String::from_utf8_lossy(&body);
        let canary = text
            .find("canary-")
            .and_then(|at| text.get(at..at + CANARY));
        let canary = canary.unwrap_or_default();
        let is_stream = text.contains("\"stream\":true");
        let way = after(&text, "way-").and_then(|rest| rest.split('.').next()?.parse().ok());
        let (answer, keeps) = match way {
            Some(way) => (bad(canary, is_stream, &mut Rng::with_seed(way)), false),
            None => (good(canary, is_stream), true),
        };
        if caller.write_all(&answer).await.is_err() || !keeps {
            return;
        }
    }
}

fn after<'t>(text: &'t str, what: &str) -> Option<&'t str> {
    text.split_once(what).map(|(_, rest)| rest)
}

/// The next request's body. What the gateway sends always has a length, or no body.
async fn request(caller: &mut TcpStream, seen: &mut Vec<u8>) -> Option<Vec<u8>> {
    loop {
        if let Some(end) = find(seen, b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&seen[..end]).to_ascii_lowercase();
            assert!(!head.contains("transfer-encoding"), "{head}");
            let length =
                after(&head, "content-length: ").and_then(|rest| rest.lines().next()?.parse().ok());
            let length: usize = length.unwrap_or(0);
            while seen.len() < end + 4 + length {
                if caller.read_buf(seen).await.ok()? == 0 {
                    return None;
                }
            }
            let body = seen[end + 4..end + 4 + length].to_vec();
            seen.drain(..end + 4 + length);
            return Some(body);
        }
        if caller.read_buf(seen).await.ok()? == 0 {
            return None;
        }
    }
}

fn token(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

fn good(canary: &str, is_stream: bool) -> Vec<u8> {
    let (kind, body) = if is_stream {
        let stop = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
        ("text/event-stream", token(canary) + stop)
    } else {
        let message = format!("{{\"role\":\"assistant\",\"content\":\"{canary}\"}}");
        let body = format!(
            "{{\"choices\":[{{\"index\":0,\"finish_reason\":\"stop\",\"message\":{message}}}]}}"
        );
        ("application/json", body)
    };
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// The connection is closed after it.
fn bad(canary: &str, is_stream: bool, rng: &mut Rng) -> Vec<u8> {
    let mut answer = good(canary, is_stream);
    match rng.u8(..12) {
        0 => answer = (0..rng.usize(..3_000)).map(|_| rng.u8(..)).collect(),
        1 => answer.truncate(rng.usize(..answer.len())),
        2 | 3 => {
            for _ in 0..rng.usize(1..6) {
                let at = rng.usize(..answer.len());
                answer[at] = rng.u8(..);
            }
        }
        4 | 5 => answer = bad_head(canary, rng),
        _ => answer = bad_stream(canary, rng),
    }
    answer
}

fn bad_head(canary: &str, rng: &mut Rng) -> Vec<u8> {
    let status = rng
        .choice([
            "200", "204", "101", "304", "307", "400", "429", "500", "529", "999", "099", "x",
        ])
        .unwrap();
    let wide = "w".repeat(rng.usize(..60_000));
    let mut head = format!("HTTP/1.1 {status} \u{e9}?\r\n");
    if rng.u8(..4) == 0 {
        head = "HTTP/1.1 103 Early\r\n\r\n".repeat(rng.usize(..200)) + &head;
    }
    for _ in 0..rng.usize(..6) {
        head += match rng.u8(..16) {
            0 => "content-length: 3\r\ncontent-length: 4\r\n",
            1 => "content-length: -7\r\n",
            2 => "transfer-encoding: chunked\r\ncontent-length: 3\r\n",
            3 => "transfer-encoding: gzip\r\n",
            4 => "content-encoding: gzip\r\n",
            5 => "content-encoding: br, zstd\r\n",
            6 => "content-type: text/event-stream\r\n",
            7 => "content-type: application/json\r\n",
            8 => "retry-after: -1\r\n",
            9 => "retry-after: Mon, 99 Foo 2026\r\nretry-after-ms: 1e400\r\n",
            10 => "connection: content-type, content-length\r\n",
            11 => "location: http://127.0.0.1:9/\r\n",
            12 => "x-fuseline-attempts: 77\r\n",
            13 => "x: \0\r\n",
            14 => "set-cookie: a\r\n b\r\n",
            _ => "no colon\r\n",
        };
    }
    if rng.u8(..4) == 0 {
        head += &format!("x-wide: {wide}\r\n");
    }
    format!("{head}\r\n{{\"error\":{{\"message\":\"{canary}\"}}}}").into_bytes()
}

/// A stream up to the end of its connection, of good events and bad.
fn bad_stream(canary: &str, rng: &mut Rng) -> Vec<u8> {
    let kind = rng
        .choice([
            "text/event-stream",
            "application/x-ndjson",
            "application/vnd.amazon.eventstream",
        ])
        .unwrap();
    let mut bytes = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n")
        .into_bytes();
    for _ in 0..rng.usize(..12) {
        match rng.u8(..14) {
            0..=4 => bytes.extend(token(canary).as_bytes()),
            5 => bytes.extend((0..rng.usize(..2_000)).map(|_| rng.u8(..))),
            6 => bytes.extend(format!("data: {}", "x".repeat(rng.usize(..1_300_000))).as_bytes()),
            7 => bytes.extend(b"data: {\"choices\":[\n\n"),
            8 => bytes.extend(b"data: {\"error\":{\"message\":\"no\"}}\n\n"),
            9 => bytes.extend(b"event: \xff\xfe\ndata\n:\n\r\n\r"),
            10 => bytes.extend(b"data: [DONE]\n\n"),
            11 => bytes.extend(vec![b'['; rng.usize(..50_000)]),
            12 => bytes.extend(u32::MAX.to_be_bytes()),
            _ => bytes.extend(b"id: 1\nretry: -1\n\n"),
        }
    }
    bytes
}
