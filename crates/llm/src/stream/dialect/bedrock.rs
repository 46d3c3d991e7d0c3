//! Bedrock's ConverseStream: events by the name in their frame. Exceptions have frames of their own.

use serde::Deserialize;

use super::json::{Raw, Text, any_filled, finish, is_filled, usage};
use super::{CallStage, Finish, Look};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Event<'e> {
    #[serde(borrow)]
    start: Option<Start<'e>>,
    #[serde(borrow)]
    delta: Option<Delta<'e>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'e>>,
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start<'e> {
    #[serde(borrow)]
    tool_use: Raw<'e>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delta<'e> {
    #[serde(borrow)]
    text: Raw<'e>,
    #[serde(borrow)]
    reasoning_content: Option<Reasoning<'e>>,
    #[serde(borrow)]
    tool_use: Option<ToolUse<'e>>,
    #[serde(borrow)]
    citation: Raw<'e>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reasoning<'e> {
    #[serde(borrow)]
    text: Raw<'e>,
    #[serde(borrow)]
    signature: Raw<'e>,
    #[serde(borrow)]
    redacted_content: Raw<'e>,
}

#[derive(Deserialize)]
struct ToolUse<'e> {
    #[serde(borrow)]
    input: Raw<'e>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    input_tokens: Option<f64>,
    cache_read_input_tokens: Option<f64>,
    cache_write_input_tokens: Option<f64>,
    output_tokens: Option<f64>,
}

impl Event<'_> {
    pub(super) fn look(self, name: Option<&str>) -> Look {
        let mut look = Look::default();
        match name {
            Some("contentBlockStart") => {
                look.output = self.start.is_some_and(|start| is_filled(start.tool_use));
                look.tool_call = look.output.then_some(CallStage::Open);
            }
            Some("contentBlockDelta") => {
                look.output = self.delta.is_some_and(|delta| delta.is_filled())
            }
            Some("contentBlockStop") => look.tool_call = Some(CallStage::Closed),
            Some("messageStop") => {
                look.finish = finish(self.stop_reason.as_ref()).or(Some(Finish::Stop));
            }
            _ => {}
        }
        look.usage = self.usage.map(|tokens| {
            let input = [
                tokens.input_tokens,
                tokens.cache_read_input_tokens,
                tokens.cache_write_input_tokens,
            ];
            usage(input, [tokens.output_tokens])
        });
        look
    }
}

impl Delta<'_> {
    fn is_filled(&self) -> bool {
        let tool_input = self.tool_use.as_ref().and_then(|tool| tool.input);
        let reasoning = self.reasoning_content.as_ref();
        any_filled([self.text, self.citation, tool_input])
            || reasoning.is_some_and(|reasoning| {
                any_filled([
                    reasoning.text,
                    reasoning.signature,
                    reasoning.redacted_content,
                ])
            })
    }
}
