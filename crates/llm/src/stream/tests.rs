//! Each framing's tables, the limit, and what a scanner keeps.

use super::*;

/// A piece, owned: its event as text, or what it is.
fn told(piece: &Piece<'_>) -> String {
    match piece {
        Piece::Event(event) => shown(event),
        Piece::Filler => "filler".to_owned(),
        Piece::Oversized => "oversized".to_owned(),
        Piece::Corrupt => "corrupt".to_owned(),
    }
}

fn shown(event: &StreamEvent<'_>) -> String {
    let mark = if event.is_exception { "!" } else { "" };
    let name = event.name.unwrap_or("-");
    format!("{mark}{name}={}", String::from_utf8_lossy(&event.data))
}

/// The pieces of `chunks`, each with its length, and what was left.
fn scan(scanner: &mut Scanner, chunks: &[&[u8]]) -> (Vec<(usize, String)>, Option<String>) {
    let mut pieces = Vec::new();
    let mut held = 0;
    for chunk in chunks {
        let mut rest = *chunk;
        while let Some(scanned) = scanner.scan(rest) {
            assert!(scanned.end > 0, "no progress");
            pieces.push((held + scanned.end, told(&scanned.piece)));
            held = 0;
            rest = &rest[scanned.end..];
        }
        held += rest.len();
    }
    (pieces, scanner.finish().as_ref().map(shown))
}

fn events(framing: Framing, chunks: &[&[u8]]) -> Vec<String> {
    let (pieces, rest) = scan(&mut Scanner::new(framing, Scanner::EVENT_LIMIT), chunks);
    let whole = pieces.into_iter().map(|(_, piece)| piece);
    whole
        .filter(|piece| piece != "filler")
        .chain(rest.map(|event| format!("rest {event}")))
        .collect()
}

#[test]
fn what_server_sent_events_say() {
    for (stream, expected) in [
        ("data: a\n\n", &["-=a"][..]),
        ("data:a\n\n", &["-=a"]),
        ("data:  a\n\n", &["-= a"]),
        ("data: a\r\n\r\n", &["-=a"]),
        ("data: a\r\rdata: b\r\r", &["-=a", "-=b"]),
        ("data: a\r\n\ndata: b\n\r\n", &["-=a", "-=b"]),
        ("data: a\ndata: b\n\n", &["-=a\nb"]),
        ("data: a\r\ndata:\r\ndata: c\r\n\r\n", &["-=a\n\nc"]),
        ("data\n\n", &["-="]),
        ("data:\n\n", &["-="]),
        ("event: ping\n\n", &["ping="]),
        ("event: a\nevent: b\ndata: c\n\n", &["b=c"]),
        ("event:\ndata: c\n\n", &["-=c"]),
        ("id: 7\nretry: 10\n\n", &[]),
        ("id: 7\nevent: x\ndata: y\nunknown: z\n\n", &["x=y"]),
        (": comment\n\n", &[]),
        (": comment\ndata: a\n: another\ndata: b\n\n", &["-=a\nb"]),
        ("\n\n\r\n\r\r\ndata: a\n\n", &["-=a"]),
        ("\u{feff}data: a\n\n", &["-=a"]),
        ("data: a\n\n\u{feff}data: b\n\n", &["-=a"]),
        ("\u{feff}\u{feff}data: a\n\n", &[]),
        ("\u{fefe}data: a\n\n", &[]),
        ("data: \u{feff}a\n\n", &["-=\u{feff}a"]),
        ("data: a\n\ndata: b\n", &["-=a", "rest -=b"]),
        ("data: a\n\ndata: b", &["-=a", "rest -=b"]),
        ("data: a\n\n: comment", &["-=a"]),
        ("error: {}\n\n", &["!-={}"]),
        ("data: a\0b\n\n", &["-=a\0b"]),
        ("no field\n\n", &[]),
        ("", &[]),
    ] {
        assert_eq!(
            events(Framing::Sse, &[stream.as_bytes()]),
            expected,
            "{stream:?}"
        );
        let bytes: Vec<_> = stream.as_bytes().chunks(1).collect();
        assert_eq!(
            events(Framing::Sse, &bytes),
            expected,
            "by bytes: {stream:?}"
        );
    }
}

#[test]
fn an_event_is_told_when_its_last_byte_is_there() {
    let mut scanner = Scanner::new(Framing::Sse, Scanner::EVENT_LIMIT);
    let (pieces, _) = scan(
        &mut scanner,
        &[
            b"data: a\r\n\r",
            b"\ndata: b\r",
            b"\n\r",
            b"\n: beat\n",
            b"\n",
        ],
    );
    let expected = [
        (10, "-=a"),
        (1, "filler"),
        (10, "-=b"),
        (1, "filler"),
        (7, "filler"),
        (1, "filler"),
    ];
    assert_eq!(pieces, expected.map(|(end, piece)| (end, piece.to_owned())));
}

