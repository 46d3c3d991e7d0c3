//! The grammar of rules: what the tables in `rules/` and `[[classify.rules]]` in a configuration are written in.

use std::collections::BTreeMap;
use std::fmt;

use fuseline_core::{Kind, Scope};
use serde::Deserialize;

/// One rule: when an answer looks like this, then it means that.
///
/// ```toml
/// [[rules]]                                  # [[classify.rules]] in a configuration
/// id = "spent-quota"
/// providers = ["openai"]
/// when = { status = [429], code = ["insufficient_quota"] }
/// then = { kind = "quota_exhausted" }
/// ```
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RuleSpec {
    /// Its name among the rules of its table; verdicts cite it.
    pub id: String,
    /// The providers whose answers it is about; none means all.
    #[serde(default)]
    pub providers: Vec<String>,
    /// What must be seen.
    pub when: When,
    /// What it means.
    pub then: Then,
}

impl RuleSpec {
    /// A rule for the answers of these providers; none means all.
    pub fn new(id: impl Into<String>, providers: Vec<String>, when: When, then: Then) -> Self {
        Self {
            id: id.into(),
            providers,
            when,
            then,
        }
    }
}

/// What must be seen. Every key that is given must hold, and a list holds by any of its entries. Case of letters
/// never matters.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct When {
    /// `429`, `"5xx"`, `"500-503"`, or `"in-band"`: an error inside a success answer that names no status of its own.
    /// A rule by phrase or sentence that says nothing here is asked where wording is known to be evidence: 400, 401,
    /// 402, 403, 404, 413, 422, 424, 429, 498, 503 and in-band.
    pub status: Vec<StatusSpec>,
    /// A machine-readable name that the error carries at any level: code, type, status word, reason, exception.
    pub code: Vec<CodeSpec>,
    /// Words in a sentence of the error; `...` stands for anything between two of them.
    pub phrase: Vec<String>,
    /// A whole sentence of the error, but for a full stop at its end.
    pub sentence: Vec<String>,
    /// Headers by name, with words in their value; an empty value asks for the header's presence.
    pub header: BTreeMap<String, String>,
    /// JSON pointers with the value there; `"*"` asks for presence.
    pub field: BTreeMap<String, serde_json::Value>,
    /// What the body is: `empty`, `html`, `text`, `json`.
    pub body: Option<BodyForm>,
    /// Why the model stopped, in the provider's word.
    pub finish: Vec<String>,
    /// A wait hint longer than this: `"5m"`, `"300s"`.
    pub wait_over: Option<String>,
}

/// A status, several, or none at all.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
#[non_exhaustive]
pub enum StatusSpec {
    /// One status.
    One(u16),
    /// `"5xx"`, `"500-503"` or `"in-band"`.
    Text(String),
}

/// A code, as a text or a number.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
#[non_exhaustive]
pub enum CodeSpec {
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
}

/// What a body is, by its content.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum BodyForm {
    /// Nothing but blanks.
    Empty,
    /// A page.
    Html,
    /// Anything else that is no JSON.
    Text,
    /// JSON, whole or cut.
    Json,
}

/// What it means. What is left out is what usually goes with the kind.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Then {
    /// The kind of failure.
    pub kind: Kind,
    /// What is unhealthy.
    #[serde(default)]
    pub scope: Option<ScopeSpec>,
    /// Whether the same request to the same target may fare better.
    #[serde(default)]
    pub retryable: Option<bool>,
    /// Whether it speaks against the provider's health.
    #[serde(default)]
    pub provider_fault: Option<bool>,
    /// What to make of the wait hint.
    #[serde(default)]
    pub hint: Option<HintUse>,
}

impl Then {
    /// A kind with what usually goes with it.
    pub const fn new(kind: Kind) -> Self {
        Self {
            kind,
            scope: None,
            retryable: None,
            provider_fault: None,
            hint: None,
        }
    }
}

/// A scope by its name.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ScopeSpec {
    /// Endpoint, region, egress.
    Provider,
    /// One model.
    Model,
    /// One credential.
    Key,
}

impl From<ScopeSpec> for Scope {
    fn from(spec: ScopeSpec) -> Self {
        match spec {
            ScopeSpec::Provider => Self::Provider,
            ScopeSpec::Model => Self::Model,
            ScopeSpec::Key => Self::Key,
        }
    }
}

/// What to make of a wait hint.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum HintUse {
    /// Report it.
    Read,
    /// It misleads.
    Ignore,
}

/// A mistake in a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleProblem {
    /// The rule's place in its list, from 1.
    pub rule: usize,
    /// The rule's id, as far as it has one.
    pub id: String,
    /// The providers it is for, as written.
    pub providers: Vec<String>,
    /// The key, like `when.status`.
    pub key: &'static str,
    /// The value there.
    pub value: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for RuleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = if self.providers.is_empty() {
            "all providers".to_owned()
        } else {
            self.providers.join(", ")
        };
        write!(
            f,
            "rule {} (`{}`, {whose}): {} is `{}`: {}",
            self.rule, self.id, self.key, self.value, self.remedy
        )
    }
}

impl std::error::Error for RuleProblem {}
