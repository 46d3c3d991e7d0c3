//! What is JSON and what stands where in it, held against `serde_json`.

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::*;

fn is_json(text: &[u8]) -> bool {
    let is_json = Value::read(text).is_some();
    // Read in one go, an object is one in the same cases.
    let mut fields = Fields::of(text);
    let is_object = text.trim_ascii_start().starts_with(b"{");
    let count = (&mut fields).count();
    assert_eq!(fields.were_all(), is_json && is_object);
    assert!(count <= text.len());
    is_json
}

fn is_json_to_serde(text: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok()
}

#[test]
fn what_is_json_and_what_is_not() {
    for text in [
        "null",
        " true ",
        "false",
        "0",
        "-0",
        "10",
        "0.5",
        "1e9",
        "-1.25E-3",
        "\"\"",
        "[]",
        "{}",
        "[ ]",
        "{ }",
        "[1,2]",
        "[[],{}]",
        r#"{"a":1}"#,
        r#" { "a" : [ 1 , "b" ] , "c" : null } "#,
        r#""\u00e9\n\/\"\\""#,
        r#""\ud800""#,
        "\"é\"",
        "\"\u{7f}\"",
    ] {
        assert!(is_json(text.as_bytes()), "{text}");
        assert!(is_json_to_serde(text.as_bytes()), "{text}");
    }
    for text in [
        "",
        " ",
        "nul",
        "nulll",
        "tru",
        "01",
        "+1",
        "-",
        "-a",
        "1.",
        ".5",
        "1e",
        "1e+",
        "1 2",
        "\"",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\\u123\"",
        "\"a\nb\"",
        "\"a\u{1}\"",
        "[",
        "]",
        "[1",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1}",
        "{",
        "{]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{a:1}",
        "{1:1}",
        "{\"a\":1]",
        "{\"a\":1 \"b\":2}",
        "[]]",
        "\u{feff}1",
    ] {
        assert!(!is_json(text.as_bytes()), "{text}");
        assert!(!is_json_to_serde(text.as_bytes()), "{text}");
    }
}

#[test]
fn it_goes_as_deep_as_serde_json() {
    for levels in [1, 63, 64, 65, 128, 129, 1_000, 100_000] {
        let whole = r#"[{"a":"#.repeat(levels) + "1" + &"}]".repeat(levels);
        assert!(is_json(whole.as_bytes()), "{levels}");
        assert!(is_json_to_serde(whole.as_bytes()), "{levels}");
        for spoiled in [
            &whole[..whole.len() - 1],
            &(whole.clone() + "]"),
            &whole.replacen('}', "]", 1),
        ] {
            assert!(!is_json(spoiled.as_bytes()), "{levels}");
        }
    }
}

#[test]
fn every_byte_of_a_string_is_looked_at() {
    for length in 0..100 {
        let plain = format!("\"{}\"", "a".repeat(length));
        assert!(is_json(plain.as_bytes()), "{length}");
        for at in 1..=length {
            for byte in [b'"', b'\\', b'\n', 0, 0x1f, b' ', b'!', 0x7f, 0x80, 0xff] {
                let mut text = plain.clone().into_bytes();
                text[at] = byte;
                assert_eq!(
                    is_json(&text),
                    is_json_to_serde(&text),
                    "{length} {at} {byte}"
                );
            }
        }
    }
}