#[test]
fn what_only_begins_like_a_byte_order_mark_begins_a_field() {
    for chunks in [
        &[&b"\xef\ndata: a\n\n"[..]][..],
        &[b"\xef", b"\ndata: a\n\n"],
    ] {
        let mut scanner = Scanner::new(Framing::Sse, Scanner::EVENT_LIMIT);
        assert_eq!(scan(&mut scanner, chunks).0, [(11, "-=a".to_owned())]);
    }
}

#[test]
fn report_62_letters_cut_by_a_packets_end_stay_whole() {
    let stream = "data: {\"choices\":[{\"delta\":{\"content\":\"你好🙂\"}}]}\n\n".as_bytes();
    for at in 0..stream.len() {
        let (before, after) = stream.split_at(at);
        let expected = "-={\"choices\":[{\"delta\":{\"content\":\"你好🙂\"}}]}";
        assert_eq!(
            events(Framing::Sse, &[before, after]),
            [expected],
            "cut at {at}"
        );
    }
}

#[test]
fn the_data_of_an_event_in_one_chunk_is_borrowed_from_it() {
    let chunk = b"data: a\n\n";
    let mut scanner = Scanner::new(Framing::Sse, Scanner::EVENT_LIMIT);
    let Some(Scanned {
        piece: Piece::Event(event),
        ..
    }) = scanner.scan(chunk)
    else {
        panic!("no event");
    };
    assert_eq!(event.data.as_ptr(), chunk[6..].as_ptr());
    assert_eq!(scanner.pending.capacity(), 0);
}

#[test]
fn what_lines_of_json_say() {
    for (stream, expected) in [
        (
            "{\"a\":1}\n{\"b\":2}\n",
            &["-={\"a\":1}", "-={\"b\":2}"][..],
        ),
        (
            "{\"a\":1}\r\n\r\n \n{\"b\":2}",
            &["-={\"a\":1}", "rest -={\"b\":2}"],
        ),
        ("not json\n", &["-=not json"]),
        ("\n", &[]),
        (" ", &[]),
    ] {
        assert_eq!(
            events(Framing::NdJson, &[stream.as_bytes()]),
            expected,
            "{stream:?}"
        );
    }
}

