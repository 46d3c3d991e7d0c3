//! `Document`: a parsed file that knows where each value stands, and collects what is found wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use secrecy::SecretString;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::entry::{self, Entry, Origin, Shown};
use super::finding::{Finding, Severity};
use super::reference::Row;
use super::secret::Secrets;

/// Longest piece of a value that a finding repeats.
const MAX_SHOWN: usize = 80;

/// Where a key stands.
#[derive(Clone, Debug)]
struct Spot {
    line: usize,
    /// The value as written, if it is a scalar.
    value: Option<String>,
    /// The same as data.
    scalar: Option<Value>,
}

impl Spot {
    /// Where a table or a list stands.
    const fn around(line: usize) -> Self {
        Self {
            line,
            value: None,
            scalar: None,
        }
    }
}

/// A file while it is read: its places, and the findings so far.
pub(super) struct Document<'t> {
    file: Option<&'t str>,
    text: &'t str,
    /// Offsets at which lines begin, without the first.
    line_starts: Vec<usize>,
    spots: BTreeMap<String, Spot>,
    broken_lines: BTreeSet<usize>,
    /// A table's head could not be read.
    beheaded: bool,
    findings: Vec<Finding>,
    pub(super) secrets: Secrets<'t>,
    /// How values are shown that are not shown as written.
    shown: BTreeMap<String, Shown>,
    /// What holds for keys that are not written.
    defaults: BTreeMap<String, Value>,
    /// Where each key asked for is listed, if the keys are all that is wanted.
    pub(super) reference: Option<Vec<Row>>,
}

impl<'t> Document<'t> {
    /// Parses the text and keeps every mistake in its syntax. Nothing else is worth reading where a table's head
    /// is broken, since all below it would be taken for another table's: then the root is empty.
    pub(super) fn parse(
        file: Option<&'t str>,
        text: &'t str,
        secrets: Secrets<'t>,
    ) -> (Self, DeTable<'t>) {
        let (root, errors) = DeTable::parse_recoverable(text);
        let mut root = root.into_inner();
        let mut document = Self {
            file,
            text,
            line_starts: text.match_indices('\n').map(|(at, _)| at + 1).collect(),
            spots: BTreeMap::new(),
            broken_lines: BTreeSet::new(),
            beheaded: false,
            findings: Vec::new(),
            secrets,
            shown: BTreeMap::new(),
            defaults: BTreeMap::new(),
            reference: None,
        };
        for error in errors {
            document.syntax(error.message(), error.span().unwrap_or_default());
        }
        if document.beheaded {
            root = DeTable::new();
        }
        document.walk("", &root);
        (document, root)
    }

    /// One mistake at a key, with its value.
    pub(super) fn mistake(
        &mut self,
        key: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let finding = self.finding(Severity::Mistake, key, problem.into());
        self.push(Finding {
            remedy: Some(remedy.into()),
            ..finding
        });
    }

    /// One mistake about a value that may come from elsewhere than the file.
    pub(super) fn mistake_of(&mut self, key: &str, value: &str, problem: &str, remedy: &str) {
        let finding = self.finding(Severity::Mistake, key, problem.to_owned());
        self.push(Finding {
            value: Some(value.to_owned()),
            remedy: Some(remedy.to_owned()),
            ..finding
        });
    }

    /// One mistake at a key whose value could be, or hold, a secret.
    pub(super) fn secret_mistake(
        &mut self,
        key: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let finding = self.finding(Severity::Mistake, key, problem.into());
        self.push(Finding {
            value: None,
            remedy: Some(remedy.into()),
            ..finding
        });
    }

    /// One note at a key.
    pub(super) fn note(&mut self, key: &str, problem: &str) {
        let finding = self.finding(Severity::Note, key, problem.to_owned());
        self.push(Finding {
            value: None,
            ..finding
        });
    }

    /// What stands at this key is a secret.
    pub(super) fn hide(&mut self, key: String, secret: &SecretString) {
        self.shown.insert(key, Shown::Secret(secret.clone()));
    }

    /// What stands at this key is shown without the part of it that may be a secret.
    pub(super) fn show(&mut self, key: &str, written: &str) {
        let shown = Shown::Plain(entry::as_written(written));
        self.shown.insert(key.to_owned(), shown);
    }

    /// What stands at this key names a file, and with another content it counts as another value.
    pub(super) fn holds(&mut self, key: &str, content: &str) {
        let path = self.spots.get(key).and_then(|spot| spot.scalar.clone());
        if let Some(path) = path {
            let shown = Shown::file(path, content);
            self.shown.insert(key.to_owned(), shown);
        }
    }

    /// This holds where the key is not written.
    pub(super) fn default(&mut self, key: String, written: &str) {
        self.defaults.insert(key, entry::as_written(written));
    }

