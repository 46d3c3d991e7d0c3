//! Recorded streams, read to their end: whether the answer was whole, and what went wrong where it was not.

use fuseline_llm::{Finish, Piece, Scanner, StreamReader};

use super::support::Recorded;

/// What a stream's events said, in the terms of how it ended.
struct Ending {
    reader: StreamReader,
    has_error: bool,
    is_policy: bool,
    has_content: bool,
    malformed: usize,
}

fn read(recorded: &Recorded) -> Ending {
    let mut scanner = Scanner::new(recorded.framing(), Scanner::EVENT_LIMIT);
    let mut ending = Ending {
        reader: StreamReader::new(recorded.dialect()),
        has_error: false,
        is_policy: false,
        has_content: false,
        malformed: 0,
    };
    for chunk in recorded.chunks() {
        let mut rest = &chunk[..];
        while let Some(scanned) = scanner.scan(rest) {
            if let Piece::Event(event) = &scanned.piece {
                let seen = ending.reader.read(event);
                ending.has_error |= seen.error.is_some();
                ending.is_policy |= matches!(seen.finish, Some(Finish::Policy(_)));
                ending.has_content |= seen.is_content();
                ending.malformed += usize::from(seen.malformed);
            }
            rest = &rest[scanned.end..];
        }
    }
    assert_eq!(scanner.finish(), None, "{}", recorded.id);
    ending
}

#[test]
fn every_recorded_stream_ends_as_it_should() {
    let all = Recorded::all();
    assert_eq!(all.len(), 48);
    for recorded in all {
        let ending = read(&recorded);
        let is_complete = ending.reader.is_complete();
        let seen = (
            is_complete,
            ending.has_error,
            ending.is_policy,
            ending.has_content,
        );
        let is_right = match recorded.kind.as_str() {
            // Whoever left himself had seen content.
            "success" if recorded.id == "net-stream-client-abort" => {
                seen == (false, false, false, true)
            }
            "success" => seen == (true, false, false, true),
            "content_policy" => seen == (true, false, true, true),
            "stream_truncated" => seen == (false, false, false, true),
            "stream_stall" => seen == (false, false, false, false),
            "empty_response" if recorded.id == "openai-stream-zero-events" => {
                seen == (false, false, false, false)
            }
            _ => !is_complete && ending.has_error && !ending.is_policy,
        };
        assert!(is_right, "{}, {}: {seen:?}", recorded.id, recorded.kind);
        assert_eq!(ending.malformed, 0, "{}", recorded.id);
    }
}
