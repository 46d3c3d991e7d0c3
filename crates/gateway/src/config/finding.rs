//! `Finding` and `Report`: what is wrong with a configuration, or worth knowing, and where.

use std::fmt;

use serde::Serialize;

use super::Config;

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Severity {
    /// The configuration is refused for it.
    Mistake,
    /// Allowed, and worth knowing.
    Note,
}

/// One mistake or note. Never holds a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// Whether the configuration is refused for it.
    pub severity: Severity,
    /// The file as named on the command line; none where the value came from elsewhere.
    pub file: Option<String>,
    /// Line in the file, from 1.
    pub line: Option<usize>,
    /// The key, such as `routes[0].targets[1].provider`; none for a mistake in the file's syntax.
    pub key: Option<String>,
    /// The value as written; none where it is a table, or missing, or could be a secret.
    pub value: Option<String>,
    /// What is wrong with it.
    pub problem: String,
    /// What to write instead.
    pub remedy: Option<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{file}:{line}: ")?,
            (Some(file), None) => write!(f, "{file}: ")?,
            (None, _) => {}
        }
        if self.severity == Severity::Note {
            f.write_str("note: ")?;
        }
        if let Some(key) = &self.key {
            write!(f, "{key}")?;
            if let Some(value) = &self.value {
                write!(f, " = {value}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.problem)?;
        self.remedy
            .as_ref()
            .map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}

/// What reading a configuration gave.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Mistakes and notes, in the order of the file.
    pub findings: Vec<Finding>,
    /// The configuration; none if there are mistakes.
    pub config: Option<Config>,
}
