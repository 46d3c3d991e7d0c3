//! Streams made up from their events: what goes in comes out.

use fuseline_llm::{Framing, Scanner};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::support::{Account, Event, divide, frame, header};

/// The bytes of an event, and the event.
type Made = (Vec<u8>, Event);

fn event(name: Option<&str>, data: &[u8], is_exception: bool) -> Event {
    Event {
        name: name.map(str::to_owned),
        data: data.escape_ascii().to_string(),
        is_exception,
    }
}

/// An event in which comments, ids and the space after the colon come and go.
fn sse() -> impl Strategy<Value = Made> {
    let end = select(&["\n", "\r\n", "\r"][..]);
    let lines = vec("[^\r\n ][^\r\n]{0,12}", 1..4);
    let extra = select(&["", ": comment", "id: 7", "retry: 10", "unknown"][..]);
    let before = select(&["", ": beat", "\n"][..]);
    (end, option::of("[a-z_]{1,9}"), lines, extra, before).prop_map(
        |(end, name, lines, extra, before)| {
            let mut stream = String::new();
            if !before.is_empty() {
                stream.extend([before, end]);
            }
            if let Some(name) = &name {
                stream.extend(["event:", name, end]);
            }
            for line in &lines {
                stream.extend(["data: ", line, end]);
            }
            if !extra.is_empty() {
                stream.extend([extra, end]);
            }
            stream.push_str(end);
            (
                stream.into_bytes(),
                event(name.as_deref(), lines.join("\n").as_bytes(), false),
            )
        },
    )
}

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        any::<String>().prop_map(serde_json::Value::from),
        any::<i32>().prop_map(Into::into)
    ];
    let value = leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            vec((any::<String>(), inner), 0..4).prop_map(|fields| fields.into_iter().collect()),
        ]
    });
    vec(("[a-z]{1,3}", value), 0..3)
        .prop_map(|fields| fields.into_iter().collect::<serde_json::Value>())
        .prop_map(|object| {
            if object.is_object() {
                object.to_string()
            } else {
                "{}".to_owned()
            }
        })
}

fn ndjson() -> impl Strategy<Value = Made> {
    (json(), select(&["\n", "\r\n", " \n\n"][..])).prop_map(|(json, end)| {
        (
            format!("{json}{end}").into_bytes(),
            event(None, json.as_bytes(), false),
        )
    })
}

fn frames() -> impl Strategy<Value = Made> {
    let payload = vec(any::<u8>(), 1..40);
    (any::<bool>(), "[a-zA-Z]{1,20}", payload).prop_map(|(is_exception, name, payload)| {
        let (kind, key) = if is_exception {
            ("exception", ":exception-type")
        } else {
            ("event", ":event-type")
        };
        let headers = [
            header(":content-type", b"application/json"),
            header(key, name.as_bytes()),
            header(":message-type", kind.as_bytes()),
        ];
        (
            frame(&headers.concat(), &payload),
            event(Some(&name), &payload, is_exception),
        )
    })
}

fn come_out(
    framing: Framing,
    begin: &[u8],
    made: Vec<Made>,
    cuts: &[usize],
) -> Result<(), TestCaseError> {
    let (bytes, events): (Vec<_>, Vec<_>) = made.into_iter().unzip();
    let stream = [begin, &bytes.concat()].concat();
    let account = Account::of(framing, Scanner::EVENT_LIMIT, &divide(&stream, cuts));
    prop_assert_eq!(account.events(), events.iter().collect::<Vec<_>>());
    prop_assert_eq!(account.rest, None);
    Ok(())
}

proptest! {
    #[test]
    fn server_sent_events(
        made in vec(sse(), 0..6),
        begin in select(&["", "\u{feff}"][..]),
        cuts in vec(any::<usize>(), 0..8),
    ) {
        come_out(Framing::Sse, begin.as_bytes(), made, &cuts)?;
    }

    #[test]
    fn lines_of_json(made in vec(ndjson(), 0..6), cuts in vec(any::<usize>(), 0..8)) {
        come_out(Framing::NdJson, b"", made, &cuts)?;
    }

    #[test]
    fn frames_of_aws(made in vec(frames(), 0..6), cuts in vec(any::<usize>(), 0..8)) {
        come_out(Framing::EventStream, b"", made, &cuts)?;
    }

    #[test]
    fn an_array_of_json(
        objects in vec(json(), 0..6),
        between in select(&[",", "\r\n,\r\n", " , "][..]),
        cuts in vec(any::<usize>(), 0..8),
    ) {
        let stream = format!("[{}]\n", objects.join(between));
        let chunks = divide(stream.as_bytes(), &cuts);
        let account = Account::of(Framing::JsonArray, Scanner::EVENT_LIMIT, &chunks);
        let expected: Vec<_> = objects.iter().map(|json| event(None, json.as_bytes(), false)).collect();
        prop_assert_eq!(account.events(), expected.iter().collect::<Vec<_>>());
    }
}
