//! Reading the few fields of an event that tell, and whether the rest is JSON at all.

use std::borrow::Cow;

use super::{Finish, Look, Usage};
use crate::json::{Object, Value};

/// A value that may be missing, or null.
pub(super) type Raw<'e> = Option<Value<'e>>;

/// Reads an event's fields and what they mean; none where the text is no JSON. One event in an array of its own is
/// that event, as at Vertex AI. JSON of another shape means nothing.
pub(super) fn look<'e, E: Object<'e>>(
    text: &'e [u8],
    mean: impl FnOnce(E) -> Look,
) -> Option<Look> {
    if let Some(event) = E::of(text) {
        return Some(mean(event));
    }
    let mut elements = Value::read(text)?.elements();
    match (elements.next().and_then(E::read), elements.next()) {
        (Some(event), None) => Some(mean(event)),
        _ => Some(Look::default()),
    }
}

/// Whether the value of `error` is one: some send an empty text or `false` where there is none.
pub(super) fn is_error(error: Raw<'_>) -> bool {
    error.is_some_and(|error| !matches!(error.get(), b"\"\"" | b"false"))
}

/// What the objects of a list mean together. They are read one by one and not kept: a list of any length costs nothing.
pub(super) fn look_of<'e, E: Object<'e>>(list: Raw<'e>, mean: impl Fn(E) -> Look) -> Look {
    let elements = list.into_iter().flat_map(Value::objects::<E>);
    elements.fold(Look::default(), |look, element| look.and(mean(element)))
}

/// Whether any of these holds something.
pub(super) fn any_filled<const N: usize>(values: [Raw<'_>; N]) -> bool {
    values.into_iter().any(is_filled)
}

pub(super) fn is_filled(value: Raw<'_>) -> bool {
    value.is_some_and(|value| !matches!(value.get(), b"\"\"" | b"[]" | b"{}"))
}

/// A string's text; empty where there is none.
pub(super) fn text(value: Raw<'_>) -> Cow<'_, str> {
    value.and_then(Value::text).unwrap_or_default()
}

pub(super) fn finish(reason: Raw<'_>) -> Option<Finish> {
    Finish::of(&text(reason))
}

/// The sums of what is there. Some providers write whole numbers with a decimal point.
pub(super) fn usage<const I: usize, const O: usize>(
    input: [Raw<'_>; I],
    output: [Raw<'_>; O],
) -> Usage {
    Usage {
        input_tokens: sum(input),
        output_tokens: sum(output),
    }
}

fn sum<const N: usize>(counts: [Raw<'_>; N]) -> Option<u64> {
    let counts = counts.into_iter().filter_map(|count| count?.number());
    counts
        .reduce(|sum, count| sum + count)
        .map(|sum| sum as u64)
}
