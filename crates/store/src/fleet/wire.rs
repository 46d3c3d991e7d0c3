//! What goes over the wire: a turn as calls of the two scripts, and their answers understood.

use fuseline_core::{ScopeName, State};
use redis::{Cmd, Script};

use super::message::{Ask, Record, Reply, Request, Weight};
use super::turn::{Answers, Present, Turn};

/// The scripts, and whose breakers they are about.
pub(crate) struct Wire {
    prefix: String,
    me: String,
    exchange: Script,
    index: Script,
}

impl Wire {
    pub(crate) fn new(prefix: &str, me: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            me: me.to_owned(),
            exchange: Script::new(include_str!("exchange.lua")),
            index: Script::new(include_str!("index.lua")),
        }
    }

    /// What the calls rest on.
    pub(crate) const fn scripts(&self) -> [&Script; 2] {
        [&self.exchange, &self.index]
    }

    /// One call a request, then the index.
    pub(crate) fn calls(&self, turn: &Turn) -> Vec<Cmd> {
        let mut calls: Vec<Cmd> = turn.requests.iter().map(|one| self.exchange(one)).collect();
        if let Some(index) = &turn.index {
            // One tag, so that both lie together in a cluster.
            let mut call = redis::cmd("EVALSHA");
            call.arg(self.index.get_hash())
                .arg(2)
                .arg(format!("{}:{{fleet}}:breakers", self.prefix))
                .arg(format!("{}:{{fleet}}:replicas", self.prefix))
                .arg(&self.me)
                .arg(index.look_back);
            for name in &index.names {
                call.arg(spelled(name));
            }
            calls.push(call);
        }
        calls
    }

    fn exchange(&self, request: &Request) -> Cmd {
        let mut call = redis::cmd("EVALSHA");
        call.arg(self.exchange.get_hash())
            .arg(1)
            .arg(format!("{}:{{{}}}", self.prefix, spelled(&request.name)))
            .arg(&self.me)
            .arg(request.sent)
            .arg(&request.counts);
        match &request.offer {
            None => (0..6).for_each(|_| {
                call.arg("");
            }),
            Some(offer) => {
                call.arg(offer.version)
                    .arg(offer.record.state.as_str())
                    .arg(offer.record.until)
                    .arg(serde_json::to_string(&offer.record).unwrap_or_default())
                    .arg(offer.token)
                    .arg(u64::from(offer.weight == Weight::Command));
            }
        }
        let (verb, token, length, good) = match request.ask {
            Ask::Nothing => ("", 0, 0, 0),
            Ask::Want { seen, length } => ("want", seen, length, 0),
            Ask::Keep {
                token,
                length,
                good,
            } => ("keep", token, length, good),
            Ask::Back { token, good } => ("back", token, 0, good),
        };
        call.arg(verb).arg(token).arg(length).arg(good);
        call
    }
}

/// What a turn was answered; none where that is no answer of the scripts.
pub(crate) fn understand(turn: &Turn, values: Vec<redis::Value>) -> Option<Answers> {
    let mut values = values.into_iter();
    let mut replies = Vec::with_capacity(turn.requests.len());
    for value in values.by_ref().take(turn.requests.len()) {
        replies.push(reply(redis::from_redis_value(value).ok()?)?);
    }
    let present = match &turn.index {
        None => None,
        Some(_) => {
            let (now, alive, names): (u64, u64, Vec<String>) =
                redis::from_redis_value(values.next()?).ok()?;
            let names = names.iter().filter_map(|name| named(name)).collect();
            Some(Present { now, alive, names })
        }
    };
    (replies.len() == turn.requests.len()).then_some(Answers { replies, present })
}

/// A breaker's name as the server has it: readable, and never ambiguous.
fn spelled(name: &ScopeName) -> String {
    let part = name.part();
    serde_json::json!([name.scope().as_str(), name.provider_name(), part]).to_string()
}

fn named(text: &str) -> Option<ScopeName> {
    let (scope, provider, part): (String, String, Option<String>) =
        serde_json::from_str(text).ok()?;
    match (scope.as_str(), part) {
        ("provider", None) => Some(ScopeName::provider(&provider)),
        ("model", Some(model)) => Some(ScopeName::model(&provider, &model)),
        ("key", Some(key)) => Some(ScopeName::key(&provider, &key)),
        _ => None,
    }
}

fn reply(told: Vec<String>) -> Option<Reply> {
    let mut told = told.into_iter();
    let number = |text: Option<String>| text?.parse::<u64>().ok();
    let now = number(told.next())?;
    let taken = told.next()? == "1";
    let version = number(told.next())?;
    let (state, until, body) = (told.next()?, number(told.next())?, told.next()?);
    let record = match version {
        0 => None,
        _ => {
            let record: Record = serde_json::from_str(&body).ok()?;
            let state = State::ALL
                .into_iter()
                .find(|known| known.as_str() == state)?;
            Some(Record {
                state,
                until,
                ..record
            })
        }
    };
    let token = number(told.next())?;
    let (holder, ends) = (told.next()?, number(told.next())?);
    let good = u32::try_from(number(told.next())?).ok()?;
    let mut counts = Vec::new();
    while let (Some(who), Some(at), Some(text)) = (told.next(), told.next(), told.next()) {
        counts.push((who, at.parse().ok()?, text));
    }
    counts.sort_unstable();
    Some(Reply {
        now,
        taken,
        version,
        record,
        token,
        holder: (!holder.is_empty()).then_some((holder, ends)),
        good,
        counts,
    })
}
