//! One reply of a script file, and the keys that contradict each other.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::duration;
use crate::Reply;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplyFile {
    #[serde(default, deserialize_with = "duration")]
    delay: Duration,
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, Values>,
    text: Option<String>,
    error: Option<ErrorFile>,
    body: Option<String>,
    chunks: Option<Vec<String>>,
    raw: Option<String>,
    fault: Option<Fault>,
    events: Option<usize>,
    #[serde(default, deserialize_with = "duration")]
    first_gap: Duration,
    #[serde(default, deserialize_with = "duration")]
    gap: Duration,
    cut_after: Option<usize>,
    reset_after: Option<usize>,
    stall_after: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorFile {
    r#type: Option<String>,
    code: Option<String>,
    message: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a text or a list of texts")]
enum Values {
    One(String),
    Many(Vec<String>),
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Fault {
    Close,
    Reset,
    Stall,
}

impl ReplyFile {
    pub(super) fn into_reply(self) -> Result<Reply, String> {
        self.refuse_contradictions()?;
        let mut reply = match (self.fault, self.raw) {
            (Some(Fault::Close), _) => Reply::close(),
            (Some(Fault::Reset), _) => Reply::reset(),
            (Some(Fault::Stall), _) => Reply::stall(),
            (None, Some(raw)) => Reply::raw(raw),
            (None, None) => Reply::status(self.status.unwrap_or(200)),
        };
        reply = reply
            .delay(self.delay)
            .first_gap(self.first_gap)
            .gap(self.gap);
        for (name, values) in self.headers {
            let values = match values {
                Values::One(value) => vec![value],
                Values::Many(values) => values,
            };
            reply = values
                .into_iter()
                .fold(reply, |reply, value| reply.header(name.clone(), value));
        }
        if let Some(body) = self.body {
            reply = reply.body(body);
        }
        if let Some(chunks) = self.chunks {
            reply = reply.chunks(chunks);
        }
        reply.text = self.text;
        if let Some(error) = self.error {
            reply.error.kind = error.r#type;
            reply.error.code = error.code;
            reply.error.message = error.message;
        }
        reply.events = self.events;
        reply = self.cut_after.into_iter().fold(reply, Reply::cut_after);
        reply = self.reset_after.into_iter().fold(reply, Reply::reset_after);
        Ok(self.stall_after.into_iter().fold(reply, Reply::stall_after))
    }

    /// A key that another one makes meaningless is a mistake.
    fn refuse_contradictions(&self) -> Result<(), String> {
        let endings = [
            ("cut_after", self.cut_after.is_some()),
            ("reset_after", self.reset_after.is_some()),
            ("stall_after", self.stall_after.is_some()),
        ];
        let canned = [
            ("text", self.text.is_some()),
            ("events", self.events.is_some()),
            ("error", self.error.is_some()),
        ];
        let http = [
            ("status", self.status.is_some()),
            ("headers", !self.headers.is_empty()),
            ("gap", !self.gap.is_zero()),
            ("first_gap", !self.first_gap.is_zero()),
        ];
        let content = [
            ("fault", self.fault.is_some()),
            ("raw", self.raw.is_some()),
            ("body", self.body.is_some()),
            ("chunks", self.chunks.is_some()),
        ];
        one_of(&given(&endings))?;
        let content = given(&content);
        one_of(&content)?;
        let Some(content) = content.first() else {
            return self.refuse_wrong_half();
        };
        let mut idle = given(&canned);
        if matches!(*content, "fault" | "raw") {
            idle.extend(given(&http));
            idle.extend(given(&endings));
        }
        idle.first().map_or(Ok(()), |key| {
            Err(format!(
                "{key} means nothing beside {content}; leave one of them out"
            ))
        })
    }

    /// A canned answer is a good one or an error, by its status.
    fn refuse_wrong_half(&self) -> Result<(), String> {
        let good = self.status.unwrap_or(200) < 400;
        if good && self.error.is_some() {
            return Err("error needs a status of 400 or above".to_owned());
        }
        if !good && (self.text.is_some() || self.events.is_some()) {
            return Err("text and events need a status below 400".to_owned());
        }
        Ok(())
    }
}

fn given(keys: &[(&'static str, bool)]) -> Vec<&'static str> {
    keys.iter()
        .filter(|(_, given)| *given)
        .map(|(key, _)| *key)
        .collect()
}

fn one_of(keys: &[&str]) -> Result<(), String> {
    match keys {
        [first, second, ..] => Err(format!(
            "{first} and {second} exclude each other; leave one of them out"
        )),
        _ => Ok(()),
    }
}
