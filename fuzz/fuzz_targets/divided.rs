//! A stream of any content: scanned in chunks of any size, it is as the whole gives it, with no byte changed, and what is
//! held back stays below the limit.

use fuseline_llm::{Dialect, Framing, Piece, Scanner, StreamReader};

const DIALECTS: [Dialect; 7] = [
    Dialect::Anthropic,
    Dialect::Bedrock,
    Dialect::Cohere,
    Dialect::Gemini,
    Dialect::Ollama,
    Dialect::OpenAiChat,
    Dialect::OpenAiResponses,
];
/// Small, so that streams of a fuzzer reach it.
const LIMITS: [usize; 3] = [16, 256, Scanner::EVENT_LIMIT];

/// A piece that is no filler: where it begins and ends, its name and data.
type Told = (usize, usize, Option<String>, Vec<u8>);

pub fn as_whole(framing: Framing, stream: &[u8]) {
    let size = 1 + usize::from(*stream.last().unwrap_or(&0) % 32);
    let mut readers = DIALECTS.map(StreamReader::new);
    for limit in LIMITS {
        let whole = scan(framing, limit, stream, stream.len().max(1), &mut readers);
        for size in [1, size] {
            assert_eq!(
                scan(framing, limit, stream, size, &mut []),
                whole,
                "by {size}, limit {limit}"
            );
        }
    }
}

fn scan(
    framing: Framing,
    limit: usize,
    stream: &[u8],
    size: usize,
    readers: &mut [StreamReader],
) -> Vec<Told> {
    let mut scanner = Scanner::new(framing, limit);
    // The LF of a CRLF may belong to the next piece, where the CR came alone.
    let place = |at: usize| {
        let is_cut = stream[..at].ends_with(b"\r") && stream[at..].starts_with(b"\n");
        at + usize::from(is_cut && framing == Framing::Sse)
    };
    let (mut told, mut begin, mut held) = (Vec::new(), 0, 0);
    for chunk in stream.chunks(size) {
        let mut rest = chunk;
        while let Some(scanned) = scanner.scan(rest) {
            assert!(scanned.end > 0, "no progress");
            let end = begin + held + scanned.end;
            let said = match &scanned.piece {
                Piece::Event(event) => {
                    for reader in readers.iter_mut() {
                        let seen = reader.read(event);
                        assert!(!seen.malformed || !seen.is_content());
                    }
                    Some((event.name.map(str::to_owned), event.data.to_vec()))
                }
                Piece::Oversized => Some((Some("oversized".to_owned()), Vec::new())),
                Piece::Corrupt => Some((Some("corrupt".to_owned()), Vec::new())),
                Piece::Filler => None,
            };
            told.extend(said.map(|(name, data)| (place(begin), place(end), name, data)));
            (begin, held) = (end, 0);
            rest = &rest[scanned.end..];
        }
        held += rest.len();
        assert!(held < limit, "{held} bytes are held back");
    }
    let rest = scanner.finish();
    told.extend(rest.map(|event| {
        let name = event.name.map(str::to_owned);
        (place(begin), stream.len(), name, event.data.to_vec())
    }));
    told
}
