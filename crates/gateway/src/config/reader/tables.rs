//! Reading the tables below a section: one, a list of them, or some under names of the operator's choice.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Place, Section};
use crate::config::document::{Document, join};
use crate::config::value::type_of;

impl<'t> Section<'_, 't> {
    /// A table below this one; read as empty where it is not written.
    pub(in crate::config) fn table<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Section<'_, 't>) -> T,
    ) -> T {
        let value = self.find(key);
        let place = self.place(self.path(key), join(&self.plain, key));
        let table = value.and_then(|value| table_of(self.document, &place.path, value));
        Section::read(self.document, place, table, read)
    }

    /// The same for one whose keys, where they are not written, are as other sections say.
    pub(in crate::config) fn overlay<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Section<'_, 't>) -> T,
    ) -> T {
        self.table(key, |section| {
            section.without_defaults();
            read(section)
        })
    }

    fn place(&self, path: String, plain: String) -> Place {
        Place {
            path,
            plain,
            is_overlay: self.is_overlay,
        }
    }

    /// A list of tables, each read alike; what is none of them is a mistake, and so is a reader's `None`.
    pub(in crate::config) fn list<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&mut Section<'_, 't>) -> Option<T>,
    ) -> Vec<T> {
        let path = self.path(key);
        let plain = join(&self.plain, key);
        let Some(value) = self.find(key) else {
            return self
                .listed_once(format!("{plain}[]"), read)
                .into_iter()
                .collect();
        };
        let Some(items) = value.get_ref().as_array() else {
            self.document
                .mistake(&path, type_of(value.get_ref()), "write a list of tables");
            return Vec::new();
        };
        let mut found = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let path = format!("{path}[{at}]");
            if let Some(table) = table_of(self.document, &path, item) {
                let place = self.place(path, plain.clone());
                found.extend(Section::read(self.document, place, Some(table), &mut read));
            }
        }
        found
    }

    /// The tables below this key, under names of the operator's choice.
    pub(in crate::config) fn named<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&str, &mut Section<'_, 't>) -> Option<T>,
    ) -> BTreeMap<String, T> {
        let mut found = BTreeMap::new();
        let path = self.path(key);
        let plain = join(&self.plain, key);
        let Some(value) = self.find(key) else {
            self.listed_once(format!("{plain}.<name>"), |section| read("<name>", section));
            return found;
        };
        let Some(tables) = table_of(self.document, &path, value) else {
            return found;
        };
        for (name, value) in tables {
            let name = name.get_ref().as_ref();
            let path = join(&path, name);
            if let Some(table) = table_of(self.document, &path, value) {
                let read = |section: &mut Section<'_, 't>| read(name, section);
                let place = self.place(path, plain.clone());
                let one = Section::read(self.document, place, Some(table), read);
                found.extend(one.map(|one| (name.to_owned(), one)));
            }
        }
        found
    }

    /// A table that is the value of this section's key or of an item of it, at the given path.
    pub(in crate::config) fn inline<T>(
        &mut self,
        path: String,
        table: &DeTable<'t>,
        read: impl FnOnce(&mut Section<'_, 't>) -> T,
    ) -> T {
        let place = self.place(path, self.plain.clone());
        Section::read(self.document, place, Some(table), read)
    }

    /// Reads a table that is not there, where the keys are being listed.
    fn listed_once<T>(
        &mut self,
        path: String,
        read: impl FnOnce(&mut Section<'_, 't>) -> Option<T>,
    ) -> Option<T> {
        if !self.is_listing() {
            return None;
        }
        let place = self.place(path.clone(), path);
        Section::read(self.document, place, None, read)
    }
}

fn table_of<'r, 't>(
    document: &mut Document<'_>,
    path: &str,
    value: &'r Spanned<DeValue<'t>>,
) -> Option<&'r DeTable<'t>> {
    let table = value.get_ref().as_table();
    if table.is_none() {
        document.secret_mistake(path, type_of(value.get_ref()), "write a table");
    }
    table
}