    /// Every key with its value, by the order of the alphabet.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let mut found = BTreeMap::new();
        for (key, value) in &self.defaults {
            found.insert(key, (Shown::Plain(value.clone()), Origin::Default));
        }
        for (key, spot) in &self.spots {
            if let Some(scalar) = &spot.scalar {
                found.insert(key, (Shown::Plain(scalar.clone()), Origin::File));
            }
        }
        for (key, shown) in &self.shown {
            found.insert(key, (shown.clone(), Origin::File));
        }
        let entry = |(key, (value, from)): (&String, _)| Entry::new(key.clone(), value, from);
        found.into_iter().map(entry).collect()
    }

    /// Whether the syntax lets names be compared across sections.
    pub(super) fn is_whole(&self) -> bool {
        !self.beheaded
    }

    /// How much has been found so far.
    pub(super) fn findings_so_far(&self) -> usize {
        self.findings.len()
    }

    /// The value at a key as written, if it stands in the file.
    pub(super) fn is_written(&self, key: &str) -> bool {
        self.spots.contains_key(key)
    }

    /// Whether this text or number is what stands at a key.
    pub(super) fn says(&self, key: &str, value: &str) -> bool {
        let written = self.spots.get(key).and_then(|spot| spot.value.as_deref());
        written.is_some_and(|written| written == value || written == format!("{value:?}"))
    }

    /// All of it in the order of the file; what stands in no line comes last.
    pub(super) fn into_findings(mut self) -> Vec<Finding> {
        self.findings
            .sort_by_key(|finding| finding.line.unwrap_or(usize::MAX));
        self.findings
    }

    /// Keeps a finding, unless its line cannot be trusted.
    fn push(&mut self, finding: Finding) {
        if !finding
            .line
            .is_some_and(|line| self.broken_lines.contains(&line))
        {
            self.findings.push(finding);
        }
    }

    fn finding(&self, severity: Severity, key: &str, problem: String) -> Finding {
        let spot = self.spots.get(key);
        let line = spot.map(|spot| spot.line).or_else(|| self.line_around(key));
        let value = spot.and_then(|spot| spot.value.clone());
        // A flag stands in no file.
        let file = self
            .file
            .filter(|_| !key.starts_with('-'))
            .map(str::to_owned);
        Finding {
            severity,
            file,
            line,
            key: Some(key.to_owned()),
            value,
            problem,
            remedy: None,
        }
    }

    /// The line of the nearest table around a key that is not written.
    fn line_around(&self, key: &str) -> Option<usize> {
        let (parent, _) = key.rsplit_once('.')?;
        self.spots
            .get(parent)
            .map(|spot| spot.line)
            .or_else(|| self.line_around(parent))
    }

    fn syntax(&mut self, message: &str, span: Range<usize>) {
        let line = self.line(span.start);
        let start = self
            .line_starts
            .get(line.wrapping_sub(2))
            .copied()
            .unwrap_or_default();
        self.beheaded |= self
            .text
            .get(start..)
            .is_some_and(|rest| rest.trim_start_matches([' ', '\t']).starts_with('['));
        self.broken_lines.insert(line);
        let (key, problem, remedy) = if message == "duplicate key" {
            (
                self.text.get(span).map(str::to_owned),
                "is written twice",
                "keep one of the two".to_owned(),
            )
        } else if let Some(problem) = message.strip_suffix(", expected nothing") {
            (None, problem, "put it in quotes if it is a text".to_owned())
        } else if let Some((problem, expected)) = message.split_once(", expected ") {
            (None, problem, format!("expected {expected}"))
        } else {
            (
                None,
                message,
                "correct the syntax, or remove the line".to_owned(),
            )
        };
        self.findings.push(Finding {
            severity: Severity::Mistake,
            file: self.file.map(str::to_owned),
            line: Some(line),
            key,
            value: None,
            problem: problem.to_owned(),
            remedy: Some(remedy),
        });
    }

    fn walk(&mut self, path: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let path = join(path, key.get_ref());
            let line = self.line(key.span().start);
            self.walk_value(path, line, value);
        }
    }

    fn walk_value(&mut self, path: String, line: usize, value: &Spanned<DeValue<'_>>) {
        match value.get_ref() {
            DeValue::Table(table) => {
                self.walk(&path, table);
                self.spots.insert(path, Spot::around(line));
            }
            DeValue::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    let line = self.line(item.span().start);
                    self.walk_value(format!("{path}[{at}]"), line, item);
                }
                self.spots.insert(path, Spot::around(line));
            }
            _ => {
                let written = self.text.get(value.span()).map(shortened);
                let scalar = entry::scalar(value.get_ref());
                self.spots.insert(
                    path,
                    Spot {
                        line,
                        value: written,
                        scalar,
                    },
                );
            }
        }
    }

    fn line(&self, offset: usize) -> usize {
        1 + self.line_starts.partition_point(|&start| start <= offset)
    }
}

/// The path of a key within a table.
pub(super) fn join(path: &str, key: &str) -> String {
    let plain = !key.is_empty()
        && key
            .chars()
            .all(|sign| sign.is_ascii_alphanumeric() || "_-".contains(sign));
    let key = if plain {
        key.to_owned()
    } else {
        format!("{key:?}")
    };
    if path.is_empty() {
        key
    } else {
        format!("{path}.{key}")
    }
}

fn shortened(value: &str) -> String {
    let first_line = value.lines().next().unwrap_or_default();
    let shown: String = first_line.chars().take(MAX_SHOWN).collect();
    if shown.len() < value.len() {
        format!("{shown}...")
    } else {
        shown
    }
}
