//! Cohere's chat: the second version's events by `type`, the first one's by `event_type`. An error comes as the end.

use super::json::{any_filled, finish, is_error, text, usage};
use super::{CallStage, Finish, Look};
use crate::json::{Object as _, object};

object! {
    pub(super) struct Event {
        kind = "type",
        event_type,
        delta,
        text,
        tool_calls,
        tool_call_delta,
        finish_reason,
        response,
        error,
    }
}

object! {
    struct Delta {
        message,
        finish_reason,
        usage,
    }
}

object! {
    struct Message {
        content,
        tool_plan,
        tool_calls,
    }
}

object! {
    struct Content {
        text,
        thinking,
    }
}

object! {
    struct Response {
        meta,
    }
}

object! {
    struct Meta {
        tokens,
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
        let mut look = Look {
            is_error: is_error(self.error),
            ..Look::default()
        };
        let delta = self.delta.and_then(Delta::read).unwrap_or_default();
        match &*text(self.kind.or(self.event_type)) {
            "message-end" | "stream-end" => {
                let reason = delta.finish_reason.or(self.finish_reason);
                look.finish = finish(reason).or(Some(Finish::Stop));
            }
            "tool-call-start" => look.tool_call = Some(CallStage::Open),
            "tool-call-end" => look.tool_call = Some(CallStage::Closed),
            _ => {}
        }
        let message = delta.message.and_then(Message::read);
        look.output = message.is_some_and(|message| message.is_filled())
            || any_filled([self.text, self.tool_calls, self.tool_call_delta]);
        let of_response = || Response::read(self.response?)?.meta;
        let meta = delta.usage.or_else(of_response).and_then(Meta::read);
        let tokens = meta.and_then(|meta| Tokens::read(meta.tokens?));
        look.usage = tokens.map(|tokens| usage([tokens.input_tokens], [tokens.output_tokens]));
        look
    }
}

impl Message<'_> {
    fn is_filled(&self) -> bool {
        let content = self.content.and_then(Content::read).unwrap_or_default();
        any_filled([
            self.tool_plan,
            self.tool_calls,
            content.text,
            content.thinking,
        ])
    }
}
