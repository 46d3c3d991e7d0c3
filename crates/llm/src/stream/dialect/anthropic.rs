//! Anthropic messages: events by type. A stop reason makes the answer whole; `message_stop` follows it.

use super::json::{any_filled, finish, is_error, text, usage};
use super::{CallStage, Look};
use crate::json::{Object as _, object};

object! {
    pub(super) struct Event {
        kind = "type",
        delta,
        content_block,
        message,
        usage,
        error,
    }
}

object! {
    struct Delta {
        text,
        thinking,
        signature,
        partial_json,
        citation,
        stop_reason,
    }
}

object! {
    struct Block {
        kind = "type",
        text,
        thinking,
    }
}

object! {
    struct Message {
        usage,
    }
}

object! {
    struct Tokens {
        input_tokens,
        cache_creation_input_tokens,
        cache_read_input_tokens,
        output_tokens,
    }
}

impl Event<'_> {
    pub(super) fn look(self) -> Look {
        let mut look = Look {
            is_error: is_error(self.error),
            ..Look::default()
        };
        match &*text(self.kind) {
            "error" => look.is_error = true,
            "content_block_start" => {
                let block = self.content_block.and_then(Block::read);
                look.output = block.as_ref().is_some_and(Block::is_output);
                let is_tool_call = block.is_some_and(|block| block.is_tool_call());
                look.tool_call = is_tool_call.then_some(CallStage::Open);
            }
            "content_block_stop" => look.tool_call = Some(CallStage::Closed),
            "message_stop" => look.is_marker = true,
            _ => {}
        }
        if let Some(delta) = self.delta.and_then(Delta::read) {
            look.finish = finish(delta.stop_reason);
            look.output |= any_filled([
                delta.text,
                delta.thinking,
                delta.signature,
                delta.partial_json,
                delta.citation,
            ]);
        }
        let of_message = || Message::read(self.message?)?.usage;
        let tokens = self.usage.or_else(of_message).and_then(Tokens::read);
        look.usage = tokens.map(|tokens| {
            let input = [
                tokens.input_tokens,
                tokens.cache_creation_input_tokens,
                tokens.cache_read_input_tokens,
            ];
            usage(input, [tokens.output_tokens])
        });
        look
    }
}

impl Block<'_> {
    /// Text and thinking begin empty; every other block begins with something.
    fn is_output(&self) -> bool {
        match &*text(self.kind) {
            "" | "text" | "thinking" => any_filled([self.text, self.thinking]),
            _ => true,
        }
    }

    fn is_tool_call(&self) -> bool {
        text(self.kind).ends_with("tool_use")
    }
}
