//! Requests that go wrong in every way that could be thought of, and in some that nobody thought of.

use fastrand::Rng;

use crate::support::CHAT;

/// A good request, whose connection is closed after it.
pub(super) fn good(canary: &str, is_stream: bool) -> Vec<u8> {
    let body = format!(r#"{{"model":"m","stream":{is_stream},"user":"{canary}"}}"#);
    let length = body.len();
    format!("POST {CHAT} HTTP/1.1\r\nhost: g\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// A bad one, and whether nothing more is said after it.
pub(super) fn draw(canary: &str, rng: &mut Rng) -> (Vec<u8>, bool) {
    match rng.u8(..10) {
        0 => (noise(rng), true),
        1 => (flipped(good(canary, rng.bool()), rng), true),
        2 => {
            let mut cut = good(canary, rng.bool());
            cut.truncate(rng.usize(..cut.len()));
            // Some stay and say nothing; the limits are for them.
            (cut, !rng.u8(..8).is_multiple_of(8))
        }
        3..=5 => (bad_head(canary, rng), true),
        6 | 7 => (bad_body(canary, rng), true),
        // These the provider answers badly.
        _ => (for_the_provider(canary, rng), false),
    }
}

fn pick<'p>(choices: &[&'p str], rng: &mut Rng) -> &'p str {
    rng.choice(choices).unwrap()
}

fn noise(rng: &mut Rng) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..rng.usize(1..2_000)).map(|_| rng.u8(..)).collect();
    if rng.bool() {
        bytes.splice(0..0, *b"POST / HTTP/1.1\r\n");
    }
    bytes.extend(b"\r\n\r\n");
    bytes
}

fn flipped(mut bytes: Vec<u8>, rng: &mut Rng) -> Vec<u8> {
    for _ in 0..rng.usize(1..6) {
        let at = rng.usize(..bytes.len());
        match rng.u8(..3) {
            0 => bytes[at] = rng.u8(..),
            1 => drop(bytes.remove(at)),
            _ => bytes.insert(at, rng.u8(..)),
        }
    }
    bytes
}

