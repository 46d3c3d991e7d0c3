//! An HTTP/1.1 client of a few lines, so that no library hides how a connection ends.

use std::io;
use std::time::Duration;

use fuseline_mock::Mock;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer than anything here takes, so that a failure ends.
pub(crate) const SOON: Duration = Duration::from_secs(5);

pub(crate) struct Client(TcpStream);

/// An answer, and how its connection ended where it did not end well.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
    pub(crate) terminated: bool,
    pub(crate) error: Option<io::ErrorKind>,
}

impl Client {
    pub(crate) async fn connect(mock: &Mock) -> io::Result<Self> {
        Ok(Self(TcpStream::connect(mock.addr()).await?))
    }

    /// A client that has sent a whole request.
    pub(crate) async fn asking(mock: &Mock, path: &str, body: &str) -> Self {
        let mut client = Self::connect(mock).await.unwrap();
        client.send(&request(path, body, "")).await;
        client
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads until the text has been seen.
    pub(crate) async fn read_until(&mut self, text: &str) -> String {
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains(text) {
            let read = timeout(SOON, self.0.read_buf(&mut seen))
                .await
                .expect("in time")
                .unwrap();
            assert_ne!(read, 0, "closed after {:?}", String::from_utf8_lossy(&seen));
        }
        String::from_utf8(seen).unwrap()
    }

    /// Whether nothing comes for this long.
    pub(crate) async fn is_silent_for(&mut self, time: Duration) -> bool {
        timeout(time, self.0.read_u8()).await.is_err()
    }

    /// Everything until the connection ends, and how it ends.
    pub(crate) async fn read_raw(&mut self) -> (String, Option<io::ErrorKind>) {
        let mut seen = Vec::new();
        let ended = timeout(SOON, self.0.read_to_end(&mut seen))
            .await
            .expect("in time");
        (
            String::from_utf8(seen).unwrap(),
            ended.err().map(|error| error.kind()),
        )
    }

    pub(crate) async fn read(&mut self) -> Got {
        let (text, error) = self.read_raw().await;
        let (head, rest) = text
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("no head in {text:?}, {error:?}"));
        let head = head.to_lowercase();
        let (body, terminated) = if head.contains("transfer-encoding: chunked") {
            unchunk(rest)
        } else {
            let length = head
                .split_once("content-length: ")
                .map(|(_, rest)| rest.lines().next().unwrap());
            (
                rest.to_owned(),
                length.is_some_and(|length| length.parse() == Ok(rest.len())),
            )
        };
        Got {
            status: head[9..12].parse().unwrap(),
            head,
            body,
            terminated,
            error,
        }
    }
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// The `data:` of each event, with the name of the event where it has one.
    pub(crate) fn events(&self) -> Vec<(Option<String>, String)> {
        let events = self.body.split_terminator("\n\n").map(|event| {
            let line = |field: &str| {
                event
                    .lines()
                    .find_map(|line| line.strip_prefix(field))
                    .map(str::to_owned)
            };
            (
                line("event: "),
                line("data: ").unwrap_or_else(|| panic!("no data in {event:?}")),
            )
        });
        events.collect()
    }

    /// The events' data as JSON, a last `[DONE]` left out.
    pub(crate) fn json_events(&self) -> Vec<Value> {
        let events = self.events();
        let data = events
            .iter()
            .map(|(_, data)| data)
            .filter(|data| *data != "[DONE]");
        data.map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }
}

pub(crate) fn request(path: &str, body: &str, headers: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: mock\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// One whole exchange.
pub(crate) async fn post(mock: &Mock, path: &str, body: &str) -> Got {
    Client::asking(mock, path, body).await.read().await
}

fn unchunk(mut rest: &str) -> (String, bool) {
    let mut body = String::new();
    while let Some((size, more)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return (body, more == "\r\n");
        }
        body += &more[..size];
        rest = &more[size + 2..];
    }
    (body, false)
}
