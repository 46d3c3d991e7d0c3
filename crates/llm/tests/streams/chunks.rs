//! Every division of a stream into chunks gives the same events in the same places, and the same bytes.

use fuseline_llm::Framing;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::support::{Account, Recorded, Told, check, check_leaving_out, divide, frame, header};

#[test]
fn recorded_streams_cut_anywhere() {
    for recorded in Recorded::all() {
        let (framing, stream) = (recorded.framing(), recorded.bytes());
        let once = (0..stream.len()).map(|cut| vec![cut]);
        let by_size = (1..64).map(|size| (size..stream.len()).step_by(size).collect());
        check(framing, &stream, once.chain(by_size));
        check_leaving_out(framing, &stream);
    }
}

#[test]
fn recorded_streams_with_every_end_of_line_cut_anywhere() {
    let recorded = Recorded::all();
    for recorded in recorded
        .iter()
        .filter(|recorded| recorded.framing() == Framing::Sse)
    {
        let text = String::from_utf8(recorded.bytes()).unwrap();
        let expected = Account::of(Framing::Sse, 1 << 20, &[text.as_bytes()]);
        for end in ["\r\n", "\r"] {
            let stream = format!("\u{feff}{}", text.replace('\n', end));
            let account = Account::of(Framing::Sse, 1 << 20, &[stream.as_bytes()]);
            assert_eq!(account.events(), expected.events(), "{}", recorded.id);
            let once = (0..stream.len()).map(|cut| vec![cut]);
            let twice = (0..stream.len()).map(|cut| vec![cut, cut + 1]);
            check(Framing::Sse, stream.as_bytes(), once.chain(twice));
        }
    }
}

/// Bytes in which everything that matters to a framing is likely.
fn likely(alphabet: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let bytes = vec(any::<u8>(), 0..3);
    let piece =
        prop_oneof![8 => select(alphabet).prop_map(|text| text.as_bytes().to_vec()), 1 => bytes];
    vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

const OF_SSE: &[&str] = &[
    "data: ",
    "data",
    "event: ping",
    "error: x",
    "id: 7",
    ": c",
    ":",
    " ",
    "\n",
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    "\r\r",
    "\r\n\r\n",
    "\u{feff}",
    "\u{feff}",
    "x",
    "{}",
];
const OF_JSON: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    "\\\"",
    ",",
    "\r\n",
    "\n",
    " ",
    "{\"a\":1}",
    "{\"a\":\"}\"}",
];

fn frames() -> impl Strategy<Value = Vec<u8>> {
    let names = select(
        &[
            ":message-type",
            ":event-type",
            ":exception-type",
            ":error-code",
            "other",
        ][..],
    );
    let values = prop_oneof![
        select(&["event", "exception", "error"][..]).prop_map(str::to_owned),
        "[a-z]{0,9}"
    ];
    let headers = vec((names, values), 0..4).prop_map(|headers| {
        let headers = headers
            .iter()
            .map(|(name, value)| header(name, value.as_bytes()));
        headers.collect::<Vec<_>>().concat()
    });
    let frames = vec((headers, vec(any::<u8>(), 0..40)), 0..6);
    frames.prop_map(|frames| {
        let frames = frames
            .iter()
            .map(|(headers, payload)| frame(headers, payload));
        frames.collect::<Vec<_>>().concat()
    })
}

/// Any framing, and bytes that look like it, whole or spoiled.
fn streams() -> impl Strategy<Value = (Framing, Vec<u8>)> {
    let spoiled = (frames(), any::<usize>(), 1_u8..).prop_map(|(mut frames, at, change)| {
        let length = frames.len().max(1);
        if let Some(byte) = frames.get_mut(at % length) {
            *byte ^= change;
        }
        frames
    });
    prop_oneof![
        4 => (Just(Framing::Sse), likely(OF_SSE).boxed()),
        2 => (Just(Framing::NdJson), likely(OF_JSON).boxed()),
        2 => (Just(Framing::JsonArray), likely(OF_JSON).boxed()),
        2 => (Just(Framing::EventStream), frames().boxed()),
        1 => (Just(Framing::EventStream), spoiled.boxed()),
    ]
}

/// A case costs little, and what is rare matters here.
fn many_cases() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: usual.cases.max(2_000),
        ..usual
    }
}

proptest! {
    #![proptest_config(many_cases())]

    #[test]
    fn any_stream_cut_anywhere((framing, stream) in streams(), cuts in vec(any::<usize>(), 0..8)) {
        check(framing, &stream, [cuts, (0..stream.len()).collect()]);
    }

    #[test]
    fn any_limit_is_kept((framing, stream) in streams(), cuts in vec(any::<usize>(), 0..8), limit in 1_usize..50) {
        let whole = Account::of(framing, limit, &[&stream]).normal(framing, &stream);
        let divided = Account::of(framing, limit, &divide(&stream, &cuts)).normal(framing, &stream);
        prop_assert_eq!(&divided, &whole);
        for (range, told) in &whole.pieces {
            // One byte more for the LF of a CRLF, which may belong to the next piece.
            let length = range.len();
            prop_assert!(length <= limit + 1, "{told:?} of {length} bytes");
            prop_assert!(*told != Told::Oversized || length + 1 >= limit);
        }
    }
}
