//! `Roster`: where the calls of one route may go, its rules for failures included, and what these calls share: how each
//! target is doing, and what there is for retries.
//!
//! It is as large as the configuration has it, whatever callers ask for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fuseline_core::{Kind, Tick};
use fuseline_llm::{OnFailure, Pace, RetryBudget, Shape, Strategy};

use super::aim::Aims;
use super::doubts::Doubts;
use crate::config::{Config, Elsewhere, OnKind, Route, Target};

/// What the calls of a route, or of a provider that is passed through, have in common.
pub(crate) struct Roster {
    pub(crate) strategy: Strategy,
    /// The share of answers after whose time a second target is asked as well.
    pub(crate) hedge: Option<f64>,
    /// The route's own in the order written, and behind them those that only a rule leads to.
    pub(crate) stops: Vec<Stop>,
    /// How many of them are the route's own.
    pub(crate) own: usize,
    /// By kind of failure; the indexes are those of the stops.
    pub(crate) on: BTreeMap<Kind, OnFailure>,
    pub(crate) retries: Arc<RetryBudget>,
}

/// One target.
pub(crate) struct Stop {
    pub(crate) target: Target,
    pub(crate) seat: Arc<Seat>,
    pub(crate) aims: Aims,
}

impl Roster {
    /// Where its route's own targets stand.
    pub(crate) fn own_stops(&self) -> impl Iterator<Item = &Stop> {
        self.stops.iter().take(self.own)
    }

    /// By route, or by provider where they are passed through.
    pub(crate) fn all(config: &Config) -> Vec<Self> {
        if config.pass_through {
            let names = config.providers.keys();
            names.map(|name| Self::of_provider(name)).collect()
        } else {
            let routes = config.routes.iter();
            routes.map(|route| Self::of_route(config, route)).collect()
        }
    }

    /// What is known of the targets, and what there is for retries, goes on from an earlier configuration's.
    pub(crate) fn inherit(&mut self, old: &Self) {
        self.retries = Arc::clone(&old.retries);
        for stop in &mut self.stops {
            if let Some(known) = old.stops.iter().find(|known| known.is_same(&stop.target)) {
                let places = stop.seat.places.load(Ordering::Relaxed);
                known.seat.places.store(places, Ordering::Relaxed);
                stop.seat = Arc::clone(&known.seat);
            }
        }
    }

    fn of_route(config: &Config, route: &Route) -> Self {
        let mut roster = Self::new(route.strategy, route.targets.iter().cloned());
        roster.hedge = route.hedge;
        for (kind, rule) in &route.on {
            let rule = match rule {
                OnKind::Next => OnFailure::Next,
                OnKind::Return => OnFailure::Return,
                OnKind::Bigger => OnFailure::Bigger,
                OnKind::Elsewhere(Elsewhere::Target(target)) => {
                    OnFailure::To(vec![roster.place_of(target)])
                }
                OnKind::Elsewhere(Elsewhere::Route(model)) => {
                    let mut routes = config.routes.iter();
                    let named = routes.find(|route| route.model.as_str() == model);
                    let targets = named.map_or(&[][..], |route| &route.targets);
                    OnFailure::To(
                        targets
                            .iter()
                            .map(|target| roster.place_of(target))
                            .collect(),
                    )
                }
            };
            roster.on.insert(*kind, rule);
        }
        roster
    }

    fn of_provider(name: &str) -> Self {
        let target = Target::named(name, None);
        Self::new(Strategy::Priority, std::iter::once(target))
    }

    fn new(strategy: Strategy, targets: impl Iterator<Item = Target>) -> Self {
        let stops: Vec<_> = targets.map(Stop::new).collect();
        Self {
            strategy,
            hedge: None,
            own: stops.len(),
            stops,
            on: BTreeMap::new(),
            retries: Arc::default(),
        }
    }

    /// Whether anybody wants to know how long answers take.
    pub(crate) fn keeps_time(&self) -> bool {
        self.strategy == Strategy::Fastest || self.hedge.is_some()
    }

    /// The index of a target, which joins the roster if it is not there.
    fn place_of(&mut self, target: &Target) -> usize {
        let same = |stop: &Stop| stop.is_same(target);
        self.stops.iter().position(same).unwrap_or_else(|| {
            self.stops.push(Stop::new(target.clone()));
            self.stops.len() - 1
        })
    }
}

impl Stop {
    fn new(target: Target) -> Self {
        let seat = Seat {
            places: AtomicU32::new(target.max_in_flight.unwrap_or(u32::MAX)),
            ..Seat::default()
        };
        Self {
            target,
            seat: Arc::new(seat),
            aims: Aims::default(),
        }
    }

    fn is_same(&self, target: &Target) -> bool {
        self.target.provider == target.provider && self.target.model == target.model
    }
}

/// How a target is doing.
#[derive(Default)]
pub(crate) struct Seat {
    in_flight: AtomicU32,
    doubts: Doubts,
    /// Most calls at once.
    places: AtomicU32,
    /// When it was given a call last.
    last_ms: AtomicU64,
    paces: Mutex<Paces>,
}

/// An answer in one piece is waited for until its end, a stream until its beginning: the two do not compare.
#[derive(Default)]
struct Paces {
    plain: Pace,
    stream: Pace,
}

impl Paces {
    fn of(&mut self, shape: Shape) -> &mut Pace {
        match shape {
            Shape::Plain => &mut self.plain,
            Shape::Stream => &mut self.stream,
        }
    }
}

