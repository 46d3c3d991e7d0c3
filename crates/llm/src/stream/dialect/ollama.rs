//! Ollama's own chat and generate: a JSON text a line, the last one with `done`.

use super::json::{any_filled, finish, is_error, usage};
use super::{Finish, Look};
use crate::json::{Object as _, object};

object! {
    pub(super) struct Line {
        message,
        response,
        thinking,
        done,
        done_reason,
        prompt_eval_count,
        eval_count,
        error,
    }
}

object! {
    struct Message {
        content,
        thinking,
        /// Calls come whole, each in one line.
        tool_calls,
    }
}

impl Line<'_> {
    pub(super) fn look(self) -> Look {
        let message = self.message.and_then(Message::read).unwrap_or_default();
        let is_done = self.done.is_some_and(|done| done.get() == b"true");
        Look {
            output: any_filled([
                message.content,
                message.thinking,
                message.tool_calls,
                self.response,
                self.thinking,
            ]),
            finish: is_done.then(|| finish(self.done_reason).unwrap_or(Finish::Stop)),
            is_error: is_error(self.error),
            usage: is_done.then(|| usage([self.prompt_eval_count], [self.eval_count])),
            ..Look::default()
        }
    }
}
