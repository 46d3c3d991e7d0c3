//! Callers by hand: bytes out, bytes in, and a strict reader of what came.

use std::net::SocketAddr;

use http::StatusCode;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::within;

/// One answer, as it was read off the wire.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// The connection ended before the body did.
    pub(crate) is_cut: bool,
}

impl Read {
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// What a connection gives back for these bytes until it is closed.
pub(crate) async fn sent(addr: SocketAddr, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut caller = TcpStream::connect(addr).await.unwrap();
    // An answer may come before all is sent.
    let _ = caller.write_all(bytes.as_ref()).await;
    rest(&mut caller).await
}

/// All that still comes; a reset is an end, too.
pub(crate) async fn rest(caller: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut came = Vec::new();
    let _ = within(caller.read_to_end(&mut came)).await;
    came
}

/// The answers to these bytes, each of them well-formed.
pub(crate) async fn answers(addr: SocketAddr, bytes: impl AsRef<[u8]>) -> Vec<Read> {
    read(&sent(addr, bytes).await).unwrap()
}

/// The one answer to these bytes.
pub(crate) async fn answer(addr: SocketAddr, bytes: impl AsRef<[u8]>) -> Read {
    let mut answers = answers(addr, bytes).await;
    assert_eq!(answers.len(), 1, "{answers:?}");
    answers.remove(0)
}

/// Takes all the bytes of a connection for answers, and says what is wrong with them.
pub(crate) fn read(mut bytes: &[u8]) -> Result<Vec<Read>, String> {
    let mut answers = Vec::new();
    while !bytes.is_empty() {
        let (answer, rest) = one(bytes)?;
        // Those that say "go on" are none.
        if !answer.status.is_informational() {
            answers.push(answer);
        }
        bytes = rest;
    }
    Ok(answers)
}

fn one(bytes: &[u8]) -> Result<(Read, &[u8]), String> {
    let shown = || String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned();
    let end = find(bytes, b"\r\n\r\n").ok_or_else(|| format!("no head: {}", shown()))?;
    // Values may hold bytes of any other encoding.
    let head = String::from_utf8_lossy(&bytes[..end]);
    let mut rest = &bytes[end + 4..];
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap_or_default();
    let code = status
        .strip_prefix("HTTP/1.1 ")
        .or_else(|| status.strip_prefix("HTTP/1.0 "))
        .and_then(|rest| rest.get(..3)?.parse().ok())
        .and_then(|code: u16| StatusCode::from_u16(code).ok())
        .ok_or_else(|| format!("no status: {status}"))?;
    let mut headers = Vec::new();
    for line in lines {
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| format!("no header: {line}"))?;
        if name.is_empty() || line.contains(['\r', '\n', '\0']) || name.contains(' ') {
            return Err(format!("no header: {line}"));
        }
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut answer = Read {
        status: code,
        headers,
        body: Vec::new(),
        is_cut: false,
    };
    let has_none = code.is_informational() || matches!(code.as_u16(), 204 | 304);
    let length = answer.header("content-length");
    if has_none {
        return Ok((answer, rest));
    }
    if answer.header("transfer-encoding") == "chunked" {
        if !length.is_empty() {
            return Err(format!("two framings: {}", shown()));
        }
        rest = chunks(rest, &mut answer)?;
    } else if let Ok(length) = length.parse::<usize>() {
        answer.is_cut = rest.len() < length;
        let (body, after) = rest.split_at(length.min(rest.len()));
        answer.body = body.to_vec();
        rest = after;
    } else if length.is_empty() {
        // Up to the end of the connection.
        answer.body = std::mem::take(&mut rest).to_vec();
    } else {
        return Err(format!("no length: {length}"));
    }
    Ok((answer, rest))
}

fn chunks<'b>(mut bytes: &'b [u8], answer: &mut Read) -> Result<&'b [u8], String> {
    loop {
        let Some(end) = find(bytes, b"\r\n") else {
            answer.is_cut = true;
            return Ok(&[]);
        };
        let size = str::from_utf8(&bytes[..end]).unwrap_or("?");
        let size = usize::from_str_radix(size, 16).map_err(|_| format!("no chunk: {size}"))?;
        let rest = &bytes[end + 2..];
        if rest.len() < size + 2 {
            answer.body.extend(rest);
            answer.is_cut = true;
            return Ok(&[]);
        }
        if &rest[size..size + 2] != b"\r\n" {
            return Err("a chunk has no end".to_owned());
        }
        answer.body.extend(&rest[..size]);
        bytes = &rest[size + 2..];
        if size == 0 {
            return Ok(bytes);
        }
    }
}

pub(crate) fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

#[test]
fn the_reader_is_strict() {
    let good = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\
                 transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let answers = read(good).unwrap();
    assert_eq!(answers.len(), 2);
    assert!(
        answers
            .iter()
            .all(|answer| answer.body == b"ok" && !answer.is_cut)
    );
    assert!(read(&good[..good.len() - 5]).unwrap()[1].is_cut);
    for bad in [
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno header\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok and more",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ] {
        assert!(read(bad.as_bytes()).is_err(), "{bad}");
    }
}
