//! `Section`: reads one table of the file key by key.
//!
//! Asking for a key is what makes it known: a function that reads a section is the section's schema, with each key's
//! type, default and meaning, and every key that it did not ask for is a mistake. Reading never stops at a mistake;
//! what could not be read has its default. Reading nothing at all lists the keys instead: [`Document::reference`].

mod tables;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::document::{Document, join};
use super::reference::Row;
use super::value::{Setting, Wrong, type_of};
use super::words::{did_you_mean, quoted};

/// A key's possible texts, with what each means.
pub(super) type Choices<T> = [(&'static str, T)];

/// Where a section stands.
#[derive(Default)]
struct Place {
    path: String,
    plain: String,
    is_overlay: bool,
}

/// One table of the file, or the lack of it.
pub(super) struct Section<'r, 't> {
    pub(super) document: &'r mut Document<'t>,
    path: String,
    /// The path without indexes and names.
    plain: String,
    table: Option<&'r DeTable<'t>>,
    asked: Vec<String>,
    /// What is not written here is as other sections say.
    is_overlay: bool,
}

impl<'r, 't> Section<'r, 't> {
    /// Reads the whole of a file.
    pub(super) fn root<T>(
        document: &'r mut Document<'t>,
        table: &'r DeTable<'t>,
        read: impl FnOnce(&mut Section<'_, 't>) -> T,
    ) -> T {
        let place = Place::default();
        Section::read(document, place, Some(table), read)
    }

    fn read<T>(
        document: &mut Document<'t>,
        place: Place,
        table: Option<&DeTable<'t>>,
        read: impl FnOnce(&mut Section<'_, 't>) -> T,
    ) -> T {
        let mut section = Section {
            document,
            path: place.path,
            plain: place.plain,
            table,
            asked: Vec::new(),
            is_overlay: place.is_overlay,
        };
        let result = read(&mut section);
        section.refuse_unknown_keys();
        result
    }

    /// The full path of one of this section's keys.
    pub(super) fn path(&self, key: &str) -> String {
        join(&self.path, key)
    }

    /// The path of the section itself.
    pub(super) fn own_path(&self) -> &str {
        &self.path
    }

    /// Passes no judgement on the keys not asked for yet, where a mistake has left open which ones belong here.
    pub(super) fn spare_the_rest(&mut self) {
        let keys = self.table.into_iter().flat_map(|table| table.keys());
        self.asked.extend(keys.map(|key| key.get_ref().to_string()));
    }

    /// Whether the keys are listed rather than read.
    pub(super) fn is_listing(&self) -> bool {
        self.document.reference.is_some()
    }

    /// Defaults are not what holds for the keys asked for from now on.
    pub(super) fn without_defaults(&mut self) {
        self.is_overlay = true;
    }

    /// Whether the key is written.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    /// An optional key's value. `default` is what holds where it is not written, if that is one value.
    pub(super) fn opt<T: Setting>(
        &mut self,
        key: &'static str,
        default: Option<T>,
        doc: &'static str,
    ) -> Option<T> {
        let value = self.take(key, T::FORM, default.map(|value| value.written()), doc)?;
        setting(self.document, &join(&self.path, key), value)
    }

    /// A key's value, or its default.
    pub(super) fn get<T: Setting + Copy>(
        &mut self,
        key: &'static str,
        default: T,
        doc: &'static str,
    ) -> T {
        self.opt(key, Some(default), doc).unwrap_or(default)
    }

    /// A required key's value.
    pub(super) fn need<T: Setting>(&mut self, key: &'static str, doc: &'static str) -> Option<T> {
        if !self.has(key) {
            self.document.mistake(
                &join(&self.path, key),
                "is missing",
                format!("write {}", T::FORM),
            );
        }
        self.opt(key, None, doc)
    }

    /// One of several texts.
    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &Choices<T>,
        default: Option<&'static str>,
        doc: &'static str,
    ) -> Option<T> {
        let names = || choices.iter().map(|&(name, _)| name);
        let value = self.take(
            key,
            &quoted(names()),
            default.map(|name| format!("{name:?}")),
            doc,
        )?;
        let path = join(&self.path, key);
        let Some(text) = value.get_ref().as_str() else {
            let remedy = format!("write {}", quoted(names()));
            self.document
                .mistake(&path, type_of(value.get_ref()), remedy);
            return None;
        };
        let chosen = choices
            .iter()
            .find(|(name, _)| *name == text)
            .map(|&(_, choice)| choice);
        if chosen.is_none() {
            let remedy =
                did_you_mean(text, names()).unwrap_or_else(|| format!("write {}", quoted(names())));
            self.document.mistake(&path, "is not known", remedy);
        }
        chosen
    }

    /// One of several texts, required.
    pub(super) fn need_choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &Choices<T>,
        doc: &'static str,
    ) -> Option<T> {
        if !self.has(key) {
            let remedy = format!("write {}", quoted(choices.iter().map(|&(name, _)| name)));
            self.document
                .mistake(&join(&self.path, key), "is missing", remedy);
        }
        self.choice(key, choices, None, doc)
    }

    /// A value of several possible forms, for the caller to take apart.
    pub(super) fn raw(
        &mut self,
        key: &'static str,
        form: &str,
        doc: &'static str,
    ) -> Option<&'r Spanned<DeValue<'t>>> {
        self.take(key, form, None, doc)
    }

    /// A mistake at a path below this section's.
    pub(super) fn mistake_below(&mut self, path: &str, problem: &str, remedy: String) {
        let path = format!("{}.{path}", self.path);
        self.document.mistake(&path, problem, remedy);
    }

    /// A mistake of the section as a whole.
    pub(super) fn mistake_here(&mut self, problem: &str, remedy: &str) {
        self.document.mistake(&self.path, problem, remedy);
    }

    /// A mistake at one of this section's keys, if it is written and `allowed` is false.
    pub(super) fn ensure(&mut self, allowed: bool, key: &str, problem: &str, remedy: &str) {
        if !allowed && self.has(key) {
            self.document
                .mistake(&join(&self.path, key), problem, remedy);
        }
    }

    /// A mistake unless the written duration is at least a millisecond.
    pub(super) fn ensure_positive(&mut self, value: std::time::Duration, key: &str) {
        self.ensure(
            value.as_millis() > 0,
            key,
            "is too short",
            "write at least \"1ms\"",
        );
    }

    fn take(
        &mut self,
        key: &str,
        form: &str,
        default: Option<String>,
        doc: &'static str,
    ) -> Option<&'r Spanned<DeValue<'t>>> {
        if let Some(rows) = &mut self.document.reference {
            let section = self.path.clone();
            rows.push(Row {
                section,
                key: key.to_owned(),
                form: form.to_owned(),
                default,
                doc,
            });
        } else if let Some(default) = default.filter(|_| !self.is_overlay && !self.has(key)) {
            self.document.default(join(&self.path, key), &default);
        }
        self.find(key)
    }

    fn find(&mut self, key: &str) -> Option<&'r Spanned<DeValue<'t>>> {
        self.asked.push(key.to_owned());
        self.table?.get(key)
    }

    fn refuse_unknown_keys(self) {
        for key in self.table.into_iter().flat_map(|table| table.keys()) {
            let key = key.get_ref().as_ref();
            if !self.asked.iter().any(|asked| asked == key) {
                let known = || self.asked.iter().map(String::as_str);
                let remedy = did_you_mean(key, known()).unwrap_or_else(|| {
                    format!(
                        "the keys here are {}",
                        known().collect::<Vec<_>>().join(", ")
                    )
                });
                self.document
                    .secret_mistake(&join(&self.path, key), "unknown key", remedy);
            }
        }
    }
}

/// Reads one value; a mistake at its path if it cannot be read.
pub(super) fn setting<T: Setting>(
    document: &mut Document<'_>,
    path: &str,
    value: &Spanned<DeValue<'_>>,
) -> Option<T> {
    let may_hide = value.get_ref().as_str().is_some_and(T::may_hide_a_secret);
    let problem = match T::read(value.get_ref()) {
        Ok(read) => {
            if may_hide {
                document.show(path, &read.written());
            }
            return Some(read);
        }
        Err(Wrong::Type) => type_of(value.get_ref()),
        Err(Wrong::Value(problem)) => problem,
    };
    let remedy = format!("write {}", T::FORM);
    if may_hide {
        document.secret_mistake(path, problem, remedy);
    } else {
        document.mistake(path, problem, remedy);
    }
    None
}
