//! From a reply and a request to an answer: a head, and the steps its body takes.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::dialect::{self, Piece, Role};
use crate::reply::{Content, Ending, Reply};
use crate::request::Facts;

const TEXT: &str = "Hello from the mock provider.";

/// What a request gets.
#[derive(Debug)]
pub(crate) enum Answer {
    Http {
        status: StatusCode,
        headers: HeaderMap,
        steps: VecDeque<Step>,
    },
    HangUp(HangUp),
    Stall,
}

/// How a connection ends without a proper answer.
#[derive(Debug)]
pub(crate) enum HangUp {
    Close,
    Reset,
    /// After these bytes.
    Raw(Bytes),
}

/// One thing that a body does.
#[derive(Debug)]
pub(crate) enum Step {
    Send(Bytes),
    Wait(Duration),
    /// Lets what was sent reach the socket before the connection breaks.
    Flush,
    Break(HangUp),
    Stall,
}

impl Answer {
    pub(crate) fn new(reply: &Reply, facts: &Facts) -> Self {
        match &reply.content {
            Content::Close => Self::HangUp(HangUp::Close),
            Content::Reset => Self::HangUp(HangUp::Reset),
            Content::Raw(bytes) => Self::HangUp(HangUp::Raw(bytes.clone())),
            Content::Stall => Self::Stall,
            Content::Body(body) => Self::plain(reply, facts, body.clone()),
            Content::Chunks(chunks) => {
                let content = |bytes: &Bytes| Piece {
                    bytes: bytes.clone(),
                    role: Role::Content,
                };
                Self::streamed(reply, facts, chunks.iter().map(content).collect())
            }
            Content::Canned if reply.status >= 400 => {
                let error = dialect::error(facts, reply.status, &reply.error);
                Self::plain(reply, facts, error.to_string().into())
            }
            Content::Canned => {
                let words = words(reply);
                if facts.stream && facts.endpoint.streams() {
                    Self::streamed(reply, facts, dialect::stream(facts, &words))
                } else {
                    Self::plain(
                        reply,
                        facts,
                        dialect::plain(facts, &words).to_string().into(),
                    )
                }
            }
        }
    }

    fn plain(reply: &Reply, facts: &Facts, body: Bytes) -> Self {
        let length = body.len();
        let whole =
            reply.ending == Ending::Complete && reply.gap.is_zero() && reply.first_gap.is_zero();
        let steps = if whole {
            VecDeque::from([Step::Send(body)])
        } else {
            let mut first = body;
            let second = first.split_off(length.div_ceil(2));
            let half = |bytes| Piece {
                bytes,
                role: Role::Content,
            };
            let ending = match reply.ending {
                Ending::Complete => Ending::Complete,
                Ending::Cut(sent) => Ending::Cut(sent.min(1)),
                Ending::Reset(sent) => Ending::Reset(sent.min(1)),
                Ending::Stall(sent) => Ending::Stall(sent.min(1)),
            };
            play(reply, ending, vec![half(first), half(second)])
        };
        Self::http(reply, facts, "application/json", Some(length), steps)
    }

    fn streamed(reply: &Reply, facts: &Facts, pieces: Vec<Piece>) -> Self {
        let steps = play(reply, reply.ending, pieces);
        Self::http(
            reply,
            facts,
            "text/event-stream; charset=utf-8",
            None,
            steps,
        )
    }

    fn http(
        reply: &Reply,
        facts: &Facts,
        kind: &str,
        length: Option<usize>,
        mut steps: VecDeque<Step>,
    ) -> Self {
        let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
        let mut headers = HeaderMap::new();
        let (id_name, id) = dialect::request_id(facts);
        let own = [(CONTENT_TYPE.as_str(), kind), (id_name, id.as_str())];
        let replaced = |name: &str| {
            reply
                .headers
                .iter()
                .any(|(given, _)| given.eq_ignore_ascii_case(name))
        };
        let own = own.into_iter().filter(|(name, _)| !replaced(name));
        let given = reply
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in own.chain(given) {
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value))
            {
                headers.append(name, value);
            }
        }
        if matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
            steps.clear();
        } else if let Some(length) = length {
            headers.insert(CONTENT_LENGTH, length.into());
        }
        if facts.head_only {
            steps.clear();
        }
        Self::Http {
            status,
            headers,
            steps,
        }
    }
}

/// The text as one piece per event; later pieces bring their own space.
fn words(reply: &Reply) -> Vec<String> {
    let text = reply.text.as_deref().unwrap_or(TEXT);
    if text.is_empty() {
        return Vec::new();
    }
    let words: Vec<_> = text.split(' ').collect();
    let count = reply.events.unwrap_or(words.len());
    let spaced = |(index, word): (usize, &&str)| {
        if index == 0 {
            (*word).to_owned()
        } else {
            format!(" {word}")
        }
    };
    words
        .iter()
        .cycle()
        .take(count)
        .enumerate()
        .map(spaced)
        .collect()
}

/// Puts gaps between content events and the ending where it belongs: before the first event, of whatever role, that comes
/// after the last content event allowed.
fn play(reply: &Reply, ending: Ending, pieces: Vec<Piece>) -> VecDeque<Step> {
    let (limit, last) = match ending {
        Ending::Complete => (usize::MAX, None),
        Ending::Cut(sent) => (sent, Some(Step::Break(HangUp::Close))),
        Ending::Reset(sent) => (sent, Some(Step::Break(HangUp::Reset))),
        Ending::Stall(sent) => (sent, Some(Step::Stall)),
    };
    let mut steps = VecDeque::with_capacity(pieces.len() + 2);
    let mut sent = 0;
    for piece in pieces {
        if sent >= limit && (sent > 0 || piece.role == Role::Content) {
            break;
        }
        if piece.role == Role::Content {
            let gap = if sent == 0 {
                reply.first_gap
            } else {
                reply.gap
            };
            if !gap.is_zero() {
                steps.push_back(Step::Wait(gap));
            }
            sent += 1;
        }
        if !piece.bytes.is_empty() {
            steps.push_back(Step::Send(piece.bytes));
        }
    }
    if let Some(last) = last {
        steps.extend([Step::Flush, last]);
    }
    steps
}
