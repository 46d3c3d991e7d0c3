//! Cohere's chat: the second version's events by `type`, the first one's by `event_type`. An error comes as the end.

use serde::Deserialize;

use super::json::{Raw, Text, any_filled, finish, is_error, is_filled, text, usage};
use super::{CallStage, Finish, Look};

#[derive(Deserialize)]
pub(super) struct Event<'e> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'e>>,
    #[serde(borrow)]
    event_type: Option<Text<'e>>,
    #[serde(borrow)]
    delta: Option<Delta<'e>>,
    #[serde(borrow)]
    text: Raw<'e>,
    #[serde(borrow)]
    tool_calls: Raw<'e>,
    #[serde(borrow)]
    tool_call_delta: Raw<'e>,
    #[serde(borrow)]
    finish_reason: Option<Text<'e>>,
    response: Option<Response>,
    #[serde(borrow)]
    error: Raw<'e>,
}

#[derive(Deserialize)]
struct Delta<'e> {
    #[serde(borrow)]
    message: Option<Message<'e>>,
    #[serde(borrow)]
    finish_reason: Option<Text<'e>>,
    usage: Option<Meta>,
}

#[derive(Deserialize)]
struct Message<'e> {
    #[serde(borrow)]
    content: Option<Content<'e>>,
    #[serde(borrow)]
    tool_plan: Raw<'e>,
    #[serde(borrow)]
    tool_calls: Raw<'e>,
}

#[derive(Deserialize)]
struct Content<'e> {
    #[serde(borrow)]
    text: Raw<'e>,
    #[serde(borrow)]
    thinking: Raw<'e>,
}

#[derive(Deserialize)]
struct Response {
    meta: Option<Meta>,
}

#[derive(Deserialize)]
struct Meta {
    tokens: Option<Tokens>,
}

#[derive(Deserialize)]
struct Tokens {
    input_tokens: Option<f64>,
    output_tokens: Option<f64>,
}

impl Event<'_> {
    pub(super) fn look(self) -> Look {
        let mut look = Look {
            is_error: is_error(self.error),
            ..Look::default()
        };
        let delta = self.delta.as_ref();
        match text(self.kind.as_ref().or(self.event_type.as_ref())) {
            "message-end" | "stream-end" => {
                let reason = delta.and_then(|delta| delta.finish_reason.as_ref());
                let reason = reason.or(self.finish_reason.as_ref());
                look.finish = finish(reason).or(Some(Finish::Stop));
            }
            "tool-call-start" => look.tool_call = Some(CallStage::Open),
            "tool-call-end" => look.tool_call = Some(CallStage::Closed),
            _ => {}
        }
        let message = delta.and_then(|delta| delta.message.as_ref());
        look.output = message.is_some_and(Message::is_filled)
            || any_filled([self.text, self.tool_calls, self.tool_call_delta]);
        let of_response = self
            .response
            .as_ref()
            .and_then(|response| response.meta.as_ref());
        let meta = delta.and_then(|delta| delta.usage.as_ref()).or(of_response);
        let tokens = meta.and_then(|meta| meta.tokens.as_ref());
        look.usage = tokens.map(|tokens| usage([tokens.input_tokens], [tokens.output_tokens]));
        look
    }
}

impl Message<'_> {
    fn is_filled(&self) -> bool {
        let content = self.content.as_ref();
        any_filled([self.tool_plan, self.tool_calls])
            || content.is_some_and(|content| is_filled(content.text) || is_filled(content.thinking))
    }
}
