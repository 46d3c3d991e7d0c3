//! Tells events: JSON lines, or a time line with the callers of both sides next to each other.

mod look;
mod text;

use std::io::{self, IsTerminal as _, Write};
use std::time::Duration;

use super::super::timed::write_json;
use super::event::Event;
use look::Look;

/// Writes what happens.
pub(super) struct Teller<W> {
    out: W,
    form: Form,
}

/// How it is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    Json,
    Text(Look),
}

impl Form {
    /// Signs and colours for a person at a terminal, letters for a pipe.
    pub(super) fn of_stdout() -> Self {
        let asks_for_none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self::Text(match (io::stdout().is_terminal(), asks_for_none) {
            (false, _) => Look::Plain,
            (true, true) => Look::Signs,
            (true, false) => Look::Colours,
        })
    }
}

impl<W: Write> Teller<W> {
    pub(super) fn new(out: W, form: Form) -> Self {
        Self { out, form }
    }

    /// Writes what happened this long after the start.
    pub(super) fn tell(&mut self, at: Duration, event: &Event) -> io::Result<()> {
        match self.form {
            Form::Json => write_json(&mut self.out, at, event)?,
            Form::Text(look) => {
                for line in text::lines(look, at, event) {
                    writeln!(self.out, "{line}")?;
                }
            }
        }
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
