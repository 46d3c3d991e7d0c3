//! Ollama's own chat and generate: a JSON text a line, the last one with `done`.

use serde::Deserialize;

use super::json::{Raw, Text, any_filled, finish, is_error, usage};
use super::{Finish, Look};

#[derive(Deserialize)]
pub(super) struct Line<'e> {
    #[serde(borrow)]
    message: Option<Message<'e>>,
    #[serde(borrow)]
    response: Raw<'e>,
    #[serde(borrow)]
    thinking: Raw<'e>,
    done: Option<bool>,
    #[serde(borrow)]
    done_reason: Option<Text<'e>>,
    prompt_eval_count: Option<f64>,
    eval_count: Option<f64>,
    #[serde(borrow)]
    error: Raw<'e>,
}

#[derive(Default, Deserialize)]
struct Message<'e> {
    #[serde(borrow)]
    content: Raw<'e>,
    #[serde(borrow)]
    thinking: Raw<'e>,
    /// Calls come whole, each in one line.
    #[serde(borrow)]
    tool_calls: Raw<'e>,
}

impl Line<'_> {
    pub(super) fn look(self) -> Look {
        let message = self.message.unwrap_or_default();
        let is_done = self.done == Some(true);
        Look {
            output: any_filled([
                message.content,
                message.thinking,
                message.tool_calls,
                self.response,
                self.thinking,
            ]),
            finish: is_done.then(|| finish(self.done_reason.as_ref()).unwrap_or(Finish::Stop)),
            is_error: is_error(self.error),
            usage: is_done.then(|| usage([self.prompt_eval_count], [self.eval_count])),
            ..Look::default()
        }
    }
}
