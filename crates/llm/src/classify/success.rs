//! Success answers: good only when there is something in them to use.

use std::time::SystemTime;

use fuseline_core::{Kind, Scope};

use super::content::{self, Reading};
use super::tables::Tables;
use super::{
    Answer, Body, Classifier, Document, Ending, Event, Facts, Phase, Shape, Transcript,
    classify_end, classify_fault, left,
};
use crate::evidence::Evidence;
use crate::head::Head;
use crate::request::Operation;
use crate::stream::Usage;
use crate::verdict::Verdict;

/// Reasons to stop with which an answer may be empty and yet be all that there was to say.
const MAY_BE_EMPTY: [&str; 7] = [
    "length",
    "load",
    "max_output_tokens",
    "max_tokens",
    "model_context_window_exceeded",
    "pause_turn",
    "stop_sequence",
];

impl Classifier {
    /// The verdict on an exchange whose status is a success; notes what its answer says that it used.
    pub(super) fn success(
        &self,
        answer: &Answer<'_>,
        head: &Head<'_>,
        wall: SystemTime,
        usage: &mut Usage,
    ) -> Verdict {
        match (answer.ending, answer.operation, answer.body) {
            (_, _, Body::Stream(transcript)) => self.stream(answer, transcript, wall),
            (Ending::Left, ..) => left(Scope::Provider),
            (Ending::Broken(fault), ..) => classify_fault(fault, Phase::Body(Shape::Plain)),
            (Ending::Complete, Operation::Create, Body::Whole(body)) => {
                self.plain(answer, head, body, wall, usage)
            }
            (Ending::Complete, ..) => Verdict::success(),
        }
    }

    fn plain(
        &self,
        answer: &Answer<'_>,
        head: &Head<'_>,
        body: &[u8],
        wall: SystemTime,
        usage: &mut Usage,
    ) -> Verdict {
        if body.is_empty() {
            return classify_end(answer.operation, 0);
        }
        let verdict = if let Some(reading) = content::read(body) {
            *usage = reading.usage;
            self.reading(answer, &reading, body, wall)
        } else if let Ok(text) = std::str::from_utf8(body) {
            self.text(answer, head, text, wall, usage)
        } else {
            // Sound, or an image.
            return Verdict::success();
        };
        let tables = self.tables.as_ref();
        if verdict.is_success() && tables.is_some_and(Tables::judges_success) {
            return self.page(answer, head, body, wall);
        }
        verdict
    }

    /// What is no JSON as it came.
    fn text(
        &self,
        answer: &Answer<'_>,
        head: &Head<'_>,
        body: &str,
        wall: SystemTime,
        usage: &mut Usage,
    ) -> Verdict {
        let text = body.trim_start_matches('\u{feff}').trim();
        match text.as_bytes() {
            [] => nothing_usable(),
            json @ [b'{' | b'[', ..] => match content::read(json) {
                Some(reading) => {
                    *usage = reading.usage;
                    self.reading(answer, &reading, json, wall)
                }
                None => self.lines(answer, text, wall),
            },
            [b'd' | b'e' | b':', ..] if is_event_stream(text) => self.lines(answer, text, wall),
            [b'<', ..] => self.page(answer, head, body.as_bytes(), wall),
            _ => Verdict::success(),
        }
    }

    /// What rules say that mean success answers; good if there is none.
    fn page(&self, answer: &Answer<'_>, head: &Head<'_>, body: &[u8], wall: SystemTime) -> Verdict {
        let document = Document::read(body);
        let (status, headers) = (Some(head.status()), head.headers());
        let facts = Facts::new(answer.provider, wall, status, headers, Some(&document));
        self.by_rules(&facts).unwrap_or_else(Verdict::success)
    }

    fn reading(
        &self,
        answer: &Answer<'_>,
        reading: &Reading<'_>,
        body: &[u8],
        wall: SystemTime,
    ) -> Verdict {
        if reading.is_error {
            return self.in_band(answer.provider, "", &Document::read(body), wall);
        }
        let finish = reading.finish.as_deref().unwrap_or_default();
        match self.finish(answer, finish, wall) {
            Some(verdict) => verdict,
            None if reading.is_answer && !reading.has_content && !may_be_empty(finish) => {
                nothing_usable()
            }
            None => Verdict::success(),
        }
    }

    /// Events in the place of one body.
    fn lines(&self, answer: &Answer<'_>, text: &str, wall: SystemTime) -> Verdict {
        let mut transcript = Transcript::default();
        let mut name = "";
        for line in text.lines() {
            if let Some(event) = line.strip_prefix("event:") {
                name = event.trim();
            } else if let Some(data) = line.strip_prefix("data:") {
                transcript.note(&Event { name, data });
                name = "";
            } else if line.starts_with('{') {
                transcript.note(&Event {
                    name: "",
                    data: line,
                });
            }
        }
        if transcript.has_said_nothing() {
            return nothing_usable();
        }
        self.stream(answer, &transcript, wall)
    }

    fn stream(&self, answer: &Answer<'_>, transcript: &Transcript, wall: SystemTime) -> Verdict {
        if let Some(error) = transcript.error() {
            let document = Document::read(error.data.as_bytes());
            return self.in_band(answer.provider, &error.name, &document, wall);
        }
        let is_over = transcript.finish().is_some() || transcript.is_end();
        match answer.ending {
            Ending::Left if !is_over => return left(Scope::Model),
            Ending::Broken(fault) if !is_over => {
                return classify_fault(fault, Phase::Body(Shape::Stream));
            }
            Ending::Complete | Ending::Left | Ending::Broken(_) => {}
        }
        let finish = transcript.finish().unwrap_or_default();
        if let Some(verdict) = self.finish(answer, finish, wall) {
            return verdict;
        }
        match (is_over, transcript.has_content() || may_be_empty(finish)) {
            _ if answer.operation == Operation::Other => Verdict::success(),
            (true, true) => Verdict::success(),
            (false, _) if transcript.has_data() => {
                Verdict::failure(Kind::StreamTruncated, Evidence::NoEnd)
            }
            _ => nothing_usable(),
        }
    }

    /// What a rule says of the reason for which the model stopped.
    fn finish(&self, answer: &Answer<'_>, finish: &str, wall: SystemTime) -> Option<Verdict> {
        if !self.tables.as_ref()?.knows_finish(finish) {
            return None;
        }
        let mut facts = Facts::new(answer.provider, wall, Some(200), &super::NO_HEADERS, None);
        facts.finish = finish;
        self.by_rules(&facts)
    }
}

fn nothing_usable() -> Verdict {
    Verdict::failure(Kind::EmptyResponse, Evidence::NoContent)
}

fn may_be_empty(finish: &str) -> bool {
    MAY_BE_EMPTY
        .iter()
        .any(|reason| reason.eq_ignore_ascii_case(finish))
}

fn is_event_stream(text: &str) -> bool {
    ["data:", "event:", ":"]
        .iter()
        .any(|field| text.starts_with(field))
}
