//! Gemini: chunks with candidates. A blocked prompt has none, and a reason instead.

use serde::Deserialize;

use super::Finish;
use super::Look;
use super::json::{Raw, Text, any_filled, finish, is_error, text, usage};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Chunk<'e> {
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'e>>>,
    #[serde(borrow)]
    prompt_feedback: Option<Feedback<'e>>,
    usage_metadata: Option<Tokens>,
    #[serde(borrow)]
    error: Raw<'e>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'e> {
    #[serde(borrow)]
    content: Option<Content<'e>>,
    #[serde(borrow)]
    finish_reason: Option<Text<'e>>,
}

#[derive(Deserialize)]
struct Content<'e> {
    #[serde(borrow)]
    parts: Option<Vec<Part<'e>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'e> {
    #[serde(borrow)]
    text: Raw<'e>,
    #[serde(borrow)]
    function_call: Raw<'e>,
    #[serde(borrow)]
    inline_data: Raw<'e>,
    #[serde(borrow)]
    file_data: Raw<'e>,
    #[serde(borrow)]
    executable_code: Raw<'e>,
    #[serde(borrow)]
    code_execution_result: Raw<'e>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback<'e> {
    #[serde(borrow)]
    block_reason: Option<Text<'e>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    prompt_token_count: Option<f64>,
    candidates_token_count: Option<f64>,
    thoughts_token_count: Option<f64>,
}

impl Chunk<'_> {
    pub(super) fn look(self) -> Look {
        let feedback = self.prompt_feedback.as_ref();
        let blocked = text(feedback.and_then(|feedback| feedback.block_reason.as_ref()));
        let mut look = Look {
            is_error: is_error(self.error),
            finish: (!blocked.is_empty()).then_some(Finish::Policy("prompt_blocked")),
            ..Look::default()
        };
        for candidate in self.candidates.unwrap_or_default() {
            let parts = candidate.content.and_then(|content| content.parts);
            look.output |= parts.unwrap_or_default().iter().any(Part::is_filled);
            look.finish = finish(candidate.finish_reason.as_ref()).or(look.finish);
        }
        look.usage = self.usage_metadata.map(|tokens| {
            let output = [tokens.candidates_token_count, tokens.thoughts_token_count];
            usage([tokens.prompt_token_count], output)
        });
        look
    }
}

impl Part<'_> {
    fn is_filled(&self) -> bool {
        any_filled([
            self.text,
            self.function_call,
            self.inline_data,
            self.file_data,
            self.executable_code,
            self.code_execution_result,
        ])
    }
}
