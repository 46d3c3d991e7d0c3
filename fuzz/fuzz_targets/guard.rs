//! Streams of any content in any dialect through the guard. Chunks of any size give the same ending and the same bytes;
//! nothing goes out before commitment; what is kept is no more than what came, and our own event.
#![no_main]

use std::time::Duration;

use bytes::Bytes;
use fuseline_core::Tick;
use fuseline_llm::{Dialect, Framing, StreamEnding, StreamGuard, StreamTimers};
use libfuzzer_sys::fuzz_target;

const DIALECTS: [(Dialect, Framing); 9] = [
    (Dialect::OpenAiChat, Framing::Sse),
    (Dialect::OpenAiResponses, Framing::Sse),
    (Dialect::Anthropic, Framing::Sse),
    (Dialect::Gemini, Framing::Sse),
    (Dialect::Gemini, Framing::JsonArray),
    (Dialect::Cohere, Framing::Sse),
    (Dialect::Cohere, Framing::NdJson),
    (Dialect::Ollama, Framing::NdJson),
    (Dialect::Bedrock, Framing::EventStream),
];
const OWN_EVENT: usize = 512;

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (which, size, stream) = input;
    let of = DIALECTS[usize::from(which) % DIALECTS.len()];
    let whole = play(of, 0, stream, stream.len().max(1));
    let size = 1 + usize::from(size % 64);
    for (hold_back, size) in [(0, 1), (0, size), (3, size)] {
        let divided = play(of, hold_back, stream, size);
        assert_eq!(divided.ending, whole.ending, "{of:?}, by {size}");
        assert_eq!(divided.left_out, whole.left_out, "{of:?}, by {size}");
        if divided.is_committed {
            assert!(whole.is_committed);
            assert_eq!(divided.out, whole.out, "{of:?}, by {size}");
        }
    }
});

struct Played {
    ending: Option<StreamEnding>,
    is_committed: bool,
    left_out: u64,
    /// Without line ends: of an event that is left out, the LF may stay whose CR came alone.
    out: Vec<u8>,
}

fn play(
    (dialect, framing): (Dialect, Framing),
    hold_back: u64,
    stream: &[u8],
    size: usize,
) -> Played {
    let hold_back = Duration::from_millis(hold_back);
    let timers = StreamTimers::default();
    let mut guard = StreamGuard::new(dialect, framing, timers, hold_back, Tick::ZERO);
    let (mut now, mut out) = (Tick::ZERO, Vec::new());
    for chunk in stream.chunks(size) {
        now = now + Duration::from_millis(1);
        guard.bytes(Bytes::copy_from_slice(chunk), now);
        assert!(guard.held() <= stream.len() + OWN_EVENT);
        drain(&mut guard, &mut out);
        guard.resumed(now);
        assert_eq!(guard.is_over(), guard.deadline().is_none());
    }
    guard.end(now);
    drain(&mut guard, &mut out);
    assert!(guard.is_over());
    let _ = (guard.transcript(), format!("{guard:?}"));
    out.retain(|byte| !matches!(byte, b'\r' | b'\n'));
    Played {
        ending: guard.ending(),
        is_committed: guard.is_committed(),
        left_out: guard.left_out(),
        out,
    }
}

fn drain(guard: &mut StreamGuard, out: &mut Vec<u8>) {
    while let Some(bytes) = guard.forward() {
        assert!(guard.is_committed() && !bytes.is_empty());
        out.extend_from_slice(&bytes);
    }
}
