//! From what came back to a verdict.
//!
//! The evidence, strongest first: what happened on the wire, the rules of the tables (vendor codes, types, wording
//! where wording is evidence), the status. The tables are data, one a provider (`rules/`), and configuration adds to
//! them in the same words: see [`RuleSpec`]. What the model wrote is never looked into.

mod answer;
mod compile;
mod content;
mod document;
mod facts;
mod known;
mod mend;
mod phrases;
mod rule;
mod status;
mod success;
mod tables;
mod transcript;

use std::sync::LazyLock;
use std::time::SystemTime;

use fuseline_core::{Kind, Scope};

pub use self::answer::{Answer, Body, Ending};
use self::document::Document;
use self::facts::Facts;
pub use self::rule::{
    BodyForm, CodeSpec, HintUse, RuleProblem, RuleSpec, ScopeSpec, StatusSpec, Then, When,
};
pub(crate) use self::status::{Phase, classify_fault};
use self::tables::Tables;
pub use self::transcript::{Event, Transcript};
use crate::evidence::{Citation, Evidence};
use crate::head::{Head, Headers};
use crate::request::{Operation, Shape};
use crate::stream::Usage;
use crate::verdict::Verdict;

const NOT_MODIFIED: u16 = 304;
/// The headers of an error inside a success answer: those that came belong to the success.
const NO_HEADERS: &[(&str, &str)] = &[];

/// The rules, compiled: one for all threads.
///
/// ```
/// use std::time::SystemTime;
/// use fuseline_core::Kind;
/// use fuseline_llm::{Answer, Body, Classifier, Ending, Head, Operation};
///
/// let headers = [("retry-after", "20")].as_slice();
/// let body = br#"{"error": {"type": "insufficient_quota", "message": "..."}}"#;
/// let answer = Answer {
///     provider: "openai",
///     operation: Operation::Create,
///     head: Some(Head::new(429, &headers)),
///     body: Body::Whole(body),
///     ending: Ending::Complete,
/// };
/// let verdict = Classifier::builtin().classify(&answer, SystemTime::UNIX_EPOCH);
/// assert_eq!(verdict.kind, Some(Kind::QuotaExhausted));
/// assert!(!verdict.retryable);
/// assert_eq!(
///     verdict.evidence.to_string(),
///     "rule common/spent-quota: type insufficient_quota, status 429"
/// );
/// ```
#[derive(Debug)]
pub struct Classifier {
    /// None only if a shipped table could not be read, which the tests rule out: then the status decides.
    tables: Option<Tables>,
}

/// The rules that ship with the crate, compiled anew.
impl Default for Classifier {
    fn default() -> Self {
        Self {
            tables: Tables::new(&[]).ok(),
        }
    }
}

