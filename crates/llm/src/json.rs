//! Looking into JSON without building anything of it.
//!
//! A text is passed over from front to back, what a model or a user wrote in it by `memchr`, and so at the speed of memory;
//! what is asked for is given as the slice where it stands. By `serde_json`, a value that is not looked into is
//! passed over eight bytes at a time, and one inside of another once for each of them.
//!
//! Which texts are JSON is decided as `serde_json` does (RFC 8259), and tests hold the two against each
//! other. Half a surrogate pair, as some servers send where a letter spans two events, is no fault, and of several equal
//! keys the last one wins.

mod scan;

use std::borrow::Cow;

use memchr::memchr;
use scan::{past_blanks, string_end, value_end};

/// One value, where it stands in its text: JSON, without blanks around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Value<'a>(&'a [u8]);

impl<'a> Value<'a> {
    /// The value that a text is; none where it is no JSON.
    pub(crate) fn read(text: &'a [u8]) -> Option<Self> {
        let start = past_blanks(text, 0);
        let end = value_end(text, start)?;
        let is_all = past_blanks(text, end) == text.len();
        text.get(start..end).filter(|_| is_all).map(Self)
    }

    /// As it is written.
    pub(crate) const fn get(self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn is_object(self) -> bool {
        self.0.starts_with(b"{")
    }

    pub(crate) fn is_list(self) -> bool {
        self.0.starts_with(b"[")
    }

    pub(crate) fn is_null(self) -> bool {
        self.0 == b"null"
    }

    /// An object's keys and values in their order; nothing of any other value.
    pub(crate) fn fields(self) -> Fields<'a> {
        Fields(Parts::of(self.0, b'{'))
    }

    /// A list's elements in their order; nothing of any other value.
    pub(crate) fn elements(self) -> Elements<'a> {
        Elements(Parts::of(self.0, b'['))
    }

    /// Those of a list's elements that are objects, read in one go.
    pub(crate) fn objects<T: Object<'a>>(self) -> impl Iterator<Item = T> {
        let mut parts = Parts::of(self.0, b'[');
        std::iter::from_fn(move || {
            loop {
                if parts.text.get(parts.at)? != &b'{' {
                    parts.value()?;
                    continue;
                }
                let mut fields = Fields(Parts::of(parts.text.get(parts.at..)?, b'{'));
                let object = T::take_all(&mut fields);
                parts.pass(parts.at + fields.0.end?)?;
                return Some(object);
            }
        })
    }

    /// A string's text, borrowed unless it is written with escapes; none where it is no string, or none in Unicode.
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        let inner = self.inner()?;
        if memchr(b'\\', inner).is_some() {
            return serde_json::from_slice(self.0).ok().map(Cow::Owned);
        }
        std::str::from_utf8(inner).ok().map(Cow::Borrowed)
    }

    /// A number; none where it is none.
    pub(crate) fn number(self) -> Option<f64> {
        let is_number = matches!(self.0, [b'-' | b'0'..=b'9', ..]);
        let text = str::from_utf8(self.0).ok().filter(|_| is_number)?;
        text.parse().ok()
    }

    /// What stands between a string's quotes.
    fn inner(self) -> Option<&'a [u8]> {
        match self.0 {
            [b'"', inner @ .., b'"'] => Some(inner),
            _ => None,
        }
    }
}

/// Where the next part of an object or a list begins.
struct Parts<'a> {
    text: &'a [u8],
    at: usize,
    closes: u8,
    /// Behind the bracket that closes them, once that has come.
    end: Option<usize>,
}

impl<'a> Parts<'a> {
    /// Of what a text begins with, if that is `opens`; none of anything else. More may come after it.
    fn of(text: &'a [u8], opens: u8) -> Self {
        let is_meant = text.first() == Some(&opens);
        let text = if is_meant { text } else { &[] };
        let mut parts = Self {
            text,
            at: past_blanks(text, 1),
            closes: if opens == b'{' { b'}' } else { b']' },
            end: None,
        };
        if text.get(parts.at) == Some(&parts.closes) {
            parts.close();
        }
        parts
    }

