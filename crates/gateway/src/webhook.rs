//! `Webhooks`: transitions posted to others. Each receiver has a queue of its own and a task that empties it; a queue that is
//! full loses news rather than making anybody wait, and says how many.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fuseline_core::State;
use fuseline_telemetry::Observed;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::Full;
use serde_json::json;
use tokio::sync::mpsc;

use crate::config::{Webhook, WebhookFormat, WebhookUrl};
use crate::proxy::Pool;
use crate::shutdown::Tasks;
use crate::view::Event;

/// News that may wait for one receiver.
const QUEUE: usize = 256;
/// How often one piece of news is sent at most.
const ATTEMPTS: u32 = 5;
/// The wait before the second attempt; it doubles from then on.
const BACKOFF: Duration = Duration::from_millis(500);
/// How long a receiver may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// All receivers.
#[derive(Debug)]
pub(crate) struct Webhooks(Vec<Queue>);

/// One receiver, and what waits for it.
#[derive(Debug)]
struct Queue {
    format: WebhookFormat,
    states: Vec<State>,
    news: mpsc::Sender<Bytes>,
    lost: Arc<AtomicU64>,
}

/// Who empties a queue.
struct Postman {
    url: WebhookUrl,
    pool: Pool,
    news: mpsc::Receiver<Bytes>,
    lost: Arc<AtomicU64>,
}

/// What became of an attempt to post.
enum Posted {
    Taken,
    /// Another attempt may do better.
    NotNow(String),
    Refused(StatusCode),
}

impl Webhooks {
    /// Starts a task for each receiver.
    pub(crate) fn start(hooks: &[Webhook], pool: &Pool, tasks: &Tasks) -> Self {
        let queues = hooks.iter().map(|hook| {
            let (sender, news) = mpsc::channel(QUEUE);
            let lost = Arc::new(AtomicU64::new(0));
            let postman = Postman {
                url: hook.url.clone(),
                pool: pool.clone(),
                news,
                lost: Arc::clone(&lost),
            };
            tasks.spawn_until_cut(postman.work());
            Queue {
                format: hook.format,
                states: hook.states.clone(),
                news: sender,
                lost,
            }
        });
        Self(queues.collect())
    }

    /// Puts a transition into the queue of everybody who wants to know of it.
    pub(crate) fn tell(&self, observed: &Observed, event: &Event) {
        let to = observed.transition.to;
        for queue in self.0.iter().filter(|queue| queue.states.contains(&to)) {
            let body = match queue.format {
                WebhookFormat::Json => serde_json::to_vec(event).unwrap_or_default(),
                WebhookFormat::Slack => json!({ "text": message(observed) })
                    .to_string()
                    .into_bytes(),
            };
            if queue.news.try_send(body.into()).is_err() {
                queue.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Postman {
    async fn work(mut self) {
        while let Some(body) = self.news.recv().await {
            let lost = self.lost.swap(0, Ordering::Relaxed);
            if lost > 0 {
                tracing::warn!(webhook = %self.url, lost, "transitions came faster than this webhook took them");
            }
            self.deliver(body).await;
        }
    }

    async fn deliver(&self, body: Bytes) {
        let mut wait = BACKOFF;
        let mut attempt = 1;
        loop {
            let why = match self.post(body.clone()).await {
                Posted::Taken => return,
                Posted::NotNow(why) if attempt < ATTEMPTS => {
                    tracing::debug!(webhook = %self.url, why, "to be posted again");
                    tokio::time::sleep(wait).await;
                    wait *= 2;
                    attempt += 1;
                    continue;
                }
                Posted::NotNow(why) => why,
                Posted::Refused(status) => format!("it answered {status}"),
            };
            return tracing::warn!(webhook = %self.url, attempts = attempt, why, "a transition could not be posted");
        }
    }

    async fn post(&self, body: Bytes) -> Posted {
        let request = Request::post(self.url.uri().clone())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("fuseline/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(body));
        let Ok(request) = request else {
            return Posted::Refused(StatusCode::BAD_REQUEST);
        };
        match tokio::time::timeout(PATIENCE, self.pool.request(request)).await {
            Ok(Ok(answer)) if answer.status().is_success() => Posted::Taken,
            Ok(Ok(answer)) => match answer.status() {
                status if may_pass(status) => Posted::NotNow(format!("it answered {status}")),
                status => Posted::Refused(status),
            },
            // Its text may hold the address.
            Ok(Err(_)) => Posted::NotNow("it cannot be reached".to_owned()),
            Err(_) => Posted::NotNow(format!("it did not answer within {PATIENCE:?}")),
        }
    }
}

fn may_pass(status: StatusCode) -> bool {
    status.is_server_error()
        || status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::REQUEST_TIMEOUT
}

/// One line for a channel. What stands in names and reasons must not become markup or a mention there.
fn message(observed: &Observed) -> String {
    let transition = &observed.transition;
    let sign = match transition.to {
        State::Open | State::ForcedOpen => ":red_circle:",
        State::Degraded | State::HalfOpen => ":large_yellow_circle:",
        State::Closed | State::ForcedClosed => ":large_green_circle:",
    };
    let after = observed.incident.map_or_else(String::new, |incident| {
        format!(" after {} s", incident.as_secs())
    });
    let name = plain(&observed.name.to_string());
    let why = plain(&transition.why.to_string());
    let (from, to) = (transition.from.as_str(), transition.to.as_str());
    format!("{sign} *{name}* is {to}{after} (was {from}): {why}")
}

fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '&' => plain.push_str("&amp;"),
            '<' => plain.push_str("&lt;"),
            '>' => plain.push_str("&gt;"),
            '*' | '`' | '~' => plain.push('\''),
            sign if sign.is_control() => plain.push(' '),
            sign => plain.push(sign),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_markup() {
        assert_eq!(
            plain("a/<!channel> & *b*\n`c`"),
            "a/&lt;!channel&gt; &amp; 'b' 'c'"
        );
    }
}
