//! Recorded streams as bytes, what a scanner tells of a stream in owned form, and the frames of AWS.

use std::collections::BTreeMap;
use std::ops::Range;

use fuseline_llm::{Dialect, Framing, Piece, Scanner, StreamEvent};
use serde::Deserialize;

/// Chunks as they came off a socket, the way the exchange ended, and what kind of ending it was.
#[derive(Deserialize)]
pub(crate) struct Recorded {
    pub(crate) id: String,
    dialect: String,
    framing: String,
    pub(crate) transport: String,
    pub(crate) kind: String,
    chunks: Vec<Chunk>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Chunk {
    Text(String),
    Frame {
        headers: BTreeMap<String, String>,
        payload: String,
    },
}

impl Recorded {
    pub(crate) fn all() -> Vec<Self> {
        let lines = include_str!("../data/streams.jsonl").lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    pub(crate) fn framing(&self) -> Framing {
        match self.framing.as_str() {
            "event_stream" => Framing::EventStream,
            "json_array" => Framing::JsonArray,
            "ndjson" => Framing::NdJson,
            "sse" => Framing::Sse,
            other => panic!("{other} is no framing"),
        }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        match self.dialect.as_str() {
            "anthropic" => Dialect::Anthropic,
            "bedrock" => Dialect::Bedrock,
            "cohere" => Dialect::Cohere,
            "gemini" => Dialect::Gemini,
            "ollama" => Dialect::Ollama,
            "openai_chat" => Dialect::OpenAiChat,
            "openai_responses" => Dialect::OpenAiResponses,
            other => panic!("{other} is no dialect"),
        }
    }

    pub(crate) fn chunks(&self) -> Vec<Vec<u8>> {
        self.chunks.iter().map(Chunk::bytes).collect()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.chunks().concat()
    }
}

impl Chunk {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.as_bytes().to_vec(),
            Self::Frame { headers, payload } => {
                let headers: Vec<_> = headers
                    .iter()
                    .flat_map(|(name, value)| header(name, value.as_bytes()))
                    .collect();
                frame(&headers, payload.as_bytes())
            }
        }
    }
}

/// A header that holds text.
pub(crate) fn header(name: &str, value: &[u8]) -> Vec<u8> {
    let mut header = vec![u8::try_from(name.len()).unwrap()];
    header.extend_from_slice(name.as_bytes());
    header.push(7);
    header.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
    header.extend_from_slice(value);
    header
}

pub(crate) fn frame(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let total = u32::try_from(16 + headers.len() + payload.len()).unwrap();
    let mut frame = total.to_be_bytes().to_vec();
    frame.extend(u32::try_from(headers.len()).unwrap().to_be_bytes());
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(headers);
    frame.extend_from_slice(payload);
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    frame
}

/// A piece in owned form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Event(Event),
    Filler,
    Oversized,
    Corrupt,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: Option<String>,
    pub(crate) data: String,
    pub(crate) is_exception: bool,
}

impl From<&StreamEvent<'_>> for Event {
    fn from(event: &StreamEvent<'_>) -> Self {
        Self {
            name: event.name.map(str::to_owned),
            data: event.data.escape_ascii().to_string(),
            is_exception: event.is_exception,
        }
    }
}

/// What a scanner told of a whole stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    /// Each piece and where in the stream it lies.
    pub(crate) pieces: Vec<(Range<usize>, Told)>,
    /// The event without its last delimiter.
    pub(crate) rest: Option<Event>,
}