    /// The value that begins here.
    fn value(&mut self) -> Option<Value<'a>> {
        let (start, end) = (self.at, value_end(self.text, self.at)?);
        self.pass(end)?;
        self.text.get(start..end).map(Value)
    }

    /// Moves on behind the comma after the value that ends here.
    fn pass(&mut self, end: usize) -> Option<()> {
        self.at = past_blanks(self.text, end);
        match *self.text.get(self.at)? {
            b',' => self.at = past_blanks(self.text, self.at + 1),
            byte if byte == self.closes => self.close(),
            _ => return None,
        }
        Some(())
    }

    /// The key that begins here, and moves on behind its colon.
    fn key(&mut self) -> Option<Cow<'a, [u8]>> {
        if self.text.get(self.at) != Some(&b'"') {
            return None;
        }
        let (start, ended) = (self.at, string_end(self.text, self.at + 1)?);
        let colon = past_blanks(self.text, ended.at);
        if self.text.get(colon) != Some(&b':') {
            return None;
        }
        self.at = past_blanks(self.text, colon + 1);
        let key = Value(self.text.get(start..ended.at)?);
        if ended.is_plain {
            return key.inner().map(Cow::Borrowed);
        }
        let text = key.text().unwrap_or_default().into_owned();
        Some(Cow::Owned(text.into_bytes()))
    }

    fn close(&mut self) {
        self.end = Some(self.at + 1);
        self.at = self.text.len();
    }
}

/// An object's keys and values in their order.
pub(crate) struct Fields<'a>(Parts<'a>);

impl<'a> Fields<'a> {
    /// Those of a text that may be an object, or anything. They end where it stops to be one: see
    /// [`were_all`](Self::were_all).
    pub(crate) fn of(text: &'a [u8]) -> Self {
        let start = past_blanks(text, 0);
        Self(Parts::of(text.get(start..).unwrap_or_default(), b'{'))
    }

    /// Once there are no more: whether the text was an object, and nothing else.
    pub(crate) fn were_all(&self) -> bool {
        let after = self.0.end.map(|end| past_blanks(self.0.text, end));
        after == Some(self.0.text.len())
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (Cow<'a, [u8]>, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.0.key()?;
        Some((key, self.0.value()?))
    }
}

/// See [`Value::elements`].
pub(crate) struct Elements<'a>(Parts<'a>);

impl<'a> Iterator for Elements<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.0.value()
    }
}

/// What is read of an object: the fields that tell.
pub(crate) trait Object<'a>: Default {
    /// Takes a field, if it is one that tells.
    fn take(&mut self, key: &[u8], value: Value<'a>);

    /// None where the value is no object.
    fn read(value: Value<'a>) -> Option<Self> {
        let mut fields = value.fields();
        value.is_object().then(|| Self::take_all(&mut fields))
    }

    /// The object that a text is, read in one go; none where it is no JSON or no object.
    fn of(text: &'a [u8]) -> Option<Self> {
        let mut fields = Fields::of(text);
        let object = Self::take_all(&mut fields);
        fields.were_all().then_some(object)
    }

    /// Takes all that are left.
    fn take_all(fields: &mut Fields<'a>) -> Self {
        let mut object = Self::default();
        for (key, value) in fields {
            object.take(&key, value);
        }
        object
    }
}

/// A struct of the fields of an object that tell, each under its own name or the one that is written behind it. A field that
/// is null is not there, unless it is one of `even_null`.
macro_rules! object {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident $(= $key:literal)?,)*
        }
        $(even_null { $($null_vis:vis $null:ident,)* })?
    ) => {
        $(#[$meta])*
        #[derive(Default)]
        $vis struct $name<'a> {
            $($(#[$field_meta])* $field_vis $field: Option<$crate::json::Value<'a>>,)*
            $($($null_vis $null: Option<$crate::json::Value<'a>>,)*)?
        }

        impl<'a> $crate::json::Object<'a> for $name<'a> {
            fn take(&mut self, key: &[u8], value: $crate::json::Value<'a>) {
                $(
                    if key == $crate::json::key!($field $($key)?) {
                        self.$field = Some(value).filter(|value| !value.is_null());
                        return;
                    }
                )*
                $($(
                    if key == $crate::json::key!($null) {
                        self.$null = Some(value);
                    }
                )*)?
            }
        }
    };
}

macro_rules! key {
    ($field:ident $key:literal) => {
        $key.as_bytes()
    };
    ($field:ident) => {
        stringify!($field).as_bytes()
    };
}

pub(crate) use {key, object};

#[cfg(test)]
mod tests;
