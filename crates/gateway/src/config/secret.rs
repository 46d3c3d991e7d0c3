//! Secrets: written as a text, or found in the environment or in a file. No message of this module repeats one.

use std::path::Path;

use secrecy::SecretString;
use toml::Spanned;
use toml::de::DeValue;

use super::document::Document;
use super::load::read_bounded;
use super::reader::Section;

const FORM: &str = "a text, { env = \"NAME\" } or { file = \"path\" }";
const LIST_FORM: &str = "a text, { env = \"NAME\" }, { file = \"path\" } or a list of these";
/// Longest file that can be a secret.
const MAX_FILE: u64 = 64 << 10;

/// Where secrets are looked up.
#[derive(Clone, Copy)]
pub(super) struct Secrets<'t> {
    /// Relative files are relative to this folder: the configuration file's.
    pub(super) folder: &'t Path,
    /// A variable of the environment.
    pub(super) env: &'t dyn Fn(&str) -> Option<String>,
}

impl Section<'_, '_> {
    /// A key that holds one secret.
    pub(super) fn secret(&mut self, key: &'static str, doc: &'static str) -> Option<SecretString> {
        let value = self.raw(key, FORM, doc)?;
        let path = self.path(key);
        self.one_secret(path, value)
    }

    /// A key that holds one secret or a list of them.
    pub(super) fn secrets(&mut self, key: &'static str, doc: &'static str) -> Vec<SecretString> {
        let Some(value) = self.raw(key, LIST_FORM, doc) else {
            return Vec::new();
        };
        let path = self.path(key);
        match value.get_ref().as_array() {
            None => self.one_secret(path, value).into_iter().collect(),
            Some(items) if items.is_empty() => {
                self.document.mistake(
                    &path,
                    "is empty",
                    format!("write {LIST_FORM}, or leave the key out"),
                );
                Vec::new()
            }
            Some(items) => {
                let items = items.iter().enumerate();
                items
                    .filter_map(|(at, item)| self.one_secret(format!("{path}[{at}]"), item))
                    .collect()
            }
        }
    }

    fn one_secret(&mut self, path: String, value: &Spanned<DeValue<'_>>) -> Option<SecretString> {
        let secret = self.find_secret(&path, value)?;
        self.document.hide(path, &secret);
        Some(secret)
    }

    fn find_secret(&mut self, path: &str, value: &Spanned<DeValue<'_>>) -> Option<SecretString> {
        match value.get_ref() {
            DeValue::String(text) => usable(self.document, path, text),
            DeValue::Table(table) => {
                let keys: Vec<&str> = table.keys().map(|key| key.get_ref().as_ref()).collect();
                let named = table
                    .iter()
                    .next()
                    .and_then(|(_, value)| value.get_ref().as_str());
                match (keys.as_slice(), named) {
                    (["env"], Some(name)) => from_env(self.document, &format!("{path}.env"), name),
                    (["file"], Some(file)) => {
                        from_file(self.document, &format!("{path}.file"), file)
                    }
                    _ => {
                        self.document
                            .secret_mistake(path, "is no secret", format!("write {FORM}"));
                        None
                    }
                }
            }
            _ => {
                self.document
                    .secret_mistake(path, "is no secret", format!("write {FORM}"));
                None
            }
        }
    }
}

fn from_env(document: &mut Document<'_>, path: &str, name: &str) -> Option<SecretString> {
    if let Some(value) = (document.secrets.env)(name) {
        return usable(document, path, &value);
    }
    // Some paste the key itself here; it is repeated only if it looks like a variable.
    if !name.is_empty()
        && name
            .chars()
            .all(|sign| sign.is_ascii_uppercase() || sign.is_ascii_digit() || sign == '_')
    {
        document.mistake(
            path,
            "is not set in the environment",
            "set the variable, or correct its name",
        );
    } else {
        document.secret_mistake(
            path,
            "is not set in the environment",
            "write the name of a variable that is set",
        );
    }
    None
}

fn from_file(document: &mut Document<'_>, path: &str, file: &str) -> Option<SecretString> {
    match read_bounded(&document.secrets.folder.join(file), MAX_FILE) {
        Ok(text) => usable(document, path, text.trim_end()),
        Err(why) => {
            let problem = format!("cannot be read: {why}");
            let remedy = "write the path of a readable file, relative to this one's folder";
            if file.contains(['/', '.']) {
                document.mistake(path, problem, remedy);
            } else {
                document.secret_mistake(path, problem, remedy);
            }
            None
        }
    }
}

/// The secret, if a header can carry it.
fn usable(document: &mut Document<'_>, path: &str, secret: &str) -> Option<SecretString> {
    if secret.is_empty() {
        document.secret_mistake(path, "is an empty secret", "give it a value");
    } else if !secret.chars().all(|sign| sign.is_ascii_graphic()) {
        document.secret_mistake(
            path,
            "is a secret that no header can carry",
            "use visible ASCII without spaces",
        );
    } else {
        return Some(SecretString::from(secret));
    }
    None
}
