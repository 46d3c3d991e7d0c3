//! Bedrock's ConverseStream: events by the name in their frame. Exceptions have frames of their own.

use super::json::{any_filled, finish, is_filled, usage};
use super::{CallStage, Finish, Look};
use crate::json::{Object as _, object};

object! {
    pub(super) struct Event {
        start,
        delta,
        stop_reason = "stopReason",
        usage,
    }
}

object! {
    struct Start {
        tool_use = "toolUse",
    }
}

object! {
    struct Delta {
        text,
        reasoning_content = "reasoningContent",
        tool_use = "toolUse",
        citation,
    }
}

object! {
    struct Reasoning {
        text,
        signature,
        redacted_content = "redactedContent",
    }
}

object! {
    struct ToolUse {
        input,
    }
}

object! {
    struct Tokens {
        input = "inputTokens",
        cache_read = "cacheReadInputTokens",
        cache_write = "cacheWriteInputTokens",
        output = "outputTokens",
    }
}

impl Event<'_> {
    pub(super) fn look(self, name: Option<&str>) -> Look {
        let mut look = Look::default();
        match name {
            Some("contentBlockStart") => {
                let start = self.start.and_then(Start::read);
                look.output = start.is_some_and(|start| is_filled(start.tool_use));
                look.tool_call = look.output.then_some(CallStage::Open);
            }
            Some("contentBlockDelta") => {
                let delta = self.delta.and_then(Delta::read);
                look.output = delta.is_some_and(|delta| delta.is_filled());
            }
            Some("contentBlockStop") => look.tool_call = Some(CallStage::Closed),
            Some("messageStop") => {
                look.finish = finish(self.stop_reason).or(Some(Finish::Stop));
            }
            _ => {}
        }
        let tokens = self.usage.and_then(Tokens::read);
        look.usage = tokens.map(|tokens| {
            let input = [tokens.input, tokens.cache_read, tokens.cache_write];
            usage(input, [tokens.output])
        });
        look
    }
}

impl Delta<'_> {
    fn is_filled(&self) -> bool {
        let tool = self.tool_use.and_then(ToolUse::read).unwrap_or_default();
        let reasoning = self.reasoning_content.and_then(Reasoning::read);
        let reasoning = reasoning.unwrap_or_default();
        any_filled([
            self.text,
            self.citation,
            tool.input,
            reasoning.text,
            reasoning.signature,
            reasoning.redacted_content,
        ])
    }
}
