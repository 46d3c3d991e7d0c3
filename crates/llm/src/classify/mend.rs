//! Cut JSON made whole, so that what was said before the cut can still be read.
//!
//! Everything up to the cut stays; open strings and containers are closed. A member whose value did not come is
//! dropped. What is no JSON before the cut stays no JSON.

/// The text with its open ends closed; the same text where nothing is open. One pass, no recursion.
pub(super) fn mend(cut: &str) -> String {
    let mut open = Vec::new();
    let mut keep = Keep::default();
    let mut text = Text::Outside;
    for (at, byte) in cut.bytes().enumerate() {
        text = match (text, byte) {
            (Text::Inside, b'\\') => Text::Escape { left: 1 },
            (Text::Inside, b'"') => {
                keep.ended(at + 1, &open);
                Text::Outside
            }
            (Text::Inside, _) => Text::Inside,
            (Text::Escape { .. }, b'u') => Text::Escape { left: 4 },
            (Text::Escape { left: 1 }, _) => Text::Inside,
            (Text::Escape { left }, _) => Text::Escape { left: left - 1 },
            (Text::Outside, _) => keep.outside(byte, at, &mut open),
        };
        if text == Text::Inside {
            keep.inside = at + 1;
        }
    }
    keep.close(cut, text, open)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    Outside,
    Inside,
    /// In an escape sequence that wants so many further bytes.
    Escape {
        left: u8,
    },
}

/// How much of the text is worth keeping.
#[derive(Debug, Default)]
struct Keep {
    /// Up to here all values are whole.
    whole: usize,
    /// Up to here a string goes that has not ended, less a broken escape.
    inside: usize,
    /// Whether the next string of an object is a key.
    key: bool,
}

impl Keep {
    fn outside(&mut self, byte: u8, at: usize, open: &mut Vec<u8>) -> Text {
        match byte {
            b'"' => return Text::Inside,
            b'{' | b'[' => {
                self.key = byte == b'{';
                open.push(byte + 2);
                self.whole = at + 1;
            }
            b'}' | b']' => {
                open.pop();
                self.key = false;
                self.whole = at + 1;
            }
            b':' => self.key = false,
            b',' => {
                // A number or a word before it is whole now.
                self.whole = self.whole.max(at);
                self.key = open.last() == Some(&b'}');
            }
            _ => {}
        }
        Text::Outside
    }

    /// A string has ended.
    fn ended(&mut self, at: usize, open: &[u8]) {
        if !(self.key && open.last() == Some(&b'}')) {
            self.whole = at;
        }
    }

    fn close(self, cut: &str, text: Text, open: Vec<u8>) -> String {
        let in_value = text != Text::Outside && !self.key;
        let end = if in_value { self.inside } else { self.whole };
        // The end of a string may lie within a letter where the text itself was cut by bytes; it is text, so it cannot.
        let mut whole = cut.get(..end).unwrap_or_default().to_owned();
        if in_value {
            whole.push('"');
        }
        whole.extend(open.into_iter().rev().map(char::from));
        whole
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn mended(cut: &str) -> Value {
        serde_json::from_str(&mend(cut)).unwrap_or(Value::Null)
    }

    #[test]
    fn what_came_before_the_cut_is_kept() {
        for (cut, whole) in [
            (
                r#"{"error":{"message":"int"#,
                json!({"error": {"message": "int"}}),
            ),
            (
                r#"{"error":{"code":"a","mess"#,
                json!({"error": {"code": "a"}}),
            ),
            (
                r#"{"error":{"code":"a","message":"#,
                json!({"error": {"code": "a"}}),
            ),
            (
                r#"{"error":{"code":"a","message""#,
                json!({"error": {"code": "a"}}),
            ),
            (
                r#"{"error":{"code":429,"n":12"#,
                json!({"error": {"code": 429}}),
            ),
            (r#"{"a":tru"#, json!({})),
            (r#"{"a":"x\"#, json!({"a": "x"})),
            (r#"{"a":"x\u00"#, json!({"a": "x"})),
            (r#"{"a":"x\u00e4"#, json!({"a": "xä"})),
            (r#"{"a":"x\\"#, json!({"a": "x\\"})),
            (r#"[{"a":["b",{"c":"d"#, json!([{"a": ["b", {"c": "d"}]}])),
            (r#"{"a":"é"#, json!({"a": "é"})),
            (r#"{"a":1}"#, json!({"a": 1})),
        ] {
            assert_eq!(mended(cut), whole, "{cut}");
        }
    }

    #[test]
    fn what_is_no_json_stays_none() {
        for text in [
            "<html>",
            "{'a': 1",
            "}",
            "]]",
            "",
            "{a",
            "\"",
            "{\"a\" \"b\"",
        ] {
            assert_eq!(
                mended(text).as_object().map_or(0, serde_json::Map::len),
                0,
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in r#"[{}\[\]:,"\\u0a é]{0,40}"#) {
            let _ = mend(&text);
        }

        #[test]
        fn every_cut_of_json_is_json(at in 1_usize..120) {
            let text = r#"{"error":{"message":"a \"b\" é \u00e4","code":429,"list":[1,"x",{"y":null}],"t":true},"id":"z"}"#;
            let cut = text.get(..at.min(text.len()));
            if let Some(cut) = cut {
                prop_assert!(serde_json::from_str::<Value>(&mend(cut)).is_ok(), "{} -> {}", cut, mend(cut));
            }
        }
    }
}
