//! OpenAI responses: events by type. There is no `[DONE]`.

use super::json::{any_filled, finish, is_error, is_filled, text, usage};
use super::{CallStage, Finish, Look};
use crate::json::{Object as _, object};

object! {
    pub(super) struct Event {
        kind = "type",
        delta,
        text,
        refusal,
        arguments,
        partial_image_b64,
        item,
        response,
        error,
    }
}

object! {
    struct Item {
        kind = "type",
    }
}

object! {
    struct Response {
        output,
        incomplete_details,
        usage,
    }
}

object! {
    struct Incomplete {
        reason,
    }
}

object! {
    struct Tokens {
        input_tokens,
        output_tokens,
    }
}

impl Event<'_> {
    pub(super) fn look(self) -> Look {
        let item = self.item.and_then(Item::read).unwrap_or_default();
        let is_tool_call = || text(item.kind).ends_with("_call");
        let response = self.response.and_then(Response::read).unwrap_or_default();
        let mut look = Look {
            is_error: is_error(self.error),
            ..Look::default()
        };
        match &*text(self.kind) {
            "error" | "response.failed" => look.is_error = true,
            "response.completed" => {
                look.finish = Some(Finish::Stop);
                look.output = is_filled(response.output);
            }
            "response.incomplete" => {
                let details = response.incomplete_details.and_then(Incomplete::read);
                let reason = details.and_then(|details| details.reason);
                look.finish = finish(reason).or(Some(Finish::Stop));
            }
            "response.output_item.added" if is_tool_call() => {
                look.tool_call = Some(CallStage::Open);
                look.output = true;
            }
            "response.output_item.done" if is_tool_call() => {
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
        let tokens = response.usage.and_then(Tokens::read);
        look.usage = tokens.map(|tokens| usage([tokens.input_tokens], [tokens.output_tokens]));
        look
    }
}
