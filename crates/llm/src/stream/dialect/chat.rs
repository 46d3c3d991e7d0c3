//! OpenAI chat completions, and the older completions: chunks with choices.
//!
//! An error is any chunk with `error`, whatever else it holds; older vLLM says `object: error`, Venice `error_type`.

use super::json::{any_filled, finish, is_error, look_of, text, usage};
use super::{CallStage, Look};
use crate::json::{Object as _, object};

object! {
    pub(super) struct Chunk {
        choices,
        error,
        error_type,
        error_message,
        object,
        usage,
        x_groq,
    }
}

object! {
    struct Choice {
        delta,
        text,
        finish_reason,
    }
}

object! {
    struct Delta {
        content,
        reasoning_content,
        reasoning,
        reasoning_details,
        refusal,
        audio,
        tool_calls,
        function_call,
    }
}

object! {
    struct Tokens {
        prompt_tokens,
        completion_tokens,
    }
}

object! {
    struct Groq {
        usage,
    }
}

impl Chunk<'_> {
    pub(super) fn look(self) -> Look {
        let mut look = look_of(self.choices, Choice::look);
        look.is_error = is_error(self.error)
            || any_filled([self.error_type, self.error_message])
            || text(self.object) == "error";
        // Whoever sends a call and its finish in one chunk has sent it whole.
        if look.finish.is_some() {
            look.tool_call = None;
        }
        let of_groq = || Groq::read(self.x_groq?)?.usage;
        let tokens = self.usage.or_else(of_groq).and_then(Tokens::read);
        look.usage = tokens.map(|tokens| usage([tokens.prompt_tokens], [tokens.completion_tokens]));
        look
    }
}

impl Choice<'_> {
    fn look(self) -> Look {
        let delta = self.delta.and_then(Delta::read).unwrap_or_default();
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
            finish: finish(self.finish_reason),
            tool_call: is_tool_call.then_some(CallStage::Open),
            ..Look::default()
        }
    }
}
