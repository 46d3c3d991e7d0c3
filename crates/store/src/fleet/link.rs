//! The way to Redis: one connection, two scripts, everything of a turn in one pipeline, in the fleet's own thread.

use std::time::Duration;

use fuseline_core::{ScopeName, State};
use redis::{ErrorKind, Pipeline, Script, ServerErrorKind};

use super::error::FleetError;
use super::message::{Ask, Record, Reply, Request, Weight};
use super::turn::{Answers, Index, Present, Server, Turn};
use crate::line::Line;

/// How long the server may take for a turn.
const ANSWER: Duration = Duration::from_millis(50);

/// A Redis server that a fleet shares.
pub(crate) struct Link {
    line: Line,
    prefix: String,
    me: String,
    exchange: Script,
    index: Script,
}

impl Link {
    pub(crate) fn new(url: &str, prefix: &str, me: &str) -> Result<Self, FleetError> {
        Ok(Self {
            line: Line::new(url, ANSWER)?,
            prefix: prefix.to_owned(),
            me: me.to_owned(),
            exchange: Script::new(include_str!("exchange.lua")),
            index: Script::new(include_str!("index.lua")),
        })
    }

    /// One pipeline; where the server has forgotten a script, once more with the scripts themselves.
    fn run(&mut self, turn: &Turn) -> Result<Vec<redis::Value>, FleetError> {
        let pipeline = self.pipeline(turn);
        let (exchange, index) = (&self.exchange, &self.index);
        self.line
            .run(|connection| match pipeline.query(connection) {
                Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                    exchange.load(connection)?;
                    index.load(connection)?;
                    pipeline.query(connection)
                }
                other => other,
            })
    }

    fn pipeline(&self, turn: &Turn) -> Pipeline {
        let mut pipeline = Pipeline::new();
        for request in &turn.requests {
            let mut call =
                self.exchange
                    .key(format!("{}:{{{}}}", self.prefix, spelled(&request.name)));
            for argument in arguments(&self.me, request) {
                call.arg(argument);
            }
            pipeline.invoke_script(&call);
        }
        if let Some(Index { look_back, names }) = &turn.index {
            // One tag, so that both lie together in a cluster.
            let mut call = self
                .index
                .key(format!("{}:{{fleet}}:breakers", self.prefix));
            call.key(format!("{}:{{fleet}}:replicas", self.prefix));
            call.arg(&self.me).arg(look_back);
            for name in names {
                call.arg(spelled(name));
            }
            pipeline.invoke_script(&call);
        }
        pipeline
    }
}

impl Server for Link {
    fn turn(&mut self, turn: &Turn) -> Result<Answers, FleetError> {
        let values = self.run(turn)?;
        let understood = understand(turn, values);
        if understood.is_none() {
            self.line.hang_up();
        }
        understood.ok_or(FleetError::Garbled)
    }
}

fn understand(turn: &Turn, values: Vec<redis::Value>) -> Option<Answers> {
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

fn arguments(me: &str, request: &Request) -> [String; 13] {
    let text = |number: u64| number.to_string();
    let [version, state, until, body, token, command] = match &request.offer {
        None => Default::default(),
        Some(offer) => [
            text(offer.version),
            offer.record.state.as_str().to_owned(),
            text(offer.record.until),
            serde_json::to_string(&offer.record).unwrap_or_default(),
            text(offer.token),
            text(u64::from(offer.weight == Weight::Command)),
        ],
    };
    let (verb, token_asked, length, good) = match request.ask {
        Ask::Nothing => ("", 0, 0, 0),
        Ask::Want { seen, length } => ("want", seen, length, 0),
        Ask::Keep {
            token,
            length,
            good,
        } => ("keep", token, length, good),
        Ask::Back { token, good } => ("back", token, 0, good),
    };
    [
        me.to_owned(),
        text(request.sent),
        request.counts.clone(),
        version,
        state,
        until,
        body,
        token,
        command,
        verb.to_owned(),
        text(token_asked),
        text(length),
        good.to_string(),
    ]
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
