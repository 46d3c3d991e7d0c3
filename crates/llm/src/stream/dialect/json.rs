//! Reading the few fields of an event that tell, and whether the rest is JSON at all.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{Finish, Look, Usage};

/// A string, borrowed from the event unless it is written with escapes.
#[derive(Deserialize)]
pub(super) struct Text<'e>(#[serde(borrow)] Cow<'e, str>);

/// A value that is not looked into. Half a surrogate pair, as some servers send where a letter spans two events, is
/// no fault in it.
pub(super) type Raw<'e> = Option<&'e RawValue>;

/// Reads an event's fields and what they mean; none where the text is no JSON. One event in an array of its own is
/// that event, as at Vertex AI. JSON of another shape means nothing, unless it has an error.
pub(super) fn look<'e, E: Deserialize<'e>>(
    text: &'e str,
    mean: impl FnOnce(E) -> Look,
) -> Option<Look> {
    if let Ok(event) = serde_json::from_str(text) {
        return Some(mean(event));
    }
    if let Ok([event]) = serde_json::from_str::<[E; 1]>(text) {
        return Some(mean(event));
    }
    let other = serde_json::from_str::<ErrorOnly<'_>>(text);
    let IgnoredAny = serde_json::from_str(text).ok()?;
    Some(Look {
        is_error: other.is_ok_and(|other| is_error(other.error)),
        ..Look::default()
    })
}

#[derive(Deserialize)]
struct ErrorOnly<'e> {
    #[serde(borrow)]
    error: Raw<'e>,
}

/// Whether the value of `error` is one: some send an empty text or `false` where there is none.
pub(super) fn is_error(error: Raw<'_>) -> bool {
    error.is_some_and(|error| !matches!(error.get(), "\"\"" | "false"))
}

/// An element of a list, with a meaning of its own.
pub(super) trait Element {
    fn look(self) -> Look;
}

/// What the elements of a list mean together. They are read one by one and not kept: a list of any length costs nothing.
pub(super) struct Each<E> {
    look: Look,
    of: PhantomData<E>,
}

impl<'e, E: Deserialize<'e> + Element> Deserialize<'e> for Each<E> {
    fn deserialize<D: Deserializer<'e>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Elements(PhantomData))
    }
}

struct Elements<E>(PhantomData<E>);

impl<'e, E: Deserialize<'e> + Element> Visitor<'e> for Elements<E> {
    type Value = Each<E>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'e>>(self, mut list: A) -> Result<Each<E>, A::Error> {
        let mut look = Look::default();
        while let Some(element) = list.next_element::<E>()? {
            look = look.and(element.look());
        }
        Ok(Each { look, of: self.0 })
    }
}

/// What a list means that may be missing or null.
pub(super) fn look_of<E>(list: Option<Each<E>>) -> Look {
    list.map(|list| list.look).unwrap_or_default()
}

/// Whether any of these holds something.
pub(super) fn any_filled<const N: usize>(values: [Raw<'_>; N]) -> bool {
    values.into_iter().any(is_filled)
}

pub(super) fn is_filled(value: Raw<'_>) -> bool {
    value.is_some_and(|value| !matches!(value.get(), "\"\"" | "[]" | "{}"))
}

pub(super) fn text<'t>(text: Option<&'t Text<'_>>) -> &'t str {
    text.map_or("", |Text(text)| text)
}

pub(super) fn finish(reason: Option<&Text<'_>>) -> Option<Finish> {
    Finish::of(text(reason))
}

/// The sums of what is there. Some providers write whole numbers with a decimal point.
pub(super) fn usage<const I: usize, const O: usize>(
    input: [Option<f64>; I],
    output: [Option<f64>; O],
) -> Usage {
    Usage {
        input_tokens: sum(input),
        output_tokens: sum(output),
    }
}

fn sum<const N: usize>(counts: [Option<f64>; N]) -> Option<u64> {
    let sum = counts
        .into_iter()
        .flatten()
        .reduce(|sum, count| sum + count);
    sum.map(|sum| sum as u64)
}
