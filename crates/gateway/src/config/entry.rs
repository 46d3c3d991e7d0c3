//! `Entry`: one key of a configuration with the value that holds, as operators are shown it and as two are compared.

use std::collections::{BTreeMap, BTreeSet};

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use toml::de::{DeTable, DeValue};

/// What a secret is shown as.
const MASK: &str = "***";

/// One key with the value that holds. A secret is shown as `***`.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// The key, such as `routes[0].budget`.
    pub key: String,
    value: Shown,
    /// Where the value comes from.
    pub from: Origin,
}

/// Where a value comes from; a later one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Origin {
    /// Nobody wrote it.
    Default,
    /// The file.
    File,
    /// A flag, or a variable of the environment.
    Override,
}

/// A value. `Debug` masks secrets as `Serialize` does.
#[derive(Clone, Debug)]
pub(super) enum Shown {
    Plain(Value),
    Secret(SecretString),
    /// A file by its path, and a digest of what it held.
    File(Value, [u8; 32]),
}

impl Shown {
    pub(super) fn file(path: Value, content: &str) -> Self {
        Self::File(path, Sha256::digest(content).into())
    }
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Plain(value) | Self::File(value, _) => value.serialize(serializer),
            Self::Secret(_) => serializer.serialize_str(MASK),
        }
    }
}

impl PartialEq for Shown {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Plain(one), Self::Plain(other)) => one == other,
            (Self::Secret(one), Self::Secret(other)) => {
                one.expose_secret() == other.expose_secret()
            }
            (Self::File(path, content), Self::File(other_path, other_content)) => {
                path == other_path && content == other_content
            }
            _ => false,
        }
    }
}

impl Entry {
    /// One whose value nobody wrote, or that stands in the file.
    pub(super) const fn new(key: String, value: Shown, from: Origin) -> Self {
        Self { key, value, from }
    }
}

/// Puts a value that stands above the file in the place of what the file says.
pub(super) fn put(entries: &mut Vec<Entry>, key: &str, value: Shown) {
    remove(entries, key);
    entries.push(Entry::new(key.to_owned(), value, Origin::Override));
}

/// Lets a key, and what stands below it, say what it says elsewhere.
pub(super) fn copy(entries: &mut Vec<Entry>, key: &str, from: &[Entry]) {
    remove(entries, key);
    entries.extend(from.iter().filter(|entry| is_at(&entry.key, key)).cloned());
}

fn remove(entries: &mut Vec<Entry>, key: &str) {
    entries.retain(|entry| !is_at(&entry.key, key));
}

/// Whether a key is this one, or a part of its value.
fn is_at(key: &str, at: &str) -> bool {
    key.strip_prefix(at)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The keys whose values differ, those included that stand on one side alone.
pub(super) fn differences(one: &[Entry], other: &[Entry]) -> Vec<String> {
    let by_key = |entries: &'_ [Entry]| {
        let pairs = entries
            .iter()
            .map(|entry| (entry.key.clone(), entry.value.clone()));
        pairs.collect::<BTreeMap<_, _>>()
    };
    let (one, other) = (by_key(one), by_key(other));
    let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let changed = keys
        .into_iter()
        .filter(|key| one.get(*key) != other.get(*key));
    changed.cloned().collect()
}

/// A scalar as JSON; none for a table or a list.
pub(super) fn scalar(value: &DeValue<'_>) -> Option<Value> {
    Some(match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(parsed) => parsed.into(),
            Err(_) => number.as_str().into(),
        },
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(parsed) => parsed.into(),
            Err(_) => number.as_str().into(),
        },
        DeValue::Boolean(is_so) => (*is_so).into(),
        DeValue::Datetime(time) => time.to_string().into(),
        DeValue::Array(_) | DeValue::Table(_) => return None,
    })
}

/// A value as one writes it in the file.
pub(super) fn as_written(written: &str) -> Value {
    let text = format!("value = {written}");
    let (table, _) = DeTable::parse_recoverable(&text);
    let value = table.get_ref().get("value");
    let value = value.and_then(|value| scalar(value.get_ref()));
    value.unwrap_or_else(|| written.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(key: &str, value: &str) -> Entry {
        let value = Shown::Plain(as_written(value));
        Entry::new(key.to_owned(), value, Origin::File)
    }

    fn secret(key: &str, text: &str) -> Entry {
        Entry::new(key.to_owned(), Shown::Secret(text.into()), Origin::File)
    }

    #[test]
    fn secrets_are_compared_and_not_shown() {
        let (one, other) = ([secret("a", "one")], [secret("a", "other")]);
        assert_eq!(differences(&one, &other), ["a"]);
        assert_eq!(differences(&one, &one), [""; 0]);
        let shown = format!("{:?}{}", one, serde_json::to_string(&one).unwrap());
        assert!(shown.contains("***") && !shown.contains("one"), "{shown}");
    }

    #[test]
    fn what_stands_on_one_side_alone_differs() {
        let one = [plain("a", "1"), plain("b", "\"x\"")];
        let other = [plain("b", "'x'"), plain("c", "0.5")];
        assert_eq!(differences(&one, &other), ["a", "c"]);
    }

    #[test]
    fn a_key_that_is_copied_brings_its_parts() {
        let mut entries = vec![plain("fleet", "1"), plain("fleet_prefix", "2")];
        copy(
            &mut entries,
            "fleet",
            &[plain("fleet.env", "\"F\""), plain("fleets", "0")],
        );
        let keys: Vec<_> = entries.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["fleet_prefix", "fleet.env"]);
        assert_eq!(as_written("1_000"), 1_000);
        assert_eq!(as_written("0x1f"), 31);
    }
}
