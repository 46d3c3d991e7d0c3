//! `GET /events`: transitions as they happen, as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::sse::{Event as Message, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::refusal;
use crate::observe::Feed;
use crate::view::Event;

/// Who may listen at once.
const MAX_LISTENERS: usize = 64;

/// The feed and the seats for its listeners.
pub(super) struct Seats {
    feed: Feed,
    free: Arc<Semaphore>,
}

struct Listener {
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

    /// One listener's stream: a comment at once, then each transition.
    pub(super) fn listen(&self) -> Response {
        let Ok(seat) = Arc::clone(&self.free).try_acquire_owned() else {
            let why =
                format!("{MAX_LISTENERS} listen to events already; close one of the connections");
            return refusal(StatusCode::SERVICE_UNAVAILABLE, &why);
        };
        let listener = Listener {
            events: self.feed.listen(),
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

impl Listener {
    async fn next(&mut self) -> Option<Message> {
        if !self.is_greeted {
            self.is_greeted = true;
            return Some(Message::default().comment("listening"));
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
