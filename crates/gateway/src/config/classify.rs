//! `[[classify.rules]]`: rules of the operator's own, asked before those that ship.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use fuseline_core::Kind;
use fuseline_llm::{
    BodyForm, Classifier, CodeSpec, HintUse, RuleProblem, RuleSpec, ScopeSpec, StatusSpec, Then,
    When,
};
use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::document::{Document, join};
use super::reader::{Choices, Section, setting};
use super::value::{Setting, Wrong, type_of};

/// The phrases of all rules are sought in one pass, by a table that grows with them.
const MOST_RULES: usize = 200;
const MOST_ENTRIES: usize = 50;
const LONGEST_TEXT: usize = 200;

const BODIES: &Choices<BodyForm> = &[
    ("empty", BodyForm::Empty),
    ("html", BodyForm::Html),
    ("text", BodyForm::Text),
    ("json", BodyForm::Json),
];
const SCOPES: &Choices<ScopeSpec> = &[
    ("provider", ScopeSpec::Provider),
    ("model", ScopeSpec::Model),
    ("key", ScopeSpec::Key),
];
const HINTS: &Choices<HintUse> = &[("read", HintUse::Read), ("ignore", HintUse::Ignore)];

const STATUS: &str = "statuses: 429, \"5xx\", \"500-503\", or \"in-band\": an error inside a success answer; else any; for phrases, those whose wording is evidence";
const FINISH: &str = "why the model stopped, in the provider's word";
const HEADER: &str = "words in the values of headers, by their names; \"\" asks for presence";
const FIELD: &str = "values in the body, by JSON pointers; \"*\" asks for presence";

/// The rules, compiled once.
#[derive(Clone)]
pub(super) struct Rules {
    count: usize,
    classifier: Arc<Classifier>,
}

impl Rules {
    pub(super) fn classifier(&self) -> Arc<Classifier> {
        Arc::clone(&self.classifier)
    }

    fn none() -> Self {
        static BUILTIN: LazyLock<Arc<Classifier>> = LazyLock::new(Arc::default);
        Self {
            count: 0,
            classifier: Arc::clone(&BUILTIN),
        }
    }
}

// The compiled tables are many pages.
impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

/// A rule as read, and whether all of it could be.
struct Draft {
    spec: RuleSpec,
    is_whole: bool,
}

/// Reads `[classify]`. What a rule's parts mean, the classifier judges; its verdicts are told at their keys.
pub(super) fn read(section: &mut Section<'_, '_>) -> Rules {
    let drafts = section.list("rules", |section| Some(rule(section)));
    if section.is_listing() || drafts.is_empty() {
        return Rules::none();
    }
    let path = section.path("rules");
    if drafts.len() > MOST_RULES {
        let remedy = format!("write at most {MOST_RULES} rules");
        section.document.mistake(&path, "is too long", remedy);
        return Rules::none();
    }
    let count = drafts.len();
    let specs = drafts.iter().map(|draft| draft.spec.clone()).collect();
    match Classifier::with_rules(specs) {
        Ok(classifier) => Rules {
            count,
            classifier: Arc::new(classifier),
        },
        Err(problems) => {
            for problem in problems {
                let draft = problem.rule.checked_sub(1).and_then(|at| drafts.get(at));
                // A rule of which something could not be read may lack just that.
                let is_told =
                    matches!(problem.key, "id" | "when") && draft.is_some_and(|it| !it.is_whole);
                if !is_told {
                    tell(&problem, &path, section.document);
                }
            }
            Rules::none()
        }
    }
}

/// One rule. What cannot be read has a harmless value, so that the rest of it and the other rules are still judged.
fn rule(section: &mut Section<'_, '_>) -> Draft {
    let before = section.document.findings_so_far();
    let id: Option<String> = section.need("id", "the rule's name, which verdicts cite");
    let providers = texts(section, "providers", "for whose answers; else for all");
    let when = section.table("when", when);
    let then = section.table("then", then);
    let providers = providers.iter().map(|name| name.to_ascii_lowercase());
    Draft {
        spec: RuleSpec::new(id.unwrap_or_default(), providers.collect(), when, then),
        is_whole: section.document.findings_so_far() == before,
    }
}

fn when(section: &mut Section<'_, '_>) -> When {
    let code = "machine-readable names that the error carries at any level";
    let phrase = "words in a sentence of the error; ... stands for anything between";
    let sentence = "whole sentences of the error";
    let body = "what the body is, by its content";
    let wait_over = "a wait hint longer than this";
    let mut when = When::default();
    when.status = items(section, "status", Word::FORM, STATUS)
        .into_iter()
        .map(|word| match word {
            Word::Text(text) => StatusSpec::Text(text),
            Word::Number(number) => u16::try_from(number)
                .map_or_else(|_| StatusSpec::Text(number.to_string()), StatusSpec::One),
        })
        .collect();
    when.code = items(section, "code", Word::FORM, code)
        .into_iter()
        .map(|word| match word {
            Word::Text(text) => CodeSpec::Text(text),
            Word::Number(number) => CodeSpec::Number(number),
        })
        .collect();
    when.phrase = texts(section, "phrase", phrase);
    when.sentence = texts(section, "sentence", sentence);
    let headers = entries(section, "header", "{ x-cache = \"stale\" }", HEADER, header);
    when.header = headers.into_iter().collect();
    let fields = entries(section, "field", "{ \"/error/code\" = 42 }", FIELD, field);
    when.field = fields.into_iter().collect();
    when.body = section.choice("body", BODIES, None, body);
    when.finish = texts(section, "finish", FINISH);
    when.wait_over = section
        .opt("wait_over", None, wait_over)
        .map(|wait: Duration| humantime::format_duration(wait).to_string());
    when
}

