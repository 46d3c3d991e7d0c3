//! What rules are asked about: the facts of one failure, and whether they are what a rule wants.

use std::cell::OnceCell;
use std::time::SystemTime;

use serde_json::Value;

use super::compile::{Test, Vocabulary, bare, range};
use super::document::{Document, Found};
use super::known::Known;
use super::phrases::Phrases;
use super::rule::BodyForm;
use crate::head::Headers;
use crate::hints::{Hint, HintInput, wait_hint};

/// A failure, or an answer whose end a rule may know.
pub(super) struct Facts<'a> {
    pub(super) provider: &'a str,
    pub(super) wall: SystemTime,
    /// The HTTP status, or the one that an error inside a success answer names.
    pub(super) status: Option<u16>,
    pub(super) headers: &'a dyn Headers,
    /// None where the body was not read.
    pub(super) document: Option<&'a Document<'a>>,
    pub(super) finish: &'a str,
    /// The name of an exception frame of a stream.
    pub(super) exception: &'a str,
    found: Found<'a>,
    hint: OnceCell<Option<Hint>>,
}

/// What a rule saw, in its own words.
#[derive(Default)]
struct Saw(String);

impl<'a> Facts<'a> {
    pub(super) fn new(
        provider: &'a str,
        wall: SystemTime,
        status: Option<u16>,
        headers: &'a dyn Headers,
        document: Option<&'a Document<'a>>,
    ) -> Self {
        let found = document.map(Document::found).unwrap_or_default();
        Self {
            provider,
            wall,
            status,
            headers,
            document,
            finish: "",
            exception: "",
            found,
            hint: OnceCell::new(),
        }
    }

    /// The status that the error itself names.
    pub(super) fn own_status(&self) -> Option<u16> {
        self.found.status
    }

    /// The wait that the failure asks for.
    pub(super) fn hint(&self) -> Option<Hint> {
        *self.hint.get_or_init(|| {
            let seen = HintInput {
                provider: self.provider,
                headers: self.headers,
                body: None,
                sentence: None,
            };
            let Some(document) = self.document else {
                return wait_hint(&seen, self.wall);
            };
            if document.form == BodyForm::Json {
                let mut layers = document.layers().zip(&self.found.messages);
                return layers.find_map(|(layer, message)| {
                    let sentence = message.filter(says_number);
                    let body = Some(layer);
                    let seen = HintInput {
                        body,
                        sentence,
                        ..seen
                    };
                    wait_hint(&seen, self.wall)
                });
            }
            let mut sentences = self.found.sentences.iter().copied();
            let sentence =
                sentences.find(|text| document.form == BodyForm::Text && says_number(text));
            wait_hint(&HintInput { sentence, ..seen }, self.wall)
        })
    }

