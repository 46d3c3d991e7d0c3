//! `Part`: what the worker knows of one breaker; its share of a turn, and what the fleet's answer makes of it.

use fuseline_core::{
    Breaker, Evidence, Policy, Registry, ScopeName, Snapshot, State, Tick, TripRule,
};

use super::counts::{Counted, Counting, Sum};
use super::member::{Member, Orders, Probing, Sent, View};
use super::message::{Reply, Request};
use super::translate::{Meeting, news, saved, view};

/// What is known of one breaker.
pub(crate) struct Part {
    policy: Policy,
    member: Member,
    counting: Counting,
    /// Its changes when it was last looked at.
    changes: u64,
}

/// One breaker's share of a turn.
pub(crate) struct Asked {
    pub(crate) name: ScopeName,
    breaker: Option<Breaker>,
    view: View,
    sent: Sent,
    own: Counted,
    /// Whether others are to look at it too.
    pub(crate) matters: bool,
}

/// What the fleet says, and by whom it is heard.
pub(crate) struct Heard<'a> {
    pub(crate) me: &'a str,
    pub(crate) registry: &'a Registry,
    pub(crate) meeting: &'a Meeting,
    /// Replicas that are there.
    pub(crate) alive: u64,
}

impl Part {
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            policy,
            member: Member::default(),
            counting: Counting::default(),
            changes: 0,
        }
    }

    /// Its changes when it was last looked at.
    pub(crate) const fn changes(&self) -> u64 {
        self.changes
    }

    /// What to say of it; none where there is nothing to say, unless somebody else has named it.
    pub(crate) fn ask(
        &mut self,
        name: ScopeName,
        breaker: Option<Breaker>,
        is_named: bool,
        heard: &Heard<'_>,
    ) -> Option<Asked> {
        let now = heard.registry.now();
        let changes = breaker.as_ref().map_or(0, Breaker::changes);
        if changes < self.changes {
            // Forgotten, and made anew under its old name.
            self.member = Member::default();
        }
        self.changes = changes;
        let view = view(breaker.as_ref(), heard.me, heard.meeting, now);
        let snapshot = breaker.as_ref().map(|one| one.snapshot(now));
        if !is_named && snapshot.as_ref().is_none_or(is_quiet) && !self.member.is_busy(&view) {
            return None;
        }
        let evidence = breaker
            .as_ref()
            .map_or_else(Evidence::default, |one| one.evidence(now));
        let hold_until = snapshot.as_ref().and_then(|seen| seen.hold_until);
        let hold_until = hold_until.map_or(0, |until| heard.meeting.server_at(until));
        let last = snapshot.as_ref().and_then(|seen| seen.last_failures.last());
        let kind = last.map(|failure| failure.kind.as_str().to_owned());
        let mut own = self.counting.tell(&evidence, kind, hold_until, now);
        own.version = self.member.version();
        let sent = self.member.send(&view);
        let matters = own.has_failures() || self.member.is_busy(&view);
        Some(Asked {
            name,
            breaker,
            view,
            sent,
            own,
            matters,
        })
    }

    /// Takes in what the fleet says; whether that has just turned out to be forgotten there.
    pub(crate) fn hear(&mut self, asked: Asked, reply: &Reply, heard: &Heard<'_>) -> bool {
        let was_lost = self.member.is_lost();
        let orders = self.member.hear(heard.me, &asked.sent, reply, &asked.view);
        let is_newly_lost = self.member.is_lost() && !was_lost;
        let others: Vec<(String, Counted)> = reply
            .counts
            .iter()
            .filter(|(who, ..)| who != heard.me)
            .filter_map(|(who, _, told)| Some((who.clone(), serde_json::from_str(told).ok()?)))
            .collect();
        let breaker = self.obey(&asked, orders, heard);
        let now = heard.registry.now();
        let rules: &[TripRule] = self.policy.trip();
        let sum = self
            .counting
            .judge(rules, &asked.own, &others, heard.alive, now);
        if let Some(breaker) = breaker {
            for hold in others.iter().map(|(_, counted)| counted.hold_until) {
                if hold > reply.now {
                    breaker.hold(heard.meeting.tick_at(hold));
                }
            }
            // Told before the fleet knew better, it is no reason any more.
            let is_current = asked.own.version == self.member.version();
            if let Some(sum) = sum.filter(|_| is_current && self.member.shared().is_none()) {
                self.open(&breaker, &sum, &asked.own, &others, now);
            }
        }
        is_newly_lost
    }

    /// All together have counted enough.
    fn open(
        &mut self,
        breaker: &Breaker,
        sum: &Sum,
        own: &Counted,
        others: &[(String, Counted)],
        now: Tick,
    ) {
        match breaker.state(now) {
            State::Closed | State::Degraded => {
                let told = others
                    .iter()
                    .filter_map(|(_, counted)| counted.kind.as_ref());
                let kind = own.kind.as_ref().into_iter().chain(told).next();
                let kind = kind.and_then(|kind| kind.parse().ok());
                breaker.open_by_fleet(kind, sum.observed, sum.threshold, now);
            }
            State::Open => self.member.confirm(),
            State::HalfOpen | State::ForcedOpen | State::ForcedClosed => {}
        }
    }

    /// Does what the fleet says; the breaker, which may have been made for it.
    fn obey(&mut self, asked: &Asked, orders: Orders, heard: &Heard<'_>) -> Option<Breaker> {
        let mut breaker = asked.breaker.clone();
        // What has happened since it was asked is to be told first.
        let is_as_told = breaker.as_ref().and_then(news) == asked.view.news;
        // One that does not exist is closed already.
        let is_needed = |state| breaker.is_some() || state != State::Closed;
        let adopt = orders.adopt.filter(|record| is_needed(record.state));
        if let Some(record) = adopt.filter(|_| is_as_told) {
            let saved = saved(&asked.name, &record, heard.meeting);
            let tick = heard.meeting.tick;
            breaker = heard.registry.restore(&saved, &self.policy, tick).ok();
            if let Some(breaker) = &breaker {
                self.changes = breaker.changes();
                self.member.settle(self.changes);
            }
        }
        if let Some(breaker) = &breaker {
            match orders.probing {
                None => {}
                Some(Probing::Freely) => breaker.probe_freely(),
                Some(Probing::Awaited) => breaker.probe_by_grant(),
                Some(Probing::Granted { until, good }) => breaker.grant_probes(until, good),
            }
        }
        breaker
    }

    /// The server is out of reach: the breaker decides by itself.
    pub(crate) fn part(&mut self, breaker: Option<&Breaker>) {
        self.member.part();
        if let Some(breaker) = breaker {
            breaker.probe_freely();
        }
    }

    /// This replica leaves.
    pub(crate) fn leave(&mut self) {
        self.member.leave();
    }
}

impl Asked {
    pub(crate) fn request(&self) -> Request {
        Request {
            name: self.name.clone(),
            sent: self.view.server_now,
            counts: serde_json::to_string(&self.own).unwrap_or_default(),
            offer: self.sent.offer.clone(),
            ask: self.sent.ask,
        }
    }
}

/// Closed, with nothing counted against it.
fn is_quiet(seen: &Snapshot) -> bool {
    let counts = seen.rules.iter().any(|rule| rule.hits > 0);
    seen.state == State::Closed && !counts && seen.hold_until.is_none()
}
