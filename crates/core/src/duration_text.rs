//! Durations in configuration: `"30s"`, `"2m"`, `"500ms"`. For `#[serde(with)]` on a field or an optional one.

use core::time::Duration;

use serde::{Deserialize, Deserializer};

/// What a duration field may be: itself or optional.
pub(crate) trait FromText: Sized {
    fn from_text(text: Option<Duration>) -> Option<Self>;
}

impl FromText for Duration {
    fn from_text(text: Option<Duration>) -> Option<Self> {
        text
    }
}

impl FromText for Option<Duration> {
    fn from_text(text: Option<Duration>) -> Option<Self> {
        Some(text)
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: FromText>(from: D) -> Result<T, D::Error> {
    let duration = match Option::<std::borrow::Cow<'de, str>>::deserialize(from)? {
        None => None,
        Some(text) => Some(humantime::parse_duration(&text).map_err(|why| {
            serde::de::Error::custom(format_args!(
                "`{text}` is no duration such as \"30s\", \"2m\" or \"500ms\": {why}"
            ))
        })?),
    };
    T::from_text(duration).ok_or_else(|| serde::de::Error::custom("a duration is missing"))
}