    /// What some rule knows of the names and sentences.
    pub(super) fn known<'f>(
        &'f self,
        vocabulary: &Vocabulary,
        longest: usize,
        phrases: &'f Phrases,
    ) -> Known<'f> {
        let mut known = Known::new(&self.found.sentences, phrases);
        let exception = exception_of(self.headers);
        let exception = exception.as_deref().unwrap_or(self.exception);
        let names = self.found.names.iter().map(|(key, name)| (*key, &**name));
        for (key, name) in names.chain([("exception", exception)]) {
            known.look_up(key, bare_name(name), vocabulary, longest);
        }
        known
    }

    /// What of a rule's test is there, in the rule's words; none if anything it asks for is missing.
    pub(super) fn shows(&self, test: &Test, known: &Known<'_>) -> Option<String> {
        let asks_status = !test.statuses.is_empty() || test.in_band;
        let is_status = match self.status {
            Some(status) => test.statuses.iter().any(|range| range.contains(&status)),
            None => test.in_band,
        };
        // A good answer is judged only by rules that mean good answers.
        let is_meant = self.status.is_none_or(|status| status >= 300) || !test.finish.is_empty();
        if (asks_status && !is_status) || !(asks_status || is_meant) {
            return None;
        }
        let mut saw = Saw::default();
        if let Some(form) = test.body {
            self.document.filter(|document| document.form == form)?;
            saw.note("body", form.as_str());
        }
        self.shows_words(test, known, &mut saw)?;
        for (name, value) in &test.headers {
            self.has_header(name, value)
                .then(|| saw.note("header", name))?;
        }
        for (pointer, wanted) in &test.fields {
            let is_there = self
                .document?
                .has(pointer, |value| is_wanted(value, wanted));
            is_there.then(|| saw.note("field", pointer))?;
        }
        if !test.finish.is_empty() {
            let is_reason = |word: &&String| self.finish.eq_ignore_ascii_case(word);
            saw.note("finish", test.finish.iter().find(is_reason)?);
        }
        if let Some(least) = test.wait_over {
            self.hint().filter(|hint| hint.wait > least)?;
            saw.note("wait", "over the limit");
        }
        Some(saw.0)
    }

    fn shows_words(&self, test: &Test, known: &Known<'_>, saw: &mut Saw) -> Option<()> {
        if !test.codes.is_empty() {
            let (word, key) = test
                .codes
                .iter()
                .find_map(|word| Some((word, known.key_of(word.id)?)))?;
            saw.note(key, &word.text);
        }
        if !test.phrases.is_empty() {
            let phrase = test.phrases.iter().find(|phrase| known.has(phrase))?;
            saw.note("phrase", &format!("\"{}\"", phrase.text));
        }
        if !test.sentences.is_empty() {
            let is_said = |wanted: &&String| {
                let mut sentences = self.found.sentences.iter();
                sentences.any(|sentence| bare(sentence).eq_ignore_ascii_case(wanted))
            };
            let sentence = test.sentences.iter().find(is_said)?;
            saw.note("sentence", &format!("\"{sentence}\""));
        }
        Some(())
    }

    fn has_header(&self, name: &str, wanted: &str) -> bool {
        let mut has = false;
        self.headers.visit(name, &mut |value| {
            has |= value.to_ascii_lowercase().contains(wanted);
        });
        has
    }
}

impl Saw {
    fn note(&mut self, what: &str, text: &str) {
        let comma = if self.0.is_empty() { "" } else { ", " };
        self.0.extend([comma, what, " ", text]);
    }
}

/// Whether a sentence has a digit: without one it says no wait, and need not be read word by word.
fn says_number(text: &&str) -> bool {
    // Without a way out of the inner loop, many bytes are compared at a time.
    let is_in = |chunk: &[u8]| {
        let digits = chunk.iter().map(u8::is_ascii_digit);
        digits.fold(false, |found, is_digit| found | is_digit)
    };
    text.as_bytes().chunks(64).any(is_in)
}

/// AWS names its exceptions in a header, with an address behind.
fn exception_of(headers: &dyn Headers) -> Option<String> {
    let mut exception = None;
    headers.visit("x-amzn-errortype", &mut |value| {
        exception = Some(value.to_owned())
    });
    exception
}

/// The name without a namespace before it and an address behind, as AWS writes them.
fn bare_name(name: &str) -> &str {
    let name = name.rsplit_once('#').map_or(name, |(_, name)| name);
    name.split_once(":http")
        .map_or(name, |(name, _)| name)
        .trim()
}

fn is_wanted(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Null, _) => wanted.is_null(),
        (Value::Array(elements), Value::String(text)) if text == "*" => !elements.is_empty(),
        (_, Value::String(text)) if text == "*" => true,
        (Value::String(value), Value::String(text)) => value.eq_ignore_ascii_case(text),
        (Value::Number(number), Value::String(text)) => range(text).is_some_and(|range| {
            number
                .as_u64()
                .and_then(|number| u16::try_from(number).ok())
                .is_some_and(|number| range.contains(&number))
        }),
        _ => value == wanted,
    }
}

impl BodyForm {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Html => "html",
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}
