//! The way of a turn to Redis and back: one connection, two scripts, everything in one pipeline.
//!
//! Blocking, with short limits, in the fleet's own thread. A connection on which anything went wrong is thrown away, for an
//! answer that comes late would be taken for that of the next question.

use redis::{ErrorKind, RedisError, Value};

use super::FleetConfig;
use super::error::FleetError;
use super::turn::{Answers, Server, Turn};
use super::way::{Connection, Ways};
use super::wire::{Wire, understand};

/// The Redis that a fleet shares: one server, the first of several that answers, or a cluster.
pub(crate) struct Link {
    ways: Ways,
    wire: Wire,
    connection: Option<Connection>,
}

impl Link {
    pub(crate) fn new(config: &FleetConfig) -> Result<Self, FleetError> {
        Ok(Self {
            ways: Ways::new(&config.url, config.authorities.as_deref())?,
            wire: Wire::new(&config.prefix, &config.name()),
            connection: None,
        })
    }

    fn run(&mut self, turn: &Turn) -> Result<Vec<Value>, RedisError> {
        match self.try_run(turn) {
            Err(error) if error.is_cluster_error() => {
                self.ways.enter_cluster();
                self.try_run(turn)
            }
            Err(error) if error.kind() != ErrorKind::Io => {
                self.ways.turn_away();
                Err(error)
            }
            other => other,
        }
    }

    fn try_run(&mut self, turn: &Turn) -> Result<Vec<Value>, RedisError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.ways.connect()?,
        };
        let values = connection.carry_out(self.wire.calls(turn), self.wire.scripts())?;
        self.connection = Some(connection);
        Ok(values)
    }
}

impl Server for Link {
    fn turn(&mut self, turn: &Turn) -> Result<Answers, FleetError> {
        let values = self.run(turn).map_err(|error| {
            // The client's own words on a connection name no address; the server's may name a key, never a secret.
            match error.kind() {
                ErrorKind::Io => FleetError::Away(error.category().to_owned()),
                _ => FleetError::Refused(error.code().map_or_else(
                    || error.category().to_owned(),
                    |code| format!("{} {}", code, error.detail().unwrap_or_default()),
                )),
            }
        })?;
        let understood = understand(turn, values);
        if understood.is_none() {
            self.connection = None;
        }
        understood.ok_or(FleetError::Garbled)
    }
}
