//! `Exchange`: an exchange in plain parts, as a log or another language has it, and the verdict on it.

use std::time::SystemTime;

use fuseline_llm::{
    Answer, Body, Classifier, Ending, Event, Fault, Head, Operation, Transcript, Verdict,
};

use crate::verdict::wall;

/// An exchange as far as it came, in plain parts. Its default is an answer of which nothing is known.
///
/// ```
/// use fuseline::{Exchange, Kind};
///
/// let exchange = Exchange {
///     status: Some(429),
///     headers: &[("retry-after", "5")],
///     ..Exchange::default()
/// };
/// assert_eq!(exchange.verdict(None).kind, Some(Kind::RateLimit));
/// ```
#[derive(Clone, Copy, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that callers write down"
)]
pub struct Exchange<'a> {
    /// Whose rules beside the common ones, such as `openai`; empty where that is not known.
    pub provider: &'a str,
    /// Whether a model was asked for an answer: only then is a good answer looked into.
    pub asks: bool,
    /// The HTTP status, if an answer came.
    pub status: Option<u16>,
    /// Names and values.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body, where it was read.
    pub body: Option<&'a [u8]>,
    /// In the place of a body the events of a stream, names and data.
    pub events: Option<&'a [(&'a str, &'a str)]>,
    /// What happened on the wire.
    pub fault: Option<Fault>,
    /// Whether the caller left; what happened on the wire is then his doing.
    pub has_left: bool,
}

impl Exchange<'_> {
    /// The verdict on it by the rules that ship with the crate. `at` is what time it is, for hints that are dates: now, unless
    /// given.
    pub fn verdict(&self, at: Option<SystemTime>) -> Verdict {
        let transcript = self.events.map(|events| {
            let mut transcript = Transcript::default();
            for (name, data) in events {
                transcript.note(&Event { name, data });
            }
            transcript
        });
        let answer = Answer {
            provider: self.provider,
            operation: if self.asks {
                Operation::Create
            } else {
                Operation::Other
            },
            head: self.status.map(|status| Head::new(status, &self.headers)),
            body: match (&transcript, self.body) {
                (Some(transcript), _) => Body::Stream(transcript),
                (None, Some(body)) => Body::Whole(body),
                (None, None) => Body::Unread,
            },
            ending: match self.fault {
                _ if self.has_left => Ending::Left,
                Some(fault) => Ending::Broken(fault),
                None => Ending::Complete,
            },
        };
        Classifier::builtin().classify(&answer, at.unwrap_or_else(wall))
    }
}

/// Headers and bodies may hold secrets.
impl std::fmt::Debug for Exchange<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exchange")
            .field("provider", &self.provider)
            .field("status", &self.status)
            .field("fault", &self.fault)
            .finish_non_exhaustive()
    }
}
