//! `Line`: a connection to Redis that is made when it is needed.
//!
//! Blocking, with short limits. A connection on which anything went wrong is thrown away, for an answer that comes late
//! would be taken for that of the next question.

use std::time::Duration;

use redis::{Client, Connection, ErrorKind, RedisError};

use crate::fleet::FleetError;

/// How long a connection may take, with TLS.
const CONNECT: Duration = Duration::from_millis(500);

/// The way to one server.
pub(crate) struct Line {
    client: Client,
    connection: Option<Connection>,
    answer: Duration,
}

impl Line {
    /// A way to the server with this address, which has so long for each answer.
    pub(crate) fn new(url: &str, answer: Duration) -> Result<Self, FleetError> {
        Ok(Self {
            client: Client::open(url).map_err(|_| FleetError::Address)?,
            connection: None,
            answer,
        })
    }

    /// Asks something.
    pub(crate) fn run<T>(
        &mut self,
        ask: impl FnOnce(&mut Connection) -> Result<T, RedisError>,
    ) -> Result<T, FleetError> {
        let told = self.connected().and_then(|mut connection| {
            let told = ask(&mut connection)?;
            self.connection = Some(connection);
            Ok(told)
        });
        // The client's own words on a connection name no address; the server's may name a key, never a secret.
        told.map_err(|error| match error.kind() {
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

    fn connected(&mut self) -> Result<Connection, RedisError> {
        if let Some(connection) = self.connection.take() {
            return Ok(connection);
        }
        let connection = self.client.get_connection_with_timeout(CONNECT)?;
        connection.set_read_timeout(Some(self.answer))?;
        connection.set_write_timeout(Some(self.answer))?;
        Ok(connection)
    }
}
