//! Between a breaker's own instants and the server's, both in ms: what a breaker is as a record, and back.

use std::time::Duration;

use fuseline_core::{Breaker, Cause, SavedBreaker, ScopeName, State, Tick, Why};

use super::member::{By, News, View};
use super::message::Record;

/// One instant, here and there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meeting {
    pub(crate) tick: Tick,
    pub(crate) server: u64,
}

impl Meeting {
    /// The server's time at another instant here.
    pub(crate) fn server_at(&self, tick: Tick) -> u64 {
        let (from, to) = (self.tick.as_millis(), tick.as_millis());
        (self.server + to.saturating_sub(from)).saturating_sub(from.saturating_sub(to))
    }

    /// The instant here of another time there.
    pub(crate) fn tick_at(&self, server: u64) -> Tick {
        let later = server.saturating_sub(self.server);
        let earlier = self.server.saturating_sub(server);
        let tick = self.tick + Duration::from_millis(later);
        Tick::from_millis(tick.as_millis().saturating_sub(earlier))
    }
}

/// What the breaker says; a breaker that does not exist is closed.
pub(crate) fn view(breaker: Option<&Breaker>, me: &str, meeting: &Meeting, now: Tick) -> View {
    let server_now = meeting.server_at(now);
    let mut view = View {
        now,
        server_now,
        state: State::Closed,
        news: None,
        opener: None,
        record: Record {
            state: State::Closed,
            until: 0,
            since: server_now,
            episodes: 0,
            observed: 0,
            threshold: 0,
            kind: None,
            by: me.to_owned(),
            is_command: false,
        },
        live_probes: 0,
        good: 0,
        wished: false,
        lease: 0,
    };
    let Some(breaker) = breaker.filter(|breaker| breaker.changes() > 0) else {
        return view;
    };
    let (snapshot, policy) = (breaker.snapshot(now), breaker.policy());
    view.state = match snapshot.state {
        State::Degraded => State::Closed,
        state => state,
    };
    view.news = news(breaker);
    view.opener = latest(breaker, |by| by != By::Probe);
    view.live_probes = snapshot.live_probes;
    view.good = snapshot.good_probes;
    view.wished = breaker.take_wish();
    view.lease = millis(policy.probe_timeout());
    view.record.state = view.state;
    view.record.since = meeting.server_at(snapshot.since);
    view.record.episodes = snapshot.episodes;
    if let Some(change) = snapshot.why {
        view.record.until = change.until.map_or(0, |until| meeting.server_at(until));
        view.record.observed = thousandths(change.why.observed);
        view.record.threshold = thousandths(change.why.threshold);
        view.record.kind = change.why.kind.map(|kind| kind.as_str().to_owned());
    }
    view
}

/// Its latest change that has a reason of its own.
pub(crate) fn news(breaker: &Breaker) -> Option<News> {
    latest(breaker, |_| true)
}

fn latest(breaker: &Breaker, counts: impl Fn(By) -> bool) -> Option<News> {
    let policy = breaker.policy();
    breaker.history(0).iter().rev().find_map(|change| {
        let is_word = |kind| policy.kind(kind).immediate_open;
        let by = By::of(change.why.cause, change.why.kind.is_some_and(is_word))?;
        let number = change.number;
        counts(by).then_some(News { number, by })
    })
}

/// What a breaker is to be.
pub(crate) fn saved(name: &ScopeName, record: &Record, meeting: &Meeting) -> SavedBreaker {
    let holds = record.state != State::Closed;
    let ends = holds && (record.is_open() || record.until > 0);
    let since = meeting.tick_at(record.since).min(meeting.tick);
    SavedBreaker {
        name: name.clone(),
        state: record.state,
        since,
        until: ends.then(|| meeting.tick_at(record.until)),
        episodes: record.episodes,
        incident_since: record.is_open().then_some(since),
        hold_until: None,
        run: 0,
        kinds: Vec::new(),
        windows: Vec::new(),
        why: Some(Why {
            cause: Cause::Fleet,
            observed: record.observed as f64 / 1_000.0,
            threshold: record.threshold as f64 / 1_000.0,
            kind: record.kind.as_ref().and_then(|kind| kind.parse().ok()),
            last_failures: Vec::new(),
        }),
    }
}

fn thousandths(value: f64) -> u64 {
    (value * 1_000.0).round() as u64
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
