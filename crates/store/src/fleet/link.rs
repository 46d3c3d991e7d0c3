//! The way of a turn to Redis and back: two scripts, everything in one pipeline, in the fleet's own thread.

use std::time::Duration;

use super::FleetConfig;
use super::error::FleetError;
use super::turn::{Answers, Server, Turn};
use super::wire::{Wire, understand};
use crate::line::Line;

/// How long the server may take for an answer.
const ANSWER: Duration = Duration::from_millis(50);

/// The Redis that a fleet shares.
pub(crate) struct Link {
    line: Line,
    wire: Wire,
}

impl Link {
    pub(crate) fn new(config: &FleetConfig) -> Result<Self, FleetError> {
        Ok(Self {
            line: Line::new(config, ANSWER)?,
            wire: Wire::new(&config.prefix, &config.name()),
        })
    }
}

impl Server for Link {
    fn turn(&mut self, turn: &Turn) -> Result<Answers, FleetError> {
        let calls = self.wire.calls(turn);
        let values = self.line.carry_out(&calls, &self.wire.scripts())?;
        let understood = understand(turn, values);
        if understood.is_none() {
            self.line.hang_up();
        }
        understood.ok_or(FleetError::Garbled)
    }
}