fn then(section: &mut Section<'_, '_>) -> Then {
    let kinds = Kind::ALL.map(|kind| (kind.as_str(), kind));
    let kind = section.need_choice("kind", &kinds, "the kind of failure that it is");
    let mut then = Then::new(kind.unwrap_or(Kind::Local));
    let scope = "what is unhealthy; else what usually is";
    let retryable = "whether the same request to the same target may fare better";
    let fault = "whether it speaks against the provider's health";
    let hint = "whether a wait hint is believed";
    then.scope = section.choice("scope", SCOPES, None, scope);
    then.retryable = section.opt("retryable", None, retryable);
    then.provider_fault = section.opt("provider_fault", None, fault);
    then.hint = section.choice("hint", HINTS, None, hint);
    then
}

/// A text, or a whole number.
enum Word {
    Text(String),
    Number(i64),
}

impl Setting for Word {
    const FORM: &'static str = "texts in quotes and whole numbers";

    fn read(value: &DeValue<'_>) -> Result<Self, Wrong> {
        let Some(number) = value.as_integer() else {
            return Text::read(value).map(|text| Self::Text(text.0));
        };
        i64::from_str_radix(number.as_str(), number.radix())
            .map(Self::Number)
            .map_err(|_| Wrong::Value("is too large"))
    }

    fn written(&self) -> String {
        match self {
            Self::Text(text) => text.written(),
            Self::Number(number) => number.to_string(),
        }
    }
}

/// A text that is not too long to be looked for.
struct Text(String);

impl Setting for Text {
    const FORM: &'static str = "texts in quotes";

    fn read(value: &DeValue<'_>) -> Result<Self, Wrong> {
        let text = String::read(value)?;
        if text.len() > LONGEST_TEXT {
            return Err(Wrong::Value("is longer than 200 bytes"));
        }
        Ok(Self(text))
    }

    fn written(&self) -> String {
        self.0.written()
    }
}

fn texts(section: &mut Section<'_, '_>, key: &'static str, doc: &'static str) -> Vec<String> {
    let texts: Vec<Text> = items(section, key, Text::FORM, doc);
    texts.into_iter().map(|text| text.0).collect()
}

/// The items of a list.
fn items<T: Setting>(
    section: &mut Section<'_, '_>,
    key: &'static str,
    form: &str,
    doc: &'static str,
) -> Vec<T> {
    let form = format!("a list of {form}");
    let path = section.path(key);
    let Some(value) = section.raw(key, &form, doc) else {
        return Vec::new();
    };
    let Some(items) = value.get_ref().as_array() else {
        let remedy = format!("write {form}");
        section
            .document
            .mistake(&path, type_of(value.get_ref()), remedy);
        return Vec::new();
    };
    if items.is_empty() || items.len() > MOST_ENTRIES {
        let remedy = format!("write 1 to {MOST_ENTRIES} entries, or leave the key out");
        section
            .document
            .mistake(&path, "is empty or too long", remedy);
        return Vec::new();
    }
    let items = items.iter().enumerate();
    items
        .filter_map(|(at, item)| setting(section.document, &format!("{path}[{at}]"), item))
        .collect()
}

/// The entries of a table whose keys are the operator's choice.
fn entries<T>(
    section: &mut Section<'_, '_>,
    key: &'static str,
    example: &str,
    doc: &'static str,
    read: impl Fn(&Spanned<DeValue<'_>>) -> Result<T, Wrong>,
) -> Vec<(String, T)> {
    let form = format!("a table such as {example}");
    let path = section.path(key);
    let Some(value) = section.raw(key, &form, doc) else {
        return Vec::new();
    };
    let no_table = DeTable::new();
    let table = value.get_ref().as_table().unwrap_or(&no_table);
    if table.is_empty() || table.len() > MOST_ENTRIES {
        let remedy = format!("write {form}, with at most {MOST_ENTRIES} entries");
        section
            .document
            .mistake(&path, "is no such table, empty or too long", remedy);
        return Vec::new();
    }
    let mut found = Vec::new();
    for (name, value) in table {
        let name = name.get_ref().as_ref();
        match read(value) {
            Ok(value) => found.push((name.to_owned(), value)),
            Err(wrong) => {
                let problem = match wrong {
                    Wrong::Type => type_of(value.get_ref()),
                    Wrong::Value(problem) => problem,
                };
                let remedy = format!("write {form}");
                section
                    .document
                    .mistake(&join(&path, name), problem, remedy);
            }
        }
    }
    found
}

fn header(value: &Spanned<DeValue<'_>>) -> Result<String, Wrong> {
    value
        .get_ref()
        .as_str()
        .map(str::to_owned)
        .ok_or(Wrong::Type)
}

fn field(value: &Spanned<DeValue<'_>>) -> Result<serde_json::Value, Wrong> {
    if value.get_ref().as_datetime().is_some() {
        // JSON has none.
        return Err(Wrong::Type);
    }
    serde_json::Value::deserialize(value.clone().into_deserializer()).map_err(|_| Wrong::Type)
}

/// Tells a mistake at the key, or at the item of it, where the value stands.
fn tell(problem: &RuleProblem, rules: &str, document: &mut Document<'_>) {
    let key = match problem.rule.checked_sub(1) {
        Some(at) => format!("{rules}[{at}].{}", problem.key),
        None => rules.to_owned(),
    };
    let named = join(&key, &problem.value);
    let item = (0..MOST_ENTRIES)
        .map(|at| format!("{key}[{at}]"))
        .find(|item| document.says(item, &problem.value));
    let key = if document.is_written(&named) {
        named
    } else {
        item.unwrap_or(key)
    };
    document.mistake(&key, "is not usable", problem.remedy.clone());
}