impl Seat {
    pub(crate) fn is_full(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) >= self.places.load(Ordering::Relaxed)
    }

    /// A place at the target for one attempt, if there is one.
    pub(crate) fn take(self: &Arc<Self>, now: Tick) -> Option<Taken> {
        let places = self.places.load(Ordering::Relaxed);
        let further = |taken: u32| (taken < places).then_some(taken + 1);
        self.in_flight
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, further)
            .ok()?;
        self.last_ms.store(now.as_millis(), Ordering::Relaxed);
        Some(Taken(Arc::clone(self)))
    }

    /// One more call has failed here, and is about to be repeated.
    pub(crate) fn doubt(self: &Arc<Self>) -> Doubt {
        Doubt {
            run: self.doubts.add(),
            seat: Arc::clone(self),
        }
    }

    /// Calls that have failed here since the last good answer and are being repeated: failures of which the breakers do
    /// not know yet.
    pub(crate) fn doubts(&self) -> u32 {
        self.doubts.count()
    }

    /// A good answer came from here.
    pub(crate) fn prove(&self) {
        self.doubts.clear();
    }

    /// For how long no call has been sent there.
    pub(crate) fn left_alone(&self, now: Tick) -> Duration {
        now.since(Tick::from_millis(self.last_ms.load(Ordering::Relaxed)))
    }

    /// An answer of this shape took so long.
    pub(crate) fn observe(&self, shape: Shape, took: Duration, now: Tick) {
        self.with_pace(shape, |pace| pace.observe(took, now));
    }

    /// What a further call has to reckon with; see [`Pace::load`].
    pub(crate) fn load(&self, shape: Shape, now: Tick) -> Option<f64> {
        let in_flight = self.in_flight.load(Ordering::Relaxed);
        self.with_pace(shape, |pace| pace.load(in_flight, now))
    }

    /// The time within which this share of the answers came lately; see [`Pace::quantile`].
    pub(crate) fn quantile(&self, shape: Shape, share: f64) -> Option<Duration> {
        self.with_pace(shape, |pace| pace.quantile(share))
    }

    fn with_pace<T>(&self, shape: Shape, act: impl FnOnce(&mut Pace) -> T) -> T {
        let mut paces = self.paces.lock().unwrap_or_else(PoisonError::into_inner);
        act(paces.of(shape))
    }
}

/// A place at a target; dropping it gives it back.
pub(crate) struct Taken(Arc<Seat>);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A failure that a repetition may mend; dropping it says that the call has come to an end.
pub(crate) struct Doubt {
    seat: Arc<Seat>,
    run: u32,
}

impl Drop for Doubt {
    fn drop(&mut self) {
        self.seat.doubts.remove(self.run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, max_in_flight: Option<u32>) -> Target {
        Target {
            max_in_flight,
            ..Target::named(name, None)
        }
    }

    #[test]
    fn report_126_a_place_is_given_back_however_the_attempt_ends() {
        let Stop { seat, .. } = Stop::new(of("a", Some(2)));
        let (first, second) = (seat.take(Tick::ZERO), seat.take(Tick::ZERO));
        assert!(first.is_some() && seat.is_full() && seat.take(Tick::ZERO).is_none());
        drop(second);
        assert!(!seat.is_full() && seat.take(Tick::ZERO).is_some());
        let unbounded = Stop::new(of("a", None)).seat;
        assert!(unbounded.take(Tick::ZERO).is_some() && !unbounded.is_full());
    }

    #[test]
    fn calls_under_an_earlier_configuration_keep_their_places() {
        let old = Roster::new(Strategy::Priority, [of("a", Some(2))].into_iter());
        let taken = old.stops[0].seat.take(Tick::ZERO);
        let mut new = Roster::new(
            Strategy::Priority,
            [of("b", Some(1)), of("a", Some(1))].into_iter(),
        );
        new.inherit(&old);
        assert!(new.stops[1].seat.is_full() && !new.stops[0].seat.is_full());
        assert!(old.stops[0].seat.is_full(), "the new bound holds for all");
        drop(taken);
        assert!(!new.stops[1].seat.is_full());
        assert!(Arc::ptr_eq(&new.retries, &old.retries));
    }

    #[test]
    fn a_rules_target_that_the_route_has_anyway_is_not_added() {
        let mut roster = Roster::new(
            Strategy::Priority,
            [of("a", None), of("b", None)].into_iter(),
        );
        assert_eq!(roster.place_of(&of("b", Some(3))), 1);
        assert_eq!(roster.place_of(&of("c", None)), 2);
        assert_eq!(roster.place_of(&of("c", None)), 2);
        assert_eq!((roster.own, roster.stops.len()), (2, 3));
    }

    #[test]
    fn streams_and_whole_answers_are_timed_apart() {
        let seat = Stop::new(of("a", None)).seat;
        seat.observe(Shape::Plain, Duration::from_secs(8), Tick::ZERO);
        assert_eq!(seat.load(Shape::Stream, Tick::ZERO), None);
        let _taken = seat.take(Tick::from_millis(9));
        assert_eq!(seat.load(Shape::Plain, Tick::ZERO), Some(16.0));
        assert_eq!(
            seat.left_alone(Tick::from_millis(12)),
            Duration::from_millis(3)
        );
    }
}
