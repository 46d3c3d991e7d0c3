//! `Crew`: a thread for each core, each with a runtime of its own.
//!
//! A caller's connection stays with the thread that accepted it, and so do the connections to providers that its calls go
//! over: nothing of a call moves between threads, and none waits for another. Whoever has nothing to do accepts the next
//! caller.

use std::cell::Cell;
use std::io;
use std::num::NonZero;
use std::sync::LazyLock;
use std::thread::available_parallelism;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

thread_local! {
    static PLACE: Cell<usize> = const { Cell::new(0) };
}

/// The threads that serve callers. They end when it is dropped, with whatever is still under way.
#[derive(Debug)]
pub struct Crew {
    hands: Vec<Handle>,
    _stay: DropGuard,
}

impl Crew {
    /// A thread for each core that this process may use.
    ///
    /// # Errors
    /// When there are no threads to be had.
    pub fn start() -> io::Result<Self> {
        let leave = CancellationToken::new();
        // Those that were there already leave where one is not to be had.
        let stay = leave.clone().drop_guard();
        let hand = |place| hand(place, leave.clone());
        let hands = (1..places()).map(hand).collect::<io::Result<_>>()?;
        Ok(Self { hands, _stay: stay })
    }

    pub(crate) fn hands(&self) -> &[Handle] {
        &self.hands
    }
}

/// How many different [`place`]s there can be.
pub(crate) fn places() -> usize {
    static PLACES: LazyLock<usize> =
        LazyLock::new(|| 1 + available_parallelism().map_or(1, NonZero::get));
    *PLACES
}

/// Which thread of the crew this is; zero where it belongs to none.
pub(crate) fn place() -> usize {
    PLACE.get()
}

fn hand(place: usize, leave: CancellationToken) -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let name = format!("callers-{place}");
    std::thread::Builder::new().name(name).spawn(move || {
        PLACE.set(place);
        runtime.block_on(leave.cancelled());
    })?;
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn each_hand_has_a_place_of_its_own_and_leaves_with_the_crew() {
        assert_eq!(place(), 0);
        let crew = Crew::start().unwrap();
        let mut seen = BTreeSet::new();
        let mut left = Vec::new();
        for hand in crew.hands() {
            seen.insert(hand.spawn(async { place() }).await.unwrap());
            left.push(hand.spawn(std::future::pending::<()>()));
        }
        assert_eq!(seen, (1..places()).collect());
        drop(crew);
        for task in left {
            let ended = tokio::time::timeout(Duration::from_secs(5), task).await;
            assert!(ended.unwrap().unwrap_err().is_cancelled());
        }
    }
}
