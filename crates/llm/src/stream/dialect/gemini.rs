//! Gemini: chunks with candidates. A blocked prompt has none, and a reason instead.

use serde::Deserialize;

use super::json::{Each, Element, Raw, Text, any_filled, finish, is_error, look_of, text, usage};
use super::{Finish, Look};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Chunk<'e> {
    #[serde(borrow)]
    candidates: Option<Each<Candidate<'e>>>,
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
    parts: Option<Each<Part<'e>>>,
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
        let mut look = look_of(self.candidates);
        if !blocked.is_empty() {
            look.finish = Some(Finish::Policy("prompt_blocked"));
        }
        look.is_error = is_error(self.error);
        look.usage = self.usage_metadata.map(|tokens| {
            let output = [tokens.candidates_token_count, tokens.thoughts_token_count];
            usage([tokens.prompt_token_count], output)
        });
        look
    }
}

impl Element for Candidate<'_> {
    fn look(self) -> Look {
        Look {
            finish: finish(self.finish_reason.as_ref()),
            ..look_of(self.content.and_then(|content| content.parts))
        }
    }
}

impl Element for Part<'_> {
    fn look(self) -> Look {
        Look {
            output: any_filled([
                self.text,
                self.function_call,
                self.inline_data,
                self.file_data,
                self.executable_code,
                self.code_execution_result,
            ]),
            ..Look::default()
        }
    }
}
