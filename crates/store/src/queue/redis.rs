//! `RedisQueue`: calls that wait, on the server that a fleet shares: any replica sends them, any gives out the result.

use core::fmt;
use std::time::Duration;

use redis::{Cmd, FromRedisValue, Script, Value};

use super::{
    Digest, Found, Lease, NewCall, Outlook, PATIENCE, Queue, QueueConfig, QueueError, ROW, Sent,
    Stage, Submitted, Taken, millis,
};
use crate::fleet::{FleetConfig, FleetError};
use crate::line::Line;

/// How long the server may take. Requests may be long, and nobody's call waits but the one that is queued.
const ANSWER: Duration = Duration::from_secs(2);

/// What is kept, one key each; one tag, so that all lie together in a cluster.
const KEYS: [&str; 7] = [
    "calls", "requests", "results", "order", "ends", "names", "sums",
];

/// Calls on a server. As durable as the server is: see [`Queue::is_durable`].
///
/// ```no_run
/// use std::time::Duration;
///
/// use fuseline_store::{FleetConfig, Queue as _, QueueConfig, RedisQueue};
///
/// let fleet = FleetConfig {
///     url: "redis://127.0.0.1:6379".to_owned(),
///     authorities: None,
///     prefix: "fuseline".to_owned(),
///     replica: 0x5eed, // nothing to a queue
/// };
/// let config = QueueConfig {
///     max_calls: 1_000,
///     max_bytes: 64 << 20,
///     expires: Duration::from_secs(24 * 3_600),
///     ttl: Duration::from_secs(24 * 3_600),
///     lease: Duration::from_secs(60),
///     lane_places: 1,
/// };
/// let mut queue = RedisQueue::new(&fleet, config)?;
/// println!("{} calls wait", queue.look(0)?.waiting);
/// # Ok::<(), fuseline_store::QueueError>(())
/// ```
pub struct RedisQueue {
    line: Line,
    prefix: String,
    script: Script,
    config: QueueConfig,
    /// Whether the server's clock holds; tests bring their own.
    goes_by_server: bool,
}

impl fmt::Debug for RedisQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisQueue")
            .field("prefix", &self.prefix)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl RedisQueue {
    /// A queue where this fleet meets. Needs no server to be there yet.
    ///
    /// # Errors
    /// The address is none of Redis, or the authorities are none.
    pub fn new(fleet: &FleetConfig, config: QueueConfig) -> Result<Self, FleetError> {
        Ok(Self {
            line: Line::new(fleet, ANSWER)?,
            prefix: fleet.prefix.clone(),
            script: Script::new(include_str!("queue.lua")),
            config,
            goes_by_server: true,
        })
    }

    /// The same by the caller's clock, so that time can pass in tests.
    #[cfg(test)]
    pub(crate) fn by_given_time(mut self) -> Self {
        self.goes_by_server = false;
        self
    }

    fn ask(&mut self, now: u64, verb: &str, words: &[&[u8]]) -> Result<Told, FleetError> {
        let call = self.call(now, verb, words);
        let told = self.line.carry_out(&[call], &[&self.script])?.pop();
        let told: Option<Vec<Value>> = told.and_then(|told| redis::from_redis_value(told).ok());
        if told.is_none() {
            self.line.hang_up();
        }
        Ok(Told(told.ok_or(FleetError::Garbled)?.into_iter()))
    }

    fn call(&self, now: u64, verb: &str, words: &[&[u8]]) -> Cmd {
        let mut call = redis::cmd("EVALSHA");
        call.arg(self.script.get_hash()).arg(KEYS.len());
        for key in KEYS {
            call.arg(format!("{}:{{queue}}:{key}", self.prefix));
        }
        let now = (!self.goes_by_server).then_some(now);
        call.arg(now.map_or_else(String::new, |now| now.to_string()));
        let config = &self.config;
        for number in [
            config.max_calls,
            config.max_bytes,
            millis(config.expires),
            millis(config.ttl),
            millis(config.lease),
            config.lane_places.into(),
            ROW,
            PATIENCE.into(),
        ] {
            call.arg(number);
        }
        call.arg(verb);
        for word in words {
            call.arg(*word);
        }
        call
    }

    /// Whether the verb did anything.
    fn did(&mut self, now: u64, verb: &str, words: &[&[u8]]) -> Result<bool, QueueError> {
        let mut told = self.ask(now, verb, words)?;
        Ok(told.next::<u8>()? == 1)
    }
}