impl Classifier {
    /// The rules that ship with the crate.
    pub fn builtin() -> &'static Self {
        static BUILTIN: LazyLock<Classifier> = LazyLock::new(Classifier::default);
        &BUILTIN
    }

    /// The rules that ship with the crate, and before them `extra`, each at the providers that it names.
    ///
    /// ```
    /// use fuseline_llm::{Classifier, RuleSpec};
    ///
    /// let rule: RuleSpec = toml::from_str(
    ///     r#"
    ///     id = "house-limit"
    ///     providers = ["openai"]
    ///     when = { status = [429, "5xx"], phrase = ["house ... closed"] }
    ///     then = { kind = "overloaded", scope = "model", hint = "ignore" }
    ///     "#,
    /// )?;
    /// assert!(Classifier::with_rules(vec![rule]).is_ok());
    ///
    /// let rule: RuleSpec = toml::from_str("id = 'x'\nwhen = { status = ['6xx'] }\nthen = { kind = 'timeout' }")?;
    /// let problems = Classifier::with_rules(vec![rule]).expect_err("there is no 6xx");
    /// assert_eq!(problems[0].key, "when.status");
    /// # Ok::<(), toml::de::Error>(())
    /// ```
    ///
    /// # Errors
    /// Every mistake in `extra`, each with the rule, the key, the value and the remedy.
    pub fn with_rules(extra: Vec<RuleSpec>) -> Result<Self, Vec<RuleProblem>> {
        Tables::new(&extra).map(|tables| Self {
            tables: Some(tables),
        })
    }

    /// The names that [`Answer::provider`] may have beside none, in no order: providers that have rules of their own.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().flat_map(Tables::providers)
    }

    /// The verdict on an exchange; `wall` is what time it is, for hints that are dates. Looks at no more than the
    /// first 64 KiB of a failure's body. Never panics, whatever the bytes.
    pub fn classify(&self, answer: &Answer<'_>, wall: SystemTime) -> Verdict {
        self.judge(answer, wall, &mut Usage::default())
    }

    /// As [`classify`](Self::classify), and notes what a model's whole answer says that it used, which is read in the same
    /// go.
    pub(crate) fn judge(
        &self,
        answer: &Answer<'_>,
        wall: SystemTime,
        usage: &mut Usage,
    ) -> Verdict {
        match &answer.head {
            Some(head) if head.is_success() => self.success(answer, head, wall, usage),
            Some(head) => self.no_success(answer, head, wall),
            None => match answer.ending {
                Ending::Broken(fault) => classify_fault(fault, Phase::BeforeHead),
                Ending::Left | Ending::Complete => left(Scope::Provider),
            },
        }
    }

    fn no_success(&self, answer: &Answer<'_>, head: &Head<'_>, wall: SystemTime) -> Verdict {
        if head.status() == NOT_MODIFIED {
            return Verdict::success();
        }
        let document = match answer.body {
            Body::Whole(body) | Body::Cut(body) => Some(Document::read(body)),
            Body::Stream(transcript) => transcript
                .error()
                .map(|error| Document::read(error.data.as_bytes())),
            Body::Unread => None,
        };
        self.failure(answer.provider, head, document.as_ref(), wall)
    }

    /// The verdict on a head that is no success, by status and headers; none for 2xx, whose body decides, and for 304,
    /// which answers what the caller asked.
    pub fn classify_head(
        &self,
        provider: &str,
        head: &Head<'_>,
        wall: SystemTime,
    ) -> Option<Verdict> {
        let is_failure = !head.is_success() && head.status() != NOT_MODIFIED;
        is_failure.then(|| self.failure(provider, head, None, wall))
    }

    fn failure(
        &self,
        provider: &str,
        head: &Head<'_>,
        document: Option<&Document<'_>>,
        wall: SystemTime,
    ) -> Verdict {
        let status = head.status();
        let facts = Facts::new(provider, wall, Some(status), head.headers(), document);
        let verdict = self
            .by_rules(&facts)
            .unwrap_or_else(|| with_hint(status::by_status(status), &facts, None));
        match should_retry(head.headers()) {
            Some(retryable) => Verdict {
                retryable,
                ..verdict
            },
            None => verdict,
        }
    }

    /// An error inside a success answer.
    fn in_band(
        &self,
        provider: &str,
        exception: &str,
        document: &Document<'_>,
        wall: SystemTime,
    ) -> Verdict {
        let mut facts = Facts::new(provider, wall, None, &NO_HEADERS, Some(document));
        facts.status = facts.own_status();
        facts.exception = exception;
        self.by_rules(&facts).unwrap_or_else(|| {
            let kind = facts.status.map_or(Kind::ServerError, status::kind_of);
            let verdict = Verdict::failure(kind, Evidence::ErrorInAnswer(facts.status));
            with_hint(verdict, &facts, None)
        })
    }

    /// What the first rule says that the facts answer to.
    fn by_rules(&self, facts: &Facts<'_>) -> Option<Verdict> {
        let (rule, saw) = self.tables.as_ref()?.find(facts)?;
        let then = &rule.then;
        let evidence = Evidence::Rule(Citation {
            rule: rule.name.clone(),
            saw: saw.into(),
            status: facts.status.filter(|status| *status >= 300),
        });
        let usual = Verdict::failure(then.kind, evidence);
        let verdict = Verdict {
            scope: then.scope.map_or(usual.scope, Scope::from),
            provider_fault: then.provider_fault.unwrap_or(usual.provider_fault),
            retryable: then.retryable.unwrap_or(usual.retryable),
            ..usual
        };
        Some(with_hint(verdict, facts, then.hint))
    }
}

/// The hint, where waiting may help: a request that no wait will mend is not told to wait.
fn with_hint(verdict: Verdict, facts: &Facts<'_>, hint: Option<HintUse>) -> Verdict {
    let helps = verdict.retryable || verdict.kind == Some(Kind::QuotaExhausted);
    let hint = match hint {
        Some(HintUse::Ignore) => None,
        Some(HintUse::Read) | None => helps.then(|| facts.hint()).flatten(),
    };
    Verdict {
        retry_after: hint.map(|hint| hint.wait),
        hint_source: hint.map(|hint| hint.source),
        ..verdict
    }
}

/// What the server itself says about a retry; it overrides that and nothing else.
fn should_retry(headers: &dyn Headers) -> Option<bool> {
    let mut says = None;
    headers.visit("x-should-retry", &mut |value| {
        says = value.trim().to_ascii_lowercase().parse().ok();
    });
    says
}

/// [`Classifier::classify_head`] by the built-in rules, whoever the provider is.
pub fn classify_head(head: &Head<'_>, wall: SystemTime) -> Option<Verdict> {
    Classifier::builtin().classify_head("", head, wall)
}

/// The verdict on a body that came to its end under a success status, of which only the length is known.
pub(crate) fn classify_end(operation: Operation, body_bytes: u64) -> Verdict {
    match (operation, body_bytes) {
        (Operation::Create, 0) => Verdict::failure(Kind::EmptyResponse, Evidence::EmptyBody),
        _ => Verdict::success(),
    }
}

fn left(scope: Scope) -> Verdict {
    Verdict {
        scope,
        ..Verdict::failure(Kind::Cancelled, Evidence::CallerLeft)
    }
}

#[cfg(test)]
mod tests;
