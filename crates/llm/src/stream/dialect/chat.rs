//! OpenAI chat completions, and the older completions: chunks with choices.
//!
//! An error is any chunk with `error`, whatever else it holds; older vLLM says `object: error`, Venice `error_type`.

use serde::Deserialize;

use super::json::{Each, Element, Raw, Text, any_filled, finish, is_error, look_of, text, usage};
use super::{CallStage, Look};

#[derive(Deserialize)]
pub(super) struct Chunk<'e> {
    #[serde(borrow)]
    choices: Option<Each<Choice<'e>>>,
    #[serde(borrow)]
    error: Raw<'e>,
    #[serde(borrow)]
    error_type: Raw<'e>,
    #[serde(borrow)]
    error_message: Raw<'e>,
    #[serde(borrow)]
    object: Option<Text<'e>>,
    usage: Option<Tokens>,
    x_groq: Option<Groq>,
}

#[derive(Deserialize)]
struct Choice<'e> {
    #[serde(borrow)]
    delta: Option<Delta<'e>>,
    #[serde(borrow)]
    text: Raw<'e>,
    #[serde(borrow)]
    finish_reason: Option<Text<'e>>,
}

#[derive(Default, Deserialize)]
struct Delta<'e> {
    #[serde(borrow)]
    content: Raw<'e>,
    #[serde(borrow)]
    reasoning_content: Raw<'e>,
    #[serde(borrow)]
    reasoning: Raw<'e>,
    #[serde(borrow)]
    reasoning_details: Raw<'e>,
    #[serde(borrow)]
    refusal: Raw<'e>,
    #[serde(borrow)]
    audio: Raw<'e>,
    #[serde(borrow)]
    tool_calls: Raw<'e>,
    #[serde(borrow)]
    function_call: Raw<'e>,
}

#[derive(Clone, Copy, Deserialize)]
struct Tokens {
    prompt_tokens: Option<f64>,
    completion_tokens: Option<f64>,
}

#[derive(Deserialize)]
struct Groq {
    usage: Option<Tokens>,
}

impl Chunk<'_> {
    pub(super) fn look(self) -> Look {
        let mut look = look_of(self.choices);
        look.is_error = is_error(self.error)
            || any_filled([self.error_type, self.error_message])
            || text(self.object.as_ref()) == "error";
        // Whoever sends a call and its finish in one chunk has sent it whole.
        if look.finish.is_some() {
            look.tool_call = None;
        }
        let tokens = self.usage.or_else(|| self.x_groq?.usage);
        look.usage = tokens.map(|tokens| usage([tokens.prompt_tokens], [tokens.completion_tokens]));
        look
    }
}

impl Element for Choice<'_> {
    fn look(self) -> Look {
        let delta = self.delta.unwrap_or_default();
        let is_tool_call = any_filled([delta.tool_calls, delta.function_call]);
        let is_said = any_filled([
            delta.content,
            delta.reasoning_content,
            delta.reasoning,
            delta.reasoning_details,
            delta.refusal,
            delta.audio,
            self.text,
        ]);
        Look {
            output: is_said || is_tool_call,
            finish: finish(self.finish_reason.as_ref()),
            tool_call: is_tool_call.then_some(CallStage::Open),
            ..Look::default()
        }
    }
}
