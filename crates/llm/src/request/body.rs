//! The two top-level fields of a request's body that routing needs, found without building the rest.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{MAX_NAME, Model, Place};

/// A body that says `model` more often is not served by name.
pub(super) const MAX_PLACES: usize = 8;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The top-level fields of a body that matter. As parsers do, the last of several equal keys wins.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) model: Option<Model>,
    pub(super) stream: bool,
}

impl Fields {
    pub(super) fn read(body: &[u8]) -> Self {
        let json = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body);
        let mut parser = serde_json::Deserializer::from_slice(json);
        let Ok(raw) = parser.deserialize_map(TopLevel) else {
            return Self::default();
        };
        if parser.end().is_err() {
            return Self::default();
        }
        let model = raw
            .models
            .last()
            .and_then(|value| serde_json::from_str::<Cow<'_, str>>(value.get()).ok());
        let places: Option<Vec<_>> = raw
            .models
            .iter()
            .map(|value| place_in(body, value))
            .collect();
        Self {
            model: model
                .filter(|name| name.len() <= MAX_NAME && raw.models.len() <= MAX_PLACES)
                .zip(places)
                .map(|(name, places)| Model {
                    name: name.into_owned(),
                    place: Place::Body(places),
                }),
            stream: raw.stream.is_some_and(|value| value.get() == "true"),
        }
    }
}

/// Where in `body` a value borrowed from it lies.
fn place_in(body: &[u8], value: &RawValue) -> Option<Range<usize>> {
    let text = value.get();
    let start = text.as_ptr().addr().checked_sub(body.as_ptr().addr())?;
    Some(start..start + text.len())
}

#[derive(Default)]
struct RawFields<'a> {
    models: Vec<&'a RawValue>,
    stream: Option<&'a RawValue>,
}

struct TopLevel;

impl<'de> Visitor<'de> for TopLevel {
    type Value = RawFields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = RawFields::default();
        while let Some(Key(key)) = map.next_key()? {
            match &*key {
                // One more than allowed tells that there were too many.
                "model" if fields.models.len() > MAX_PLACES => {
                    map.next_value().map(|IgnoredAny| ())?
                }
                "model" => fields.models.push(map.next_value()?),
                "stream" => fields.stream = Some(map.next_value()?),
                _ => map.next_value().map(|IgnoredAny| ())?,
            }
        }
        Ok(fields)
    }
}

/// A key, borrowed from the body unless it is written with escapes.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
