//! The two top-level fields of a request's body that routing needs, found without building the rest.

use std::ops::Range;

use super::{MAX_NAME, Model, Place};
use crate::json::{self, Value};

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
        let text = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body);
        let mut fields = json::Fields::of(text);
        let (mut models, mut stream) = (Vec::new(), None);
        for (key, value) in &mut fields {
            match &*key {
                // One more than allowed tells that there were too many.
                b"model" if models.len() <= MAX_PLACES => models.push(value),
                b"stream" => stream = Some(value),
                _ => {}
            }
        }
        if !fields.were_all() {
            return Self::default();
        }
        let model = models.last().and_then(|value| value.text());
        let places: Option<Vec<_>> = models.iter().map(|value| place_in(body, *value)).collect();
        Self {
            model: model
                .filter(|name| name.len() <= MAX_NAME && models.len() <= MAX_PLACES)
                .zip(places)
                .map(|(name, places)| Model {
                    name: name.into_owned(),
                    place: Place::Body(places),
                }),
            stream: stream.is_some_and(|value| value.get() == b"true"),
        }
    }
}

/// Where in `body` a value borrowed from it lies.
fn place_in(body: &[u8], value: Value<'_>) -> Option<Range<usize>> {
    let text = value.get();
    let start = text.as_ptr().addr().checked_sub(body.as_ptr().addr())?;
    Some(start..start + text.len())
}
