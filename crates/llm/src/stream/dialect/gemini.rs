//! Gemini: chunks with candidates. A blocked prompt has none, and a reason instead.

use super::json::{any_filled, finish, is_error, look_of, text, usage};
use super::{Finish, Look};
use crate::json::{Object as _, object};

object! {
    pub(super) struct Chunk {
        candidates,
        prompt_feedback = "promptFeedback",
        usage_metadata = "usageMetadata",
        error,
    }
}

object! {
    struct Candidate {
        content,
        finish_reason = "finishReason",
    }
}

object! {
    struct Content {
        parts,
    }
}

object! {
    struct Part {
        text,
        function_call = "functionCall",
        inline_data = "inlineData",
        file_data = "fileData",
        executable_code = "executableCode",
        code_execution_result = "codeExecutionResult",
    }
}

object! {
    struct Feedback {
        block_reason = "blockReason",
    }
}

object! {
    struct Tokens {
        prompt = "promptTokenCount",
        candidates = "candidatesTokenCount",
        thoughts = "thoughtsTokenCount",
    }
}

impl Chunk<'_> {
    pub(super) fn look(self) -> Look {
        let mut look = look_of(self.candidates, Candidate::look);
        let feedback = self.prompt_feedback.and_then(Feedback::read);
        if !text(feedback.and_then(|feedback| feedback.block_reason)).is_empty() {
            look.finish = Some(Finish::Policy("prompt_blocked"));
        }
        look.is_error = is_error(self.error);
        let tokens = self.usage_metadata.and_then(Tokens::read);
        look.usage =
            tokens.map(|tokens| usage([tokens.prompt], [tokens.candidates, tokens.thoughts]));
        look
    }
}

impl Candidate<'_> {
    fn look(self) -> Look {
        let parts = self.content.and_then(Content::read);
        Look {
            finish: finish(self.finish_reason),
            ..look_of(parts.and_then(|content| content.parts), Part::look)
        }
    }
}

impl Part<'_> {
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
