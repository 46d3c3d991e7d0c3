//! Recorded answers, one JSON text a line, each judged.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufWriter, Read as _, Write};
use std::process::ExitCode;
use std::time::SystemTime;

use fuseline_llm::{Classifier, Operation, Transcript, mask};
use serde::Deserialize;
use serde_json::Value;

use super::exchange::{Exchange, Format, Received, Transport, time};
use super::told::Json;
use super::transcript::{Listener, of_frames};
use super::{MOST, UNREADABLE};

/// More of a complaint is not repeated: it may quote the line.
const LONGEST_COMPLAINT: usize = 200;

/// A recorded answer. Other keys are nobody's business here.
#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    id: Value,
    provider: Option<String>,
    status: Option<u16>,
    headers: Option<BTreeMap<String, String>>,
    body: Option<String>,
    stream: Option<Vec<String>>,
    stream_format: Option<Written>,
    transport: Option<Transport>,
    now: Option<String>,
}

/// How a recorded stream is written down.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Decoded {
    /// Each chunk is one decoded frame of AWS: a JSON text of its headers and payload.
    AwsEventstreamDecoded,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "no stream_format that is known")]
enum Written {
    Frames(Decoded),
    Bytes(Format),
}

/// Judges line after line; those that cannot be read are told, and make the exit status 2.
pub(super) fn judge(
    input: &mut impl BufRead,
    out: &mut impl Write,
    classifier: &Classifier,
    now: SystemTime,
) -> io::Result<ExitCode> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    let (mut text, mut number, mut code) = (Vec::new(), 0_u64, ExitCode::SUCCESS);
    while next_line(input, &mut text)? {
        number += 1;
        if text.trim_ascii().is_empty() {
            continue;
        }
        let told = if text.len() > MOST {
            Err(format!("is longer than {MOST} bytes"))
        } else {
            verdict(&text, classifier, now)
        };
        match told {
            Ok(told) => writeln!(out, "{told}")?,
            Err(why) => {
                // In the order of the lines where both go to one place.
                out.flush()?;
                writeln!(io::stderr().lock(), "fuseline: line {number}: {why}")?;
                code = ExitCode::from(UNREADABLE);
            }
        }
    }
    out.flush()?;
    Ok(code)
}

/// Reads a line, but no more than one byte above the limit; the rest of a longer one is passed over.
fn next_line(input: &mut impl BufRead, text: &mut Vec<u8>) -> io::Result<bool> {
    text.clear();
    let read = (&mut *input)
        .take(MOST as u64 + 1)
        .read_until(b'\n', text)?;
    if text.len() > MOST && !text.ends_with(b"\n") {
        input.skip_until(b'\n')?;
    }
    Ok(read > 0)
}

fn verdict(text: &[u8], classifier: &Classifier, now: SystemTime) -> Result<String, String> {
    let line: Line = serde_json::from_slice(text).map_err(|error| complaint(&error))?;
    let now = match &line.now {
        Some(now) => time(now).map_err(|remedy| format!("now: is no time; {remedy}"))?,
        None => now,
    };
    let (id, exchange) = line.into_exchange().map_err(|error| complaint(&error))?;
    if !exchange.is_told() {
        return Err("status: is missing; write it, or in transport why there is none".to_owned());
    }
    let verdict = exchange.judge(classifier, now);
    serde_json::to_string(&Json::of_line(&id, &verdict)).map_err(|error| complaint(&error))
}

impl Line {
    fn into_exchange(self) -> Result<(Value, Exchange), serde_json::Error> {
        let body = match self.stream {
            Some(chunks) => Received::Stream(heard(&chunks, self.stream_format.as_ref())?),
            None => Received::Whole(self.body.unwrap_or_default().into_bytes()),
        };
        let exchange = Exchange {
            provider: self.provider.unwrap_or_default().to_ascii_lowercase(),
            operation: Operation::Create,
            status: self.status,
            headers: self.headers.unwrap_or_default().into_iter().collect(),
            body,
            transport: self.transport.unwrap_or(Transport::Eof),
        };
        Ok((self.id, exchange))
    }
}

fn heard(chunks: &[String], written: Option<&Written>) -> Result<Transcript, serde_json::Error> {
    let format = match written {
        Some(Written::Frames(Decoded::AwsEventstreamDecoded)) => return of_frames(chunks),
        Some(Written::Bytes(format)) => *format,
        None => Format::Sse,
    };
    let mut listener = Listener::new(format.framing());
    for chunk in chunks {
        listener.take(chunk.as_bytes());
    }
    Ok(listener.end())
}

fn complaint(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text: String = mask(&text).chars().take(LONGEST_COMPLAINT).collect();
    format!("is no recorded answer: {}", text.escape_debug())
}