fn bad_head(canary: &str, rng: &mut Rng) -> Vec<u8> {
    let body = format!(r#"{{"model":"m","user":"{canary}"}}"#);
    let method = pick(
        &[
            "POST", "POST", "POST", "GET", "PUT", "BREW", "post", "OPTIONS", "TRACE", "CONNECT",
            "P\0ST", "",
        ],
        rng,
    );
    let long = format!("/{}", "x".repeat(rng.usize(..80_000)));
    let path = pick(
        &[
            CHAT,
            CHAT,
            CHAT,
            "/",
            "*",
            "//",
            "/v1/../x",
            "/v1/%2e%2e/x",
            "/v1/%zz",
            "/v1/chat/completions#x",
            "/v1/messages",
            "/v1beta/models/a%2Fb:generateContent",
            "/v1beta/models/:x",
            "http://canary.invalid/v1/chat/completions",
            "g:80",
            "/v1/\u{e9}",
            "/a b",
            "",
            &long,
            "/v1/chat/completions?key=%00&&=&",
        ],
        rng,
    );
    let version = pick(
        &[
            "HTTP/1.1",
            "HTTP/1.1",
            "HTTP/1.1",
            "HTTP/1.0",
            "HTTP/2.0",
            "HTTP/0.9",
            "HTTP/1.11",
            "http/1.1",
            "",
        ],
        rng,
    );
    let mut head = format!("{method} {path} {version}\r\n");
    let length = body.len();
    let (plain, wide) = (
        format!("content-length: {length}"),
        "y".repeat(rng.usize(..50_000)),
    );
    let wide = format!("x-wide: {wide}");
    let many = "x-many: 1\r\n".repeat(rng.usize(..150)) + "x-last: 1";
    let lines = [
        "host: g",
        "host: ",
        "host: a\r\nhost: b",
        &plain,
        &plain,
        &plain,
        "content-length: -1",
        "content-length: 99999999999999999999",
        "content-length: 5, 5",
        "content-length: 7",
        "transfer-encoding: chunked",
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: identity",
        "content-encoding: gzip",
        "expect: 100-continue",
        "expect: magic",
        "connection: close",
        "connection: host, content-length, x-fuseline-route",
        "upgrade: websocket",
        "te: trailers, deflate",
        "x: y\r\n folded",
        " leading: space",
        "trailing : space",
        "no colon",
        "x: \0",
        "x: \x7f",
        "x: \u{2028}",
        ": empty",
        "x-fuseline-budget-ms: -5",
        "x-fuseline-budget-ms: 99999999999999999999999",
        "x-fuseline-route: \u{e9}",
        "x-fuseline-fallback: maybe",
        "x-stainless-read-timeout: NaN",
        "x-stainless-read-timeout: -1e999",
        "x-stainless-retry-count: x",
        "authorization: Bearer",
        "authorization: Basic \u{ff}",
        "cookie: a=b; c",
        "accept-encoding: \r\n\r\n",
        "x: y\rz",
        "anthropic-version: \u{0}",
        &wide,
        &many,
    ];
    for _ in 0..rng.usize(1..7) {
        head += pick(&lines, rng);
        head += pick(&["\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r"], rng);
    }
    head += pick(&["\r\n", "\r\n", "\r\n", "\n", ""], rng);
    let mut bytes = head.into_bytes();
    bytes.extend(body.as_bytes());
    if rng.bool() {
        // A second one behind it, as smugglers do.
        bytes.extend(good(canary, false));
    }
    bytes
}

fn bad_body(canary: &str, rng: &mut Rng) -> Vec<u8> {
    let deep = "[".repeat(rng.usize(..100_000));
    let name = "n".repeat(rng.usize(..100_000));
    let long_name = format!(r#"{{"model":"{name}","user":"{canary}"}}"#);
    let many_models = format!(
        "{{{}\"user\":\"{canary}\"}}",
        r#""model":"m","#.repeat(rng.usize(..3_000))
    );
    let bodies = [
        "",
        "{",
        "null",
        "[]",
        "\"m\"",
        "1e999999",
        "{\"model\":",
        r#"{"model":null}"#,
        r#"{"model":{"a":[]}}"#,
        r#"{"model":""}"#,
        r#"{"model":"\ud800"}"#,
        r#"{"model":"a\u0000b\r\nx: y"}"#,
        r#"{"model":"m","stream":"true"}"#,
        r#"{"model":"../../x"}"#,
        r#"{"model":"m","model":"n","stream":true,"stream":false}"#,
        "{\"model\":\"\u{202e}\u{0}\"}",
        r#"{"model":"m"} trailing"#,
        "\u{feff}{\"model\":\"m\"}",
        &deep,
        &long_name,
        &many_models,
    ];
    let mut body = pick(&bodies, rng).as_bytes().to_vec();
    if rng.u8(..4) == 0 {
        let at = rng.usize(..=body.len());
        body.insert(at, rng.u8(0x80..));
    }
    let path = pick(
        &[
            CHAT,
            CHAT,
            "/v1/responses",
            "/v1/embeddings",
            "/v1/messages",
            "/v1/files",
            "/v1beta/models/m:generateContent",
        ],
        rng,
    );
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: g\r\nconnection: close\r\nx-user: {canary}\r\n");
    let mut bytes = head.into_bytes();
    if rng.bool() {
        let said = body.len() + rng.choice([0, 0, 0, 1, 1000]).unwrap();
        bytes.extend(format!("content-length: {said}\r\n\r\n").as_bytes());
        bytes.extend(body);
    } else {
        bytes.extend(b"transfer-encoding: chunked\r\n\r\n");
        bytes.extend(bad_chunks(&body, rng));
    }
    bytes
}

fn bad_chunks(body: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in body.chunks(rng.usize(1..5_000)) {
        let size = piece.len();
        let extension = "e".repeat(if rng.u8(..50) == 0 {
            rng.usize(..40_000)
        } else {
            0
        });
        let line = match rng.u8(..40) {
            0 => format!("{:x}", size + 1),
            1 => "ffffffffffffffff".to_owned(),
            2 => format!("-{size:x}"),
            3 => format!("0x{size:x}"),
            4 => "g".to_owned(),
            5 => String::new(),
            6 => format!("{size:x};{extension}=\"\r"),
            _ => format!("{size:x};{extension}"),
        };
        bytes.extend(line.as_bytes());
        bytes.extend(pick(&["\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\n"], rng).as_bytes());
        bytes.extend(piece);
        bytes.extend(b"\r\n");
    }
    let trailers = "t: 1\r\n".repeat(rng.usize(..400));
    bytes.extend(
        pick(
            &[
                "0\r\n\r\n",
                "0\r\n\r\n",
                "0\r\n",
                "",
                "00000000000000000000\r\n\r\n",
            ],
            rng,
        )
        .as_bytes(),
    );
    if rng.u8(..8) == 0 {
        bytes.extend(format!("0\r\n{trailers}\r\n").as_bytes());
    }
    bytes
}

/// A good request that makes the provider answer badly, in the way of this number.
fn for_the_provider(canary: &str, rng: &mut Rng) -> Vec<u8> {
    let (way, is_stream) = (rng.u32(..), rng.bool());
    let body =
        format!(r#"{{"model":"m","stream":{is_stream},"user":"{canary}","way":"way-{way}."}}"#);
    let path = pick(&[CHAT, CHAT, CHAT, "/v1/responses", "/v1/files"], rng);
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nhost: g\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}
