//! `Setting`: the types that one key can have, each with how it is read and how one writes it.

use std::net::SocketAddr;
use std::time::Duration;

use toml::de::DeValue;

/// A type of value.
pub(super) trait Setting: Sized {
    /// What to write, for remedies: "write ...".
    const FORM: &'static str;

    fn read(value: &DeValue<'_>) -> Result<Self, Wrong>;

    /// As one writes it in the file.
    fn written(&self) -> String;

    /// Whether a wrong text must not be repeated in a message.
    fn may_hide_a_secret(_text: &str) -> bool {
        false
    }
}

/// Why a value was not taken.
#[derive(Debug)]
pub(super) enum Wrong {
    /// It is of another TOML type.
    Type,
    /// It is of the right type and says what cannot be.
    Value(&'static str),
}

/// Longest duration taken: a hundred years, so that no sum of an instant and a duration overflows.
const MAX_DURATION: Duration = Duration::from_secs(100 * 365 * 86_400);

impl Setting for String {
    const FORM: &'static str = "a text in quotes";

    fn read(value: &DeValue<'_>) -> Result<Self, Wrong> {
        match text(value)? {
            "" => Err(Wrong::Value("is empty")),
            text => Ok(text.to_owned()),
        }
    }

    fn written(&self) -> String {
        format!("{self:?}")
    }
}

impl Setting for bool {
    const FORM: &'static str = "true or false";

    fn read(value: &DeValue<'_>) -> Result<Self, Wrong> {
        value.as_bool().ok_or(Wrong::Type)
    }

    fn written(&self) -> String {
        self.to_string()
    }
}

impl Setting for u32 {
    const FORM: &'static str = "a whole number";

    fn read(value: &DeValue<'_>) -> Result<Self, Wrong> {
        let number = value.as_integer().ok_or(Wrong::Type)?;
        let parsed = Self::from_str_radix(number.as_str(), number.radix());
        parsed.map_err(|_| Wrong::Value("is not within 0 to 4294967295"))
    }

    fn written(&self) -> String {
        self.to_string()
    }
}

impl Setting for f64 {
    const FORM: &'static str = "a number";

    fn read(value: &DeValue<'_>) -> Result<Self, Wrong> {
        let written = value.as_float().map(|number| number.as_str());
        let written = written.or_else(|| value.as_integer().map(|number| number.as_str()));
        written
            .ok_or(Wrong::Type)?
            .parse()
            .map_err(|_| Wrong::Value("is no number"))
    }

    fn written(&self) -> String {
        format!("{self:?}")
    }
}

impl Setting for Duration {
    const FORM: &'static str = "a duration such as \"30s\", \"2m\" or \"500ms\"";

    fn read(value: &DeValue<'_>) -> Result<Self, Wrong> {
        let duration =
            humantime::parse_duration(text(value)?).map_err(|_| Wrong::Value("is no duration"))?;
        if duration > MAX_DURATION {
            Err(Wrong::Value("is above 100 years"))
        } else {
            Ok(duration)
        }
    }

    fn written(&self) -> String {
        format!("\"{}\"", humantime::format_duration(*self))
    }
}

impl Setting for SocketAddr {
    const FORM: &'static str =
        "an IP address with a port such as \"127.0.0.1:8080\" or \"[::1]:8080\"";

    fn read(value: &DeValue<'_>) -> Result<Self, Wrong> {
        text(value)?
            .parse()
            .map_err(|_| Wrong::Value("is no address to listen on"))
    }

    fn written(&self) -> String {
        format!("\"{self}\"")
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size(pub(super) u64);

impl Size {
    pub(super) const fn mib(count: u64) -> Self {
        Self(count << 20)
    }
}

impl Setting for Size {
    const FORM: &'static str = "a size such as \"8MiB\", \"64KiB\" or \"500B\"";

    fn read(value: &DeValue<'_>) -> Result<Self, Wrong> {
        let text = text(value)?;
        let (digits, unit) = text.split_at(
            text.find(|sign: char| !sign.is_ascii_digit())
                .unwrap_or(text.len()),
        );
        let factor = match unit.trim_start() {
            "B" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => return Err(Wrong::Value("is no size")),
        };
        let count: u64 = digits.parse().map_err(|_| Wrong::Value("is no size"))?;
        count
            .checked_mul(factor)
            .map(Self)
            .ok_or(Wrong::Value("is too large a size"))
    }

    fn written(&self) -> String {
        match self.0 {
            bytes if bytes.is_multiple_of(1 << 20) => format!("\"{}MiB\"", bytes >> 20),
            bytes => format!("\"{bytes}B\""),
        }
    }
}

/// The text that a value is.
pub(super) fn text<'a>(value: &'a DeValue<'_>) -> Result<&'a str, Wrong> {
    value.as_str().ok_or(Wrong::Type)
}

/// What a value is, for "is a whole number".
pub(super) fn type_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "is a text",
        DeValue::Integer(_) => "is a whole number",
        DeValue::Float(_) => "is a number",
        DeValue::Boolean(_) => "is a boolean",
        DeValue::Datetime(_) => "is a date",
        DeValue::Array(_) => "is a list",
        DeValue::Table(_) => "is a table",
    }
}