#[test]
fn fields_and_elements_stand_where_they_were_written() {
    let text = br#" {"a" : [1 , {"b":"c"},[]] ,"\u0061\n":"x\ty", "":{ }, "a":null} "#;
    let value = Value::read(text).unwrap();
    let found: Vec<_> = value.fields().collect();
    let keys: Vec<_> = found
        .iter()
        .map(|(key, _)| str::from_utf8(key).unwrap())
        .collect();
    assert_eq!(keys, ["a", "a\n", "", "a"]);
    let list = found[0].1;
    assert_eq!(list.get(), br#"[1 , {"b":"c"},[]]"#);
    let elements: Vec<_> = list.elements().map(Value::get).collect();
    assert_eq!(elements, [&b"1"[..], br#"{"b":"c"}"#, b"[]"]);
    assert_eq!(found[1].1.text().unwrap(), "x\ty");
    assert!(found[2].1.is_object() && found[3].1.is_null());
    for value in ["1", "\"{}\"", "null"] {
        let value = Value::read(value.as_bytes()).unwrap();
        assert!(value.fields().next().is_none() && value.elements().next().is_none());
    }
    assert!(value.elements().next().is_none() && list.fields().next().is_none());
}

#[test]
fn texts_and_numbers_are_read_and_nothing_else_is_taken_for_one() {
    let text = |text: &'static str| Value::read(text.as_bytes()).unwrap().text();
    assert_eq!(text(r#""a""#).unwrap(), "a");
    assert_eq!(text(r#""\u00e9""#).unwrap(), "é");
    assert_eq!(text(r#""\ud800""#), None);
    assert_eq!(Value::read(b"\"\xff\"").unwrap().text(), None);
    for other in ["1", "null", "[\"a\"]"] {
        assert_eq!(text(other), None);
    }
    let number = |text: &'static str| Value::read(text.as_bytes()).unwrap().number();
    assert_eq!(
        (number("3.0"), number("-2e1"), number("7")),
        (Some(3.0), Some(-20.0), Some(7.0))
    );
    for other in ["\"1\"", "null", "[1]"] {
        assert_eq!(number(other), None);
    }
}

object! {
    struct Told {
        first,
        second = "2nd",
    }
    even_null { third, }
}

#[test]
fn the_objects_of_a_list_are_read_and_whatever_else_it_holds_is_passed_over() {
    let list = |text: &'static str| Value::read(text.as_bytes()).unwrap().objects::<Told<'_>>();
    let firsts = |text| -> Vec<_> { list(text).map(|told| told.first.map(Value::get)).collect() };
    let text = r#"[ 1, {"first":[2]} ,{}, "{}", [{"first":3}], { "second":"]", "first":4 } ]"#;
    assert_eq!(firsts(text), [Some(&b"[2]"[..]), None, Some(b"4")]);
    for text in ["[]", "[1]", "{}", r#"{"first":1}"#, "null"] {
        assert!(firsts(text).is_empty(), "{text}");
    }
}

#[test]
fn an_object_has_the_fields_that_tell() {
    let read = |text: &'static str| Told::read(Value::read(text.as_bytes()).unwrap());
    let told = read(r#"{"first":1,"2nd":null,"second":2,"third":null,"first":3}"#).unwrap();
    assert_eq!(told.first.unwrap().get(), b"3");
    assert!(told.second.is_none() && told.third.unwrap().is_null());
    assert!(read("[1]").is_none());
}

/// Bits of JSON in any order: some of it is.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u00e9", "\\n", "a", "\"a\"", "\"a\":", "1",
        "-", ".", "e", "0", "true", "null", " ", "\n", "é", "\u{1}",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat().into_bytes())
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[a-z\"\\\\\n]{0,80}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn it_is_json_where_serde_json_says_so(text in pieces()) {
        prop_assert_eq!(is_json(&text), is_json_to_serde(&text));
    }

    #[test]
    fn a_spoiled_byte_is_seen_where_serde_json_sees_it(value in value(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut text = serde_json::to_vec(&value).unwrap();
        let at = at.index(text.len());
        text[at] = byte;
        prop_assert_eq!(is_json(&text), is_json_to_serde(&text), "{:?}", String::from_utf8_lossy(&text));
        text.truncate(at);
        prop_assert_eq!(is_json(&text), is_json_to_serde(&text), "{:?}", String::from_utf8_lossy(&text));
    }

    #[test]
    fn parts_are_the_same_slices_that_serde_json_gives(value in value(), pretty in any::<bool>()) {
        let text = match pretty {
            true => serde_json::to_vec_pretty(&value).unwrap(),
            false => serde_json::to_vec(&value).unwrap(),
        };
        let read = Value::read(&text).unwrap();
        if let Ok(fields) = serde_json::from_slice::<std::collections::BTreeMap<String, &RawValue>>(&text) {
            let found: std::collections::BTreeMap<_, _> = read.fields().collect();
            prop_assert_eq!(found.len(), fields.len());
            for (key, raw) in fields {
                prop_assert_eq!(found[key.as_bytes()].get(), raw.get().as_bytes());
            }
        }
        if let Ok(elements) = serde_json::from_slice::<Vec<&RawValue>>(&text) {
            let found: Vec<_> = read.elements().map(Value::get).collect();
            let elements: Vec<_> = elements.iter().map(|raw| raw.get().as_bytes()).collect();
            prop_assert_eq!(found, elements);
        }
        if let Ok(said) = serde_json::from_slice::<String>(&text) {
            prop_assert_eq!(read.text().unwrap(), said);
        }
    }
}
