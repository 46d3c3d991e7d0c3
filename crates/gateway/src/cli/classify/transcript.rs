//! From a stream's bytes, or its decoded frames, to what its events have said.

use std::collections::BTreeMap;

use fuseline_llm::{Event, Framing, Piece, Scanner, StreamEvent, Transcript};
use serde::Deserialize;

/// Listens to one stream.
pub(super) struct Listener {
    scanner: Scanner,
    transcript: Transcript,
}

impl Listener {
    pub(super) fn new(framing: Framing) -> Self {
        Self {
            scanner: Scanner::new(framing, Scanner::EVENT_LIMIT),
            transcript: Transcript::default(),
        }
    }

    /// The next bytes.
    pub(super) fn take(&mut self, chunk: &[u8]) {
        let mut rest = chunk;
        while let Some(scanned) = self.scanner.scan(rest) {
            let end = scanned.end;
            match scanned.piece {
                Piece::Event(event) => hear(&mut self.transcript, &event),
                // An event of this size holds something that was made.
                Piece::Oversized => self.transcript.note_content(),
                Piece::Filler | Piece::Corrupt => {}
            }
            rest = rest.get(end..).unwrap_or_default();
        }
    }

    /// No more bytes will come.
    pub(super) fn end(mut self) -> Transcript {
        if let Some(event) = self.scanner.finish() {
            hear(&mut self.transcript, &event);
        }
        self.transcript
    }
}

fn hear(transcript: &mut Transcript, event: &StreamEvent<'_>) {
    let data = String::from_utf8_lossy(&event.data);
    note(transcript, event.name, &data, event.is_exception);
}

fn note(transcript: &mut Transcript, name: Option<&str>, data: &str, is_exception: bool) {
    if is_exception {
        return transcript.note_error(name.unwrap_or("error"), data);
    }
    let name = name.unwrap_or_default();
    transcript.note(&Event { name, data });
}

/// A frame of AWS as JSON.
#[derive(Deserialize)]
struct Frame {
    headers: BTreeMap<String, String>,
    payload: String,
}

/// What frames have said, each written as a JSON text.
pub(super) fn of_frames(frames: &[String]) -> Result<Transcript, serde_json::Error> {
    let mut transcript = Transcript::default();
    for frame in frames {
        let frame: Frame = serde_json::from_str(frame)?;
        let header = |name| frame.headers.get(name).map(String::as_str);
        let names = [":exception-type", ":error-code", ":event-type"];
        let name = names.into_iter().find_map(header);
        let kind = header(":message-type");
        let is_exception = matches!(kind, Some("exception" | "error"));
        note(&mut transcript, name, &frame.payload, is_exception);
    }
    Ok(transcript)
}
