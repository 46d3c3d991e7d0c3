//! OpenAI responses: events by type. There is no `[DONE]`.

use serde::Deserialize;

use super::json::{Raw, Text, any_filled, finish, is_error, is_filled, text, usage};
use super::{CallStage, Finish, Look};

#[derive(Deserialize)]
pub(super) struct Event<'e> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'e>>,
    #[serde(borrow)]
    delta: Raw<'e>,
    #[serde(borrow)]
    text: Raw<'e>,
    #[serde(borrow)]
    refusal: Raw<'e>,
    #[serde(borrow)]
    arguments: Raw<'e>,
    #[serde(borrow)]
    partial_image_b64: Raw<'e>,
    #[serde(borrow)]
    item: Option<Item<'e>>,
    #[serde(borrow)]
    response: Option<Response<'e>>,
    #[serde(borrow)]
    error: Raw<'e>,
}

#[derive(Deserialize)]
struct Item<'e> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'e>>,
}

#[derive(Deserialize)]
struct Response<'e> {
    #[serde(borrow)]
    output: Raw<'e>,
    #[serde(borrow)]
    incomplete_details: Option<Incomplete<'e>>,
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Incomplete<'e> {
    #[serde(borrow)]
    reason: Option<Text<'e>>,
}

#[derive(Deserialize)]
struct Tokens {
    input_tokens: Option<f64>,
    output_tokens: Option<f64>,
}

impl Event<'_> {
    pub(super) fn look(self) -> Look {
        let item = self.item.as_ref().and_then(|item| item.kind.as_ref());
        let is_tool_call = text(item).ends_with("_call");
        let response = self.response.as_ref();
        let mut look = Look {
            is_error: is_error(self.error),
            ..Look::default()
        };
        match text(self.kind.as_ref()) {
            "error" | "response.failed" => look.is_error = true,
            "response.completed" => {
                look.finish = Some(Finish::Stop);
                look.output = response.is_some_and(|response| is_filled(response.output));
            }
            "response.incomplete" => {
                let details = response.and_then(|response| response.incomplete_details.as_ref());
                let reason = details.and_then(|details| details.reason.as_ref());
                look.finish = finish(reason).or(Some(Finish::Stop));
            }
            "response.output_item.added" if is_tool_call => {
                look.tool_call = Some(CallStage::Open);
                look.output = true;
            }
            "response.output_item.done" if is_tool_call => {
                look.tool_call = Some(CallStage::Closed);
                look.output = true;
            }
            _ => {
                look.output = any_filled([
                    self.delta,
                    self.text,
                    self.refusal,
                    self.arguments,
                    self.partial_image_b64,
                ]);
            }
        }
        let tokens = response.and_then(|response| response.usage.as_ref());
        look.usage = tokens.map(|tokens| usage([tokens.input_tokens], [tokens.output_tokens]));
        look
    }
}
