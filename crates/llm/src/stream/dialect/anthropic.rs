//! Anthropic messages: events by type. A stop reason makes the answer whole; `message_stop` follows it.

use serde::Deserialize;

use super::json::{Raw, Text, any_filled, finish, is_error, text, usage};
use super::{CallStage, Look};

#[derive(Deserialize)]
pub(super) struct Event<'e> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'e>>,
    #[serde(borrow)]
    delta: Option<Delta<'e>>,
    #[serde(borrow)]
    content_block: Option<Block<'e>>,
    message: Option<Message>,
    usage: Option<Tokens>,
    #[serde(borrow)]
    error: Raw<'e>,
}

#[derive(Deserialize)]
struct Delta<'e> {
    #[serde(borrow)]
    text: Raw<'e>,
    #[serde(borrow)]
    thinking: Raw<'e>,
    #[serde(borrow)]
    signature: Raw<'e>,
    #[serde(borrow)]
    partial_json: Raw<'e>,
    #[serde(borrow)]
    citation: Raw<'e>,
    #[serde(borrow)]
    stop_reason: Option<Text<'e>>,
}

#[derive(Deserialize)]
struct Block<'e> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'e>>,
    #[serde(borrow)]
    text: Raw<'e>,
    #[serde(borrow)]
    thinking: Raw<'e>,
}

#[derive(Deserialize)]
struct Message {
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Tokens {
    input_tokens: Option<f64>,
    cache_creation_input_tokens: Option<f64>,
    cache_read_input_tokens: Option<f64>,
    output_tokens: Option<f64>,
}

impl Event<'_> {
    pub(super) fn look(self) -> Look {
        let mut look = Look {
            is_error: is_error(self.error),
            ..Look::default()
        };
        match text(self.kind.as_ref()) {
            "error" => look.is_error = true,
            "content_block_start" => {
                let block = self.content_block.as_ref();
                look.output = block.is_some_and(Block::is_output);
                look.tool_call = block
                    .is_some_and(Block::is_tool_call)
                    .then_some(CallStage::Open);
            }
            "content_block_stop" => look.tool_call = Some(CallStage::Closed),
            "message_stop" => look.is_marker = true,
            _ => {}
        }
        if let Some(delta) = self.delta {
            look.finish = finish(delta.stop_reason.as_ref());
            look.output |= any_filled([
                delta.text,
                delta.thinking,
                delta.signature,
                delta.partial_json,
                delta.citation,
            ]);
        }
        let tokens = self.usage.or_else(|| self.message?.usage);
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
        match text(self.kind.as_ref()) {
            "" | "text" | "thinking" => any_filled([self.text, self.thinking]),
            _ => true,
        }
    }

    fn is_tool_call(&self) -> bool {
        text(self.kind.as_ref()).ends_with("tool_use")
    }
}
