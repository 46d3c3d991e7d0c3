//! Hints in JSON bodies: fields that say a wait, and headers that a body quotes.
//!
//! Gateways wrap the errors of providers: in lists, in objects, as JSON inside a string. All of it is walked once, to a
//! depth and to a number of values that no honest error reaches.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

use crate::head::Headers;

use super::value::{self, Reading};
use super::{Hint, HintSource, header};

/// How many objects, or texts that are JSON, one may stand inside another below the outermost.
const MOST_DEPTH: usize = 4;
/// How many values are looked at.
const MOST_VALUES: usize = 4_096;

/// What fields are called, the letters of that, and how they are read; the most trusted first. Case, `_` and `-` make no
/// other name.
#[rustfmt::skip]
const FIELDS: [(&str, &[u8], Reading); 10] = [
    ("retryDelay",          b"retrydelay",        value::seconds), // Google, RetryInfo: 56s, 0.539477544s
    ("retry_after_ms",      b"retryafterms",      value::millis),  // gateways
    ("retry_after_seconds", b"retryafterseconds", value::seconds), // gateways
    ("retry_after",         b"retryafter",        value::seconds), // gateways; also a duration or a date
    ("quotaResetDelay",     b"quotaresetdelay",   value::seconds), // Google, ErrorInfo: 539.477544ms
    ("resets_in_seconds",   b"resetsinseconds",   value::seconds), // ChatGPT's backend
    ("reset_in_seconds",    b"resetinseconds",    value::seconds), // gateways
    ("resets_at",           b"resetsat",          value::reset),   // ChatGPT's backend: seconds since 1970
    ("reset_at",            b"resetat",           value::reset),   // gateways; also RFC 3339
    ("estimated_time",      b"estimatedtime",     value::seconds), // Hugging Face, a model that is loading: 42.3
];

/// A key of more letters says nothing.
const MOST_LETTERS: usize = 17;

/// Google's name for a limit, and what is part of it where the limit is one of a day.
const QUOTA_ID: &[u8] = b"quotaid";
const A_DAY: &str = "PerDay";

/// The field that holds headers of another answer.
const QUOTED_HEADERS: &[u8] = b"headers";

/// What a body says.
#[derive(Default)]
pub(super) struct Said {
    pub(super) hint: Option<Hint>,
    /// A limit of a day is used up: a wait beside it is that of another limit.
    pub(super) shows_daily_limit: bool,
}

/// Reads all of a body, within bounds.
pub(super) fn read(body: &Value, wall: SystemTime) -> Said {
    let mut walk = Walk {
        wall,
        values_left: MOST_VALUES,
        field: None,
        quoted: None,
        shows_daily_limit: false,
    };
    walk.value(body, 0);
    let field = walk.field.map(|(row, wait)| (FIELDS.get(row), wait));
    let field = field.and_then(|(row, wait)| {
        let source = HintSource::BodyField(row?.0);
        Some(Hint { wait, source })
    });
    Said {
        hint: field.or(walk.quoted),
        shows_daily_limit: walk.shows_daily_limit,
    }
}

struct Walk {
    wall: SystemTime,
    values_left: usize,
    /// The row of the most trusted field so far, and the longest wait that fields of this name say.
    field: Option<(usize, Duration)>,
    quoted: Option<Hint>,
    shows_daily_limit: bool,
}

impl Walk {
    fn value(&mut self, value: &Value, depth: usize) {
        let Some(left) = self.values_left.checked_sub(1) else {
            return;
        };
        self.values_left = left;
        match value {
            Value::Object(object) => self.object(object, depth),
            Value::Array(items) => items.iter().for_each(|item| self.item(item, depth)),
            Value::String(text) => self.text(text, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn item(&mut self, item: &Value, depth: usize) {
        // Lists of lists are nobody's errors.
        if !item.is_array() {
            self.value(item, depth);
        }
    }

    fn text(&mut self, text: &str, depth: usize) {
        if text.trim_start().starts_with(['{', '['])
            && let Some(depth) = deeper(depth)
            && let Ok(value) = serde_json::from_str(text)
        {
            self.value(&value, depth);
        }
    }

    fn object(&mut self, object: &Map<String, Value>, depth: usize) {
        for (key, value) in object {
            let mut letters = [0; MOST_LETTERS];
            let letters = letters_of(key, &mut letters);
            self.field(letters, value);
            match value {
                Value::Object(headers) if letters == QUOTED_HEADERS => self.headers(headers),
                Value::Object(_) | Value::Array(_) => {
                    if let Some(depth) = deeper(depth) {
                        self.value(value, depth);
                    }
                }
                Value::String(id) if letters == QUOTA_ID => {
                    self.shows_daily_limit |= id.contains(A_DAY);
                }
                Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {
                    self.value(value, depth);
                }
            }
        }
    }

    fn field(&mut self, letters: &[u8], value: &Value) {
        let mut rows = FIELDS.iter().enumerate();
        let Some((row, (_, _, reading))) = rows.find(|(_, (_, name, _))| *name == letters) else {
            return;
        };
        let Some(wait) = text_of(value).and_then(|text| reading(text.trim(), self.wall)) else {
            return;
        };
        self.field = match self.field {
            Some((best, _)) if best < row => self.field,
            Some((best, longest)) if best == row => Some((row, longest.max(wait))),
            _ => Some((row, wait)),
        };
    }

    fn headers(&mut self, headers: &Map<String, Value>) {
        let quoted = Quoted(headers);
        let found = header::asked(&quoted, self.wall).or_else(|| header::reset(&quoted, self.wall));
        let hint = found.map(|(name, wait)| Hint {
            wait,
            source: HintSource::BodyHeader(name),
        });
        self.quoted = self
            .quoted
            .into_iter()
            .chain(hint)
            .max_by_key(|hint| hint.wait);
    }
}

fn deeper(depth: usize) -> Option<usize> {
    (depth < MOST_DEPTH).then_some(depth + 1)
}

/// The letters of a key in lower case, written to `space`; none of a key that has more than fit.
fn letters_of<'s>(key: &str, space: &'s mut [u8; MOST_LETTERS]) -> &'s [u8] {
    let mut count = 0;
    for byte in key.bytes().filter(|byte| !matches!(byte, b'_' | b'-')) {
        let Some(letter) = space.get_mut(count) else {
            return &[];
        };
        *letter = byte.to_ascii_lowercase();
        count += 1;
    }
    space.get(..count).unwrap_or_default()
}

fn text_of(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Headers of another answer.
struct Quoted<'a>(&'a Map<String, Value>);

impl Headers for Quoted<'_> {
    fn visit(&self, name: &str, each: &mut dyn FnMut(&str)) {
        let Self(headers) = self;
        headers
            .iter()
            .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            .filter_map(|(_, value)| text_of(value))
            .for_each(|text| each(&text));
    }
}
