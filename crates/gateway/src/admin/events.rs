//! `GET /events`: transitions as they happen, as server-sent events, after those of the past that are asked for.

use std::convert::Infallible;
use std::sync::Arc;
use std::vec;

use axum::http::StatusCode;
use axum::response::sse::{Event as Message, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use fuseline_core::Registry;
use futures_util::stream;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::refusal;
use crate::observe::{self, Feed};
use crate::view::Event;

/// Who may listen at once.
const MAX_LISTENERS: usize = 64;
/// Most transitions of the past that a listener is told.
const MAX_PAST: usize = 1000;

/// The feed and the seats for its listeners.
pub(super) struct Seats {
    feed: Feed,
    free: Arc<Semaphore>,
}

struct Listener {
    past: vec::IntoIter<Event>,
    events: Receiver<Arc<Event>>,
    is_greeted: bool,
    _seat: OwnedSemaphorePermit,
}

impl Seats {
    pub(super) fn new(feed: Feed) -> Self {
        Self {
            feed,
            free: Arc::new(Semaphore::new(MAX_LISTENERS)),
        }
    }

    /// One listener's stream: a comment at once, then as much of the past as he asks for, then each transition. What
    /// happens in between may be told twice, and is not missed.
    pub(super) fn listen(&self, query: Option<&str>, registry: &Registry) -> Response {
        let past = match wanted(query) {
            Ok(past) => past,
            Err(why) => return refusal(StatusCode::BAD_REQUEST, &why),
        };
        let Ok(seat) = Arc::clone(&self.free).try_acquire_owned() else {
            let why =
                format!("{MAX_LISTENERS} listen to events already; close one of the connections");
            return refusal(StatusCode::SERVICE_UNAVAILABLE, &why);
        };
        let events = self.feed.listen();
        let listener = Listener {
            past: observe::past(registry, past).into_iter(),
            events,
            is_greeted: false,
            _seat: seat,
        };
        let events = stream::unfold(listener, |mut listener| async {
            let message = listener.next().await?;
            Some((Ok::<_, Infallible>(message), listener))
        });
        Sse::new(events)
            .keep_alive(KeepAlive::default())
            .into_response()
    }
}

/// How much of the past a query asks for.
fn wanted(query: Option<&str>) -> Result<usize, String> {
    let Some(past) =
        query.and_then(|query| query.split('&').find_map(|part| part.strip_prefix("past=")))
    else {
        return Ok(0);
    };
    let wanted = past.parse().ok().filter(|past| *past <= MAX_PAST);
    wanted.ok_or_else(|| {
        format!("past = {past:?} is no number of transitions; write one of 0 to {MAX_PAST}")
    })
}

impl Listener {
    async fn next(&mut self) -> Option<Message> {
        if !self.is_greeted {
            self.is_greeted = true;
            return Some(Message::default().comment("listening"));
        }
        if let Some(event) = self.past.next() {
            return Message::default().event("past").json_data(event).ok();
        }
        match self.events.recv().await {
            Ok(event) => Message::default()
                .event("transition")
                .json_data(&*event)
                .ok(),
            // What was missed stands in the breakers' histories.
            Err(RecvError::Lagged(missed)) => Some(
                Message::default()
                    .event("missed")
                    .data(format!("{{\"missed\":{missed}}}")),
            ),
            Err(RecvError::Closed) => None,
        }
    }
}
