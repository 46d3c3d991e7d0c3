//! `Node`: a place in an event's JSON, read when asked for. What is not there, or of another type, is nothing.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// A value, as it is written; none where there is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Node<'e>(Option<&'e str>);

/// The fields of an object.
#[derive(Debug, Default)]
pub(super) struct Fields<'e>(BTreeMap<String, &'e RawValue>);

impl<'e> Fields<'e> {
    pub(super) fn get(&self, name: &str) -> Node<'e> {
        Node(self.0.get(name).map(|value| value.get()))
    }

    /// The first of these that says something.
    pub(super) fn first(&self, names: &[&str]) -> Node<'e> {
        let mut values = names.iter().map(|name| self.get(name));
        values.find(|value| value.is_filled()).unwrap_or_default()
    }
}

impl<'e> Node<'e> {
    pub(super) const fn new(text: &'e str) -> Self {
        Self(Some(text))
    }

    pub(super) fn fields(self) -> Fields<'e> {
        let fields = self.0.and_then(|text| serde_json::from_str(text).ok());
        Fields(fields.unwrap_or_default())
    }

    pub(super) fn get(self, name: &str) -> Self {
        self.fields().get(name)
    }

    pub(super) fn items(self) -> Vec<Self> {
        let items: Option<Vec<&RawValue>> = self.0.and_then(|text| serde_json::from_str(text).ok());
        let items = items.unwrap_or_default().into_iter();
        items.map(|item| Self(Some(item.get()))).collect()
    }

    pub(super) fn number(self) -> Option<u64> {
        self.0?.parse().ok()
    }

    /// A text between its quotes, its escapes as they are written.
    pub(super) fn escaped(self) -> Option<&'e str> {
        self.0?.trim().strip_prefix('"')?.strip_suffix('"')
    }

    pub(super) fn text(self) -> String {
        self.escaped().and_then(decode).unwrap_or_default()
    }

    /// An object that is not empty, as it is written.
    pub(super) fn object(self) -> Option<&'e str> {
        self.0.filter(|text| text.starts_with('{') && *text != "{}")
    }

    pub(super) fn is_true(self) -> bool {
        self.0 == Some("true")
    }

    fn is_filled(self) -> bool {
        self.0
            .is_some_and(|text| !matches!(text, "null" | "\"\"" | "[]"))
    }
}

/// What an escaped text says; none where half a letter is missing.
pub(super) fn decode(escaped: &str) -> Option<String> {
    if !escaped.contains('\\') {
        return Some(escaped.to_owned());
    }
    serde_json::from_str(&format!("\"{escaped}\"")).ok()
}
