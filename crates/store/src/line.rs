//! `Line`: a connection to Redis that is made when it is needed, along whichever way leads there.
//!
//! Blocking, with short limits: whoever uses it does so in a thread of its own. A connection on which anything went wrong is
//! thrown away, for an answer that comes late would be taken for that of the next question.

mod ways;

use std::time::Duration;

use redis::{Cmd, ErrorKind, RedisError, Script, ServerErrorKind, Value};

use crate::fleet::{FleetConfig, FleetError};
use ways::{Connection, Ways};

/// The way to one server, the first of several that answers, or a cluster.
pub(crate) struct Line {
    ways: Ways,
    connection: Option<Connection>,
}

impl Line {
    /// A line to where a fleet meets, which has so long for each answer.
    pub(crate) fn new(fleet: &FleetConfig, answer: Duration) -> Result<Self, FleetError> {
        Ok(Self {
            ways: Ways::new(&fleet.url, fleet.authorities.as_deref(), answer)?,
            connection: None,
        })
    }

    /// Has these calls of scripts carried out; what they answer, in order.
    pub(crate) fn carry_out(
        &mut self,
        calls: &[Cmd],
        scripts: &[&Script],
    ) -> Result<Vec<Value>, FleetError> {
        // The client's own words on a connection name no address; the server's may name a key, never a secret.
        self.run(calls, scripts)
            .map_err(|error| match error.kind() {
                ErrorKind::Io => FleetError::Away(error.category().to_owned()),
                _ => FleetError::Refused(error.code().map_or_else(
                    || error.category().to_owned(),
                    |code| format!("{} {}", code, error.detail().unwrap_or_default()),
                )),
            })
    }

    /// Trusts the connection no more.
    pub(crate) fn hang_up(&mut self) {
        self.connection = None;
    }

    /// A spare turns away what writes, so that the next server can be asked in its place.
    fn run(&mut self, calls: &[Cmd], scripts: &[&Script]) -> Result<Vec<Value>, RedisError> {
        let mut left = self.ways.count();
        loop {
            left = left.saturating_sub(1);
            match self.try_run(calls, scripts) {
                Err(error) if error.is_cluster_error() => {
                    self.ways.enter_cluster();
                    return self.try_run(calls, scripts);
                }
                Err(error) if error.kind() != ErrorKind::Io => {
                    self.ways.turn_away();
                    if left == 0 || !is_spare(&error) {
                        return Err(error);
                    }
                }
                other => return other,
            }
        }
    }

    fn try_run(&mut self, calls: &[Cmd], scripts: &[&Script]) -> Result<Vec<Value>, RedisError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.ways.connect()?,
        };
        let values = connection.carry_out(calls, scripts)?;
        self.connection = Some(connection);
        Ok(values)
    }
}

fn is_spare(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly)
}