#[test]
fn what_an_array_of_json_says() {
    for (stream, expected) in [
        (r#"[{"a":1}]"#, &[r#"-={"a":1}"#][..]),
        (
            "[{\"a\":{\"b\":[{}]}}\r\n,\r\n{}\r\n]\n",
            &["-={\"a\":{\"b\":[{}]}}", "-={}"],
        ),
        (
            r#"[{"a":"}{\"}\\"},{"b":"\\\"}"}]"#,
            &[r#"-={"a":"}{\"}\\"}"#, r#"-={"b":"\\\"}"}"#],
        ),
        (r#"{"error":{}}"#, &[r#"-={"error":{}}"#]),
        (r#"[{"cut":"#, &[]),
        ("[]", &[]),
        ("}}]]", &[]),
    ] {
        assert_eq!(
            events(Framing::JsonArray, &[stream.as_bytes()]),
            expected,
            "{stream}"
        );
        let bytes: Vec<_> = stream.as_bytes().chunks(1).collect();
        assert_eq!(
            events(Framing::JsonArray, &bytes),
            expected,
            "by bytes: {stream}"
        );
    }
}

/// Frames whose checksums another implementation has computed.
const PLAIN: &[u8] = b"\0\0\0\x1e\0\0\0\0\xba\xf2\xf6\x8a{\"foo\": \"bar\"}\xaerX\xe4";
const TYPED: &[u8] = b"\0\0\0\x3e\0\0\0\x20\x40\x5d\xf9\x46\x0ccontent-type\x07\0\x10application/json{\"foo\": \"bar\"}\x6f\xa2\xbf\x3b";
const EXCEPTION: &[u8] = b"\0\0\0\x62\0\0\0\x40\xf0\x0c\xba\xd4\x0d:message-type\x07\0\x09exception\x0f:exception-type\x07\0\x13throttlingException{\"message\":\"slow\"}\x54\xa7\x73\xd3";

#[test]
fn what_frames_of_aws_say() {
    let stream = [PLAIN, TYPED, EXCEPTION].concat();
    let expected = [
        "-={\"foo\": \"bar\"}",
        "-={\"foo\": \"bar\"}",
        "!throttlingException={\"message\":\"slow\"}",
    ];
    assert_eq!(events(Framing::EventStream, &[&stream]), expected);
    let bytes: Vec<_> = stream.chunks(1).collect();
    assert_eq!(events(Framing::EventStream, &bytes), expected);
    let cut = &stream[..stream.len() - 1];
    assert_eq!(events(Framing::EventStream, &[cut]), expected[..2]);
}

fn frame(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let total = u32::try_from(16 + headers.len() + payload.len()).unwrap();
    let mut frame = total.to_be_bytes().to_vec();
    frame.extend(u32::try_from(headers.len()).unwrap().to_be_bytes());
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(headers);
    frame.extend_from_slice(payload);
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    frame
}

#[test]
fn headers_of_every_kind_are_passed_over() {
    let mut headers = Vec::new();
    for (kind, value) in [
        (0, &b""[..]),
        (1, b""),
        (2, b"1"),
        (3, b"12"),
        (4, b"1234"),
        (5, b"12345678"),
        (6, b"\0\x03abc"),
        (7, b"\0\0"),
        (8, b"12345678"),
        (9, b"1234567890123456"),
    ] {
        headers.extend_from_slice(&[1, b'x', kind]);
        headers.extend_from_slice(value);
    }
    headers.extend_from_slice(b"\x0b:event-type\x07\0\x0bmessageStop");
    let stream = frame(&headers, b"{}");
    assert_eq!(events(Framing::EventStream, &[&stream]), ["messageStop={}"]);

    let unmodelled = b"\x0d:message-type\x07\0\x05error\x0b:error-code\x07\0\x03Any\x0e:error-message\x07\0\x04Text";
    let stream = frame(unmodelled, b"");
    assert_eq!(events(Framing::EventStream, &[&stream]), ["!Any=Text"]);
}

#[test]
fn what_breaks_a_frame_is_told() {
    let mut wrong_sum = PLAIN.to_vec();
    wrong_sum[20] ^= 1;
    let spoiled = [&wrong_sum, PLAIN].concat();
    let expected = ["corrupt", "-={\"foo\": \"bar\"}"];
    assert_eq!(
        events(Framing::EventStream, &[&spoiled]),
        expected,
        "the next frame is found"
    );

    let unknown_kind = frame(b"\x01x\x0a", b"");
    assert_eq!(events(Framing::EventStream, &[&unknown_kind]), ["corrupt"]);
    let short_header = frame(b"\x05x", b"");
    assert_eq!(events(Framing::EventStream, &[&short_header]), ["corrupt"]);

    let mut wrong_prelude = PLAIN.to_vec();
    wrong_prelude[3] = 0x1f;
    let mut too_short = [0; 8].to_vec();
    too_short.extend(crc32fast::hash(&too_short).to_be_bytes());
    let mut headers_beyond = vec![0, 0, 0, 20, 0, 0, 0, 5];
    headers_beyond.extend(crc32fast::hash(&headers_beyond).to_be_bytes());
    for lost in [
        wrong_prelude,
        too_short,
        headers_beyond,
        b"HTTP/1.1 502 Bad Gateway".to_vec(),
    ] {
        let stream = [lost.as_slice(), PLAIN].concat();
        let (pieces, rest) = scan(&mut Scanner::new(Framing::EventStream, 1 << 20), &[&stream]);
        let expected = [
            (12, "corrupt".to_owned()),
            (stream.len() - 12, "filler".to_owned()),
        ];
        assert_eq!(
            (pieces, rest),
            (expected.to_vec(), None),
            "nothing is found after it"
        );
    }
}

#[test]
fn an_event_at_the_limit_passes_and_one_beyond_is_told_once() {
    for (framing, fits, beyond, next) in [
        (
            Framing::Sse,
            &b"data: 12\n\n"[..],
            &b"data: 123\n\n"[..],
            &b"data: a\n\n"[..],
        ),
        (
            Framing::NdJson,
            b"{\"a\":123}\n",
            b"{\"a\":1234}\n",
            b"{}\n",
        ),
        (Framing::JsonArray, b"{\"a\":1234}", b"{\"a\":12345}", b"{}"),
    ] {
        let stream = [fits, beyond, next].concat();
        for size in 1..stream.len() {
            let chunks: Vec<_> = stream.chunks(size).collect();
            let (pieces, _) = scan(&mut Scanner::new(framing, 10), &chunks);
            let kinds: Vec<_> = pieces.iter().map(|(_, piece)| piece.as_str()).collect();
            assert!(kinds[0].starts_with("-="), "{framing:?} {size}: {kinds:?}");
            assert_eq!(
                pieces[1],
                (10, "oversized".to_owned()),
                "{framing:?} {size}"
            );
            let (last, fillers) = kinds[2..].split_last().unwrap();
            assert!(
                fillers.iter().all(|kind| *kind == "filler"),
                "{framing:?} {size}: {kinds:?}"
            );
            assert!(last.starts_with("-="), "{framing:?} {size}: {kinds:?}");
            let told: usize = pieces.iter().map(|(length, _)| length).sum();
            assert_eq!(told, stream.len());
        }
    }
}

#[test]
fn a_large_frame_is_passed_over_by_its_length() {
    let large = frame(b"", &[b'x'; 100]);
    let stream = [&large, PLAIN].concat();
    for size in 1..stream.len() {
        let chunks: Vec<_> = stream.chunks(size).collect();
        let (pieces, _) = scan(&mut Scanner::new(Framing::EventStream, 40), &chunks);
        assert_eq!(pieces[0], (40, "oversized".to_owned()));
        assert_eq!(pieces.last().unwrap().1, "-={\"foo\": \"bar\"}");
    }
}

#[test]
fn report_65_an_event_that_never_ends_keeps_no_more_than_the_limit() {
    let begin: [(Framing, Vec<u8>); 6] = [
        (Framing::Sse, b"data: ".to_vec()),
        (Framing::Sse, b": ".to_vec()),
        (Framing::Sse, b"data: a\n".to_vec()),
        (Framing::NdJson, b"{\"a\":\"".to_vec()),
        (Framing::JsonArray, b"[{\"a\":\"".to_vec()),
        (Framing::EventStream, {
            let mut prelude = vec![0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0];
            prelude.extend(crc32fast::hash(&prelude).to_be_bytes());
            prelude
        }),
    ];
    for (framing, begin) in begin {
        let mut scanner = Scanner::new(framing, 64 * 1024);
        let mut oversized = 0;
        let mut most = 0;
        let line = [b'x'; 1000];
        for chunk in std::iter::once(&begin[..]).chain(std::iter::repeat_n(&line[..], 10_000)) {
            let mut rest = chunk;
            while let Some(scanned) = scanner.scan(rest) {
                oversized += usize::from(scanned.piece == Piece::Oversized);
                rest = &rest[scanned.end..];
            }
            most = most.max(scanner.pending.capacity());
        }
        assert_eq!(oversized, 1, "{framing:?}");
        assert!(most <= 128 * 1024, "{framing:?} kept {most}");
        assert_eq!(scanner.pending.capacity(), 0, "{framing:?}");
        assert_eq!(scanner.finish(), None, "{framing:?}");
    }
}

#[test]
fn braces_without_end_keep_no_more_than_the_limit() {
    let mut scanner = Scanner::new(Framing::JsonArray, 1000);
    let (pieces, _) = scan(&mut scanner, &[&[b'{'; 500][..]; 20_000]);
    assert_eq!(pieces[0], (1000, "oversized".to_owned()));
    assert!(pieces[1..].iter().all(|(_, piece)| piece == "filler"));
}

#[test]
fn a_buffer_that_one_event_made_large_is_given_back() {
    let mut scanner = Scanner::new(Framing::NdJson, Scanner::EVENT_LIMIT);
    let large = vec![b'x'; 500_000];
    let (pieces, _) = scan(&mut scanner, &[&large, b"\n", b"a", b"\n"]);
    assert_eq!(pieces.len(), 2);
    assert!(scanner.pending.capacity() <= KEPT);
}

#[test]
fn the_smallest_limit_still_makes_progress() {
    for framing in [
        Framing::EventStream,
        Framing::JsonArray,
        Framing::NdJson,
        Framing::Sse,
    ] {
        let mut scanner = Scanner::new(framing, 0);
        let (pieces, _) = scan(&mut scanner, &[b"data: {\"a\":1}\r\n\r\n\n{}\n"]);
        let told: usize = pieces.iter().map(|(length, _)| length).sum();
        assert_eq!(told, 21, "{framing:?}");
    }
}

#[test]
fn framings_by_content_type() {
    for (content_type, framing) in [
        ("text/event-stream", Some(Framing::Sse)),
        ("TEXT/Event-Stream ; charset=UTF-8", Some(Framing::Sse)),
        ("application/x-ndjson", Some(Framing::NdJson)),
        ("application/stream+json", Some(Framing::NdJson)),
        (
            "application/vnd.amazon.eventstream",
            Some(Framing::EventStream),
        ),
        ("application/json; charset=UTF-8", Some(Framing::JsonArray)),
        ("text/html", None),
        ("", None),
    ] {
        assert_eq!(
            Framing::of_content_type(content_type),
            framing,
            "{content_type}"
        );
    }
}
