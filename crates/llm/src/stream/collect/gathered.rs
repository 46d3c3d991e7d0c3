//! `Gathered`: what has come of an answer so far, in the stream's own spelling.

use serde_json::value::RawValue;

use super::ToolCall;
use super::node::{Node, decode};
use crate::stream::Finish;

/// What a tool call costs beside its texts.
const CALL: usize = 128;
/// An escape of half a letter.
const HALF: usize = "\\ud83d".len();

#[derive(Debug, Default)]
pub(super) struct Gathered {
    text: String,
    reasoning: String,
    calls: Vec<Call>,
    size: usize,
}

/// What a tool takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Text,
}

#[derive(Debug)]
struct Call {
    /// Its number in the answer; none where calls have none.
    index: Option<u64>,
    id: String,
    name: String,
    form: Form,
    arguments: Arguments,
}

#[derive(Debug)]
enum Arguments {
    /// The parts of a text, escaped as they were.
    Parts(String),
    /// An object.
    Whole(String),
}

impl Gathered {
    /// Roughly how many bytes are kept.
    pub(super) const fn size(&self) -> usize {
        self.size
    }

    /// Whether the answer has said anything to keep.
    pub(super) const fn is_empty(&self) -> bool {
        self.size == 0
    }

    pub(super) fn add_text(&mut self, text: Node<'_>) {
        let text = text.escaped().unwrap_or_default();
        self.size += text.len();
        self.text.push_str(text);
    }

    pub(super) fn add_reasoning(&mut self, text: Node<'_>) {
        let text = text.escaped().unwrap_or_default();
        self.size += text.len();
        self.reasoning.push_str(text);
    }

    /// A tool call begins, or says again what it is. Calls are told apart by their index and by their id: some servers
    /// leave the index out, others give the same to all.
    pub(super) fn open_call(
        &mut self,
        index: Option<u64>,
        (id, name): (Node<'_>, Node<'_>),
        form: Form,
    ) {
        let (id, name) = (id.text(), name.text());
        self.size += id.len() + name.len();
        let mut calls = self.calls.iter_mut().rev();
        let known = calls.find(|call| match index {
            Some(_) => {
                call.index == index && (id.is_empty() || call.id.is_empty() || call.id == id)
            }
            None => !id.is_empty() && call.id == id,
        });
        let Some(call) = known else {
            self.size += CALL;
            return self.calls.push(Call {
                index,
                id,
                name,
                form,
                arguments: Arguments::Parts(String::new()),
            });
        };
        for (slot, said) in [(&mut call.id, id), (&mut call.name, name)] {
            if slot.is_empty() {
                *slot = said;
            }
        }
    }

    /// More of a call's arguments, or all of them where they are no text. Without an index they are the last call's.
    pub(super) fn add_arguments(&mut self, index: Option<u64>, arguments: Node<'_>) {
        let (part, whole) = (arguments.escaped(), arguments.object());
        let Some(call) = self.call(index) else {
            // One that the provider runs itself.
            return;
        };
        match (&mut call.arguments, part, whole) {
            (Arguments::Parts(parts), Some(part), _) => parts.push_str(part),
            (arguments, _, Some(whole)) => *arguments = Arguments::Whole(whole.to_owned()),
            _ => return,
        }
        self.size += part.or(whole).unwrap_or_default().len();
    }

    /// All of a call's arguments as a text, in the place of what came before.
    pub(super) fn set_arguments(&mut self, index: Option<u64>, arguments: Node<'_>) {
        let (Some(text), Some(call)) = (arguments.escaped(), self.call(index)) else {
            return;
        };
        call.arguments = Arguments::Parts(text.to_owned());
        self.size += text.len();
    }

    pub(super) fn has_call(&mut self, index: Option<u64>) -> bool {
        self.call(index).is_some()
    }

    fn call(&mut self, index: Option<u64>) -> Option<&mut Call> {
        let mut calls = self.calls.iter_mut().rev();
        calls.find(|call| index.is_none() || call.index == index)
    }

    /// Text and reasoning; none where half a letter is missing.
    pub(super) fn speech(&self) -> Option<(String, String)> {
        Some((decode(&self.text)?, decode(&self.reasoning)?))
    }

    /// The text of a stream that was cut, perhaps in the middle of a letter.
    pub(super) fn text_so_far(&self) -> String {
        let without_half = || {
            let end = self.text.len().checked_sub(HALF)?;
            decode(self.text.get(..end)?)
        };
        decode(&self.text).or_else(without_half).unwrap_or_default()
    }

    /// The tool calls of an answer that finished so; none where one of them is not whole.
    pub(super) fn tool_calls(&self, finish: Finish) -> Option<Vec<ToolCall>> {
        let calls = self.calls.iter();
        calls.map(|call| call.whole(finish)).collect()
    }
}

impl Call {
    fn whole(&self, finish: Finish) -> Option<ToolCall> {
        let arguments = match &self.arguments {
            Arguments::Whole(object) => object.clone(),
            Arguments::Parts(parts) => {
                let text = decode(parts)?;
                // Of a model that was stopped, arguments may be missing of which that cannot be seen.
                let has_ended = finish == Finish::Stop;
                match (self.form, text.trim()) {
                    (Form::Text, _) => has_ended.then_some(text)?,
                    (Form::Json, "" | "null") => has_ended.then(|| "{}".to_owned())?,
                    (Form::Json, object) => is_object(object).then_some(text)?,
                }
            }
        };
        (!self.name.is_empty()).then(|| ToolCall {
            id: self.id.clone(),
            name: self.name.clone(),
            arguments,
        })
    }
}

fn is_object(text: &str) -> bool {
    text.starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok()
}
