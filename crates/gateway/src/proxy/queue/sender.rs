//! Sends the calls that wait, in their order, as soon as a breaker of their targets lets them pass.
//!
//! The queue says which lanes have a call; a lane whose breakers refuse is left alone, so that nothing is taken that could
//! not be sent. What is taken goes the way of every call. What becomes of it:
//!
//! | its end | then |
//! |---|---|
//! | a good answer, or one that is its caller's to mend | is its result |
//! | no target took it after all | it goes back, as if nothing had been |
//! | it failed as a probe, or because our own network is down | it goes back: that says nothing of the call |
//! | it failed although its circuit was closed | it goes back with a strike; the last of `attempts` is its result |
//! | this process ends, or is killed | its lease ends, and it is sent again under the same `Idempotency-Key` |

mod delivery;
mod rests;

use std::sync::Arc;
use std::time::Duration;

use fuseline_core::Tick;
use fuseline_llm::{Admission, Owner, Target};
use fuseline_store::Taken;
use tokio::sync::Semaphore;

use super::super::Proxy;
use super::super::upstream::Keys;
use super::super::way::NO_MODEL;
use crate::live::Live;
use crate::queue::{Desk, Held};
use crate::shutdown::Tasks;
use delivery::Delivery;
use rests::Rests;

/// How often is looked whether a breaker lets calls pass.
const EVERY: Duration = Duration::from_millis(250);
/// Calls that are sent at once, over all lanes.
const AT_ONCE: usize = 16;

/// Sends until the gateway drains.
pub(crate) async fn send_on(live: Arc<Live>, tasks: Tasks) {
    let Some(desk) = live.proxy().desk().cloned() else {
        return;
    };
    let sender = Sender {
        live,
        desk,
        places: Arc::new(Semaphore::new(AT_ONCE)),
        rests: Arc::default(),
    };
    while !tasks.is_draining() {
        sender.turn(&tasks).await;
        tokio::select! {
            () = tasks.draining() => return,
            () = sender.desk.news() => {}
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

struct Sender {
    live: Arc<Live>,
    desk: Desk,
    places: Arc<Semaphore>,
    rests: Arc<Rests>,
}

impl Sender {
    /// Begins to send what can be sent, one call a lane.
    async fn turn(&self, tasks: &Tasks) {
        // What fails is told by the desk.
        let Ok(outlook) = self.desk.look().await else {
            return;
        };
        let proxy = self.live.proxy();
        let now = proxy.registry().now();
        self.rests.forget(now);
        for lane in outlook.lanes {
            let opening = proxy.opening(&lane, now);
            let (Some(opening), false) = (opening, self.rests.rests(&lane, now)) else {
                continue;
            };
            // Beyond `listener.max_calls` nothing is sent for those who can wait, either.
            let take_place = |places: &Arc<Semaphore>| Arc::clone(places).try_acquire_owned().ok();
            let (Some(own), Some(common)) = (take_place(&self.places), take_place(&proxy.places))
            else {
                return;
            };
            if let Ok(Some(taken)) = self.desk.take(lane.clone()).await {
                let delivery = self.delivery(&proxy, taken, lane, opening);
                tasks.spawn(delivery.run(own, common));
                // There may be another place in the lane.
                self.desk.tell();
            }
        }
    }

    fn delivery(
        &self,
        proxy: &Arc<Proxy>,
        (taken, mut held): (Taken, Held),
        lane: String,
        opening: Opening,
    ) -> Delivery {
        held.is_sent();
        Delivery {
            proxy: Arc::clone(proxy),
            desk: self.desk.clone(),
            rests: Arc::clone(&self.rests),
            held,
            taken,
            lane,
            opening,
        }
    }
}

/// How breakers let a lane's next call pass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opening {
    Closed,
    Probe,
}

impl Proxy {
    /// Whether some target of a lane takes calls now.
    fn opening(&self, lane: &str, now: Tick) -> Option<Opening> {
        let (route, model): (String, Option<String>) = serde_json::from_str(lane).ok()?;
        let mut routes = self.config.routes.iter();
        let at = routes.position(|known| known.model.as_str() == route)?;
        let mut found = None;
        for stop in self.rosters.get(at)?.own_stops() {
            let provider = &stop.target.provider;
            let Some(Keys::Own(keys)) = self.upstreams.get(provider).map(|to| &to.keys) else {
                continue;
            };
            let named = stop.target.model.as_deref().or(model.as_deref());
            for (id, _) in keys {
                let model = named.unwrap_or(NO_MODEL);
                let target = Target::new(provider.as_str(), model, id.as_str(), Owner::Gateway);
                let scopes = self.guards.scopes(&self.config, &target, now);
                match scopes.ok().map(|scopes| Admission::of(&scopes, now)) {
                    Some(Admission::Ready) => return Some(Opening::Closed),
                    Some(Admission::Probe) => found = Some(Opening::Probe),
                    _ => {}
                }
            }
        }
        found
    }
}