impl Account {
    /// Scans as a driver does, which forwards whole pieces and holds back the rest; what it forwards is checked.
    pub(crate) fn of(framing: Framing, limit: usize, chunks: &[&[u8]]) -> Self {
        let mut scanner = Scanner::new(framing, limit);
        let mut account = Self::default();
        let (mut held, mut forwarded) = (Vec::new(), Vec::new());
        for chunk in chunks {
            let mut rest = *chunk;
            while let Some(scanned) = scanner.scan(rest) {
                assert!(scanned.end > 0, "no progress");
                let told = match &scanned.piece {
                    Piece::Event(event) => Told::Event(event.into()),
                    Piece::Filler => Told::Filler,
                    Piece::Oversized => Told::Oversized,
                    Piece::Corrupt => Told::Corrupt,
                };
                let begin = forwarded.len();
                forwarded.append(&mut held);
                forwarded.extend_from_slice(&rest[..scanned.end]);
                account.pieces.push((begin..forwarded.len(), told));
                rest = &rest[scanned.end..];
            }
            held.extend_from_slice(rest);
            assert!(held.len() < limit, "{} bytes are held back", held.len());
        }
        account.rest = scanner.finish().as_ref().map(Event::from);
        forwarded.append(&mut held);
        assert_eq!(forwarded, chunks.concat(), "bytes were changed");
        account
    }

    /// Without what chunks may change: where filler is cut, and to whom the LF of a CRLF belongs whose CR came alone.
    pub(crate) fn normal(mut self, framing: Framing, stream: &[u8]) -> Self {
        self.pieces.retain(|(_, told)| *told != Told::Filler);
        if framing == Framing::Sse {
            for (range, _) in &mut self.pieces {
                for at in [&mut range.start, &mut range.end] {
                    let is_inside = *at > 0
                        && stream[..*at].ends_with(b"\r")
                        && stream[*at..].starts_with(b"\n");
                    *at += usize::from(is_inside);
                }
            }
        }
        self
    }

    pub(crate) fn events(&self) -> Vec<&Event> {
        let events = self.pieces.iter().filter_map(|(_, told)| match told {
            Told::Event(event) => Some(event),
            _ => None,
        });
        events.collect()
    }
}

/// That every division gives the same events in the same places as the whole, and that each event stands alone.
pub(crate) fn check(
    framing: Framing,
    stream: &[u8],
    divisions: impl IntoIterator<Item = Vec<usize>>,
) {
    const LIMIT: usize = Scanner::EVENT_LIMIT;
    let whole = Account::of(framing, LIMIT, &[stream]).normal(framing, stream);
    for cuts in divisions {
        let chunks = divide(stream, &cuts);
        let divided = Account::of(framing, LIMIT, &chunks).normal(framing, stream);
        assert_eq!(divided, whole, "cut at {cuts:?}: {}", stream.escape_ascii());
    }
    // What begins a stream may be a byte order mark; what follows a blank line is none.
    let before = if framing == Framing::Sse { "\n" } else { "" };
    for (range, told) in &whole.pieces {
        if let Told::Event(event) = told {
            let alone = [before.as_bytes(), &stream[range.clone()]];
            let alone = Account::of(framing, LIMIT, &alone);
            assert_eq!(alone.events(), [event], "an event's bytes are all of it");
        }
    }
}

/// That a stream from which one event's bytes are taken is the stream without that event.
pub(crate) fn check_leaving_out(framing: Framing, stream: &[u8]) {
    let whole = Account::of(framing, Scanner::EVENT_LIMIT, &[stream]);
    let places = whole
        .pieces
        .iter()
        .filter(|(_, told)| matches!(told, Told::Event(_)));
    for (number, (range, _)) in places.enumerate() {
        let (before, after) = (&stream[..range.start], &stream[range.end..]);
        let left = Account::of(framing, Scanner::EVENT_LIMIT, &[&[before, after].concat()]);
        let mut expected = whole.events();
        expected.remove(number);
        assert_eq!(left.events(), expected, "without event {number}");
    }
}

/// The stream cut at these places, in any order.
pub(crate) fn divide<'s>(stream: &'s [u8], cuts: &[usize]) -> Vec<&'s [u8]> {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (stream.len() + 1)).collect();
    cuts.sort_unstable();
    let mut begin = 0;
    let mut chunks = Vec::new();
    for cut in cuts.into_iter().chain([stream.len()]) {
        chunks.push(&stream[begin..cut]);
        begin = cut;
    }
    chunks
}
