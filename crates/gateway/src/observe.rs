//! What breakers have kept is read here and told on: to the log, the live feed and webhooks. No call
//! waits for it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuseline_core::Registry;
use fuseline_telemetry::TransitionReader;
use tokio::sync::broadcast;

use crate::live::Live;
use crate::view::Event;

/// A history keeps 20 transitions, far more than happen in this time.
const EVERY: Duration = Duration::from_millis(100);
/// Events that a slow listener may be behind before it misses some.
const BACKLOG: usize = 256;

/// Where transitions are heard as they happen. Clones are the same feed.
#[derive(Clone, Debug)]
pub(crate) struct Feed(broadcast::Sender<Arc<Event>>);

impl Default for Feed {
    fn default() -> Self {
        Self(broadcast::Sender::new(BACKLOG))
    }
}

impl Feed {
    /// Everything from now on.
    pub(crate) fn listen(&self) -> broadcast::Receiver<Arc<Event>> {
        self.0.subscribe()
    }
}

/// The latest transitions that breakers still know of, oldest first, at most so many.
pub(crate) fn past(registry: &Registry, most: usize) -> Vec<Event> {
    let known = TransitionReader::default().read(registry);
    let (now, wall) = (registry.now(), time_of_day());
    let earlier = known.len().saturating_sub(most);
    let latest = known.iter().skip(earlier);
    latest
        .map(|observed| Event::of(observed, now, wall))
        .collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "people and other systems are told the time of day"
)]
fn time_of_day() -> SystemTime {
    SystemTime::now()
}

/// Reads on and on.
pub(crate) async fn observe(live: Arc<Live>, feed: Feed) {
    let registry = live.proxy().registry().clone();
    let mut reader = TransitionReader::default();
    loop {
        tokio::time::sleep(EVERY).await;
        let news = reader.read(&registry);
        let wall = time_of_day();
        let webhooks = live.webhooks();
        for observed in &news {
            observed.log();
            let event = Arc::new(Event::of(observed, registry.now(), wall));
            webhooks.tell(observed, &event);
            // Nobody may be listening.
            let _heard = feed.0.send(event);
        }
    }
}