impl Queue for RedisQueue {
    fn submit(&mut self, call: &NewCall, now: u64) -> Result<Submitted, QueueError> {
        let name = call.name.as_ref().map(hex).unwrap_or_default();
        let mut told = self.ask(
            now,
            "submit",
            &[
                call.id.as_bytes(),
                call.lane.as_bytes(),
                hex(&call.tenant).as_bytes(),
                name.as_bytes(),
                &call.request,
            ],
        )?;
        match told.next::<String>()?.as_str() {
            "kept" => Ok(Submitted::Kept),
            "known" => Ok(Submitted::Known(told.next()?)),
            "full" => Ok(Submitted::Full),
            _ => Err(FleetError::Garbled.into()),
        }
    }

    fn look(&mut self, now: u64) -> Result<Outlook, QueueError> {
        let mut told = self.ask(now, "look", &[])?;
        Ok(Outlook {
            waiting: told.next()?,
            bytes: told.next()?,
            expired: told.next()?,
            lanes: told.next()?,
        })
    }

    fn take(&mut self, lane: &str, now: u64) -> Result<Option<Taken>, QueueError> {
        let mut told = self.ask(now, "take", &[lane.as_bytes()])?;
        if told.is_empty() {
            return Ok(None);
        }
        let lease = Lease {
            id: told.next()?,
            token: told.next()?,
        };
        Ok(Some(Taken {
            lease,
            request: told.next()?,
            sends: told.next()?,
            strikes: told.next()?,
        }))
    }

    fn keep(&mut self, lease: &Lease, now: u64) -> Result<bool, QueueError> {
        let token = lease.token.to_string();
        self.did(now, "keep", &[lease.id.as_bytes(), token.as_bytes()])
    }

    fn give_back(&mut self, lease: &Lease, how: Sent, now: u64) -> Result<bool, QueueError> {
        let token = lease.token.to_string();
        let flag = |is_so| if is_so { &b"1"[..] } else { b"0" };
        let words = [
            lease.id.as_bytes(),
            token.as_bytes(),
            flag(how == Sent::NotAtAll),
            flag(how == Sent::InVain),
        ];
        self.did(now, "give_back", &words)
    }

    fn finish(&mut self, id: &str, result: &[u8], now: u64) -> Result<bool, QueueError> {
        self.did(now, "finish", &[id.as_bytes(), result])
    }

    fn find(&mut self, id: &str, tenant: &Digest, now: u64) -> Result<Option<Found>, QueueError> {
        let mut told = self.ask(now, "find", &[id.as_bytes(), hex(tenant).as_bytes()])?;
        if told.is_empty() {
            return Ok(None);
        }
        let state: String = told.next()?;
        let (sends, ends_ms, ahead) = (told.next()?, told.next()?, told.next()?);
        let stage = match state.as_str() {
            "done" => Stage::Done {
                result: told.next()?,
            },
            "expired" => Stage::Expired,
            "sending" => Stage::Sending,
            _ => Stage::Waiting { ahead },
        };
        Ok(Some(Found {
            stage,
            sends,
            ends_ms,
        }))
    }

    fn remove(&mut self, id: &str, tenant: &Digest, now: u64) -> Result<bool, QueueError> {
        self.did(now, "remove", &[id.as_bytes(), hex(tenant).as_bytes()])
    }

    fn is_durable(&mut self) -> Result<bool, QueueError> {
        self.did(0, "is_durable", &[])
    }
}

/// What the script has answered, word by word.
struct Told(std::vec::IntoIter<Value>);

impl Told {
    fn is_empty(&self) -> bool {
        self.0.as_slice().is_empty()
    }

    fn next<T: FromRedisValue>(&mut self) -> Result<T, FleetError> {
        let word = self.0.next().ok_or(FleetError::Garbled)?;
        redis::from_redis_value(word).map_err(|_| FleetError::Garbled)
    }
}

fn hex(digest: &Digest) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
