//! `Member`: one replica's part in the fleet's view of one breaker. No I/O, no clock.
//!
//! **Versions.** What the fleet holds a breaker to be is a record with a version. A replica that has news offers it as the
//! next version after the one it knows; the server takes the first such offer and refuses the rest, whose senders learn
//! what was taken. So there is one order of events, and nobody needs to be in charge.
//!
//! **What is news.** An operator's command. An opening on the provider's own word, or on what all have counted together. The
//! end of an incident that the fleet knows of: a probe's result, by the holder of the lease. A replica that opens by its
//! own counts alone tells nobody: its way out may be what is broken.
//!
//! **What is adopted.** Any newer record, but for two: a `closed` does not end an opening that the fleet has not heard of,
//! unless an operator says so who saw it, and nothing replaces news that outrank it. A server that lost a record which still holds is told it again.
//!
//! **The lease.** While the fleet's record is open, probes need its lease. It is asked for when a call wants to probe, kept
//! while a probe is out, given back when unused for a second, and ends by itself when its holder dies. Its token only grows:
//! the result of a probe whose lease has gone to another waits for that one's, and is void where that has said something.

use std::time::Duration;

use fuseline_core::{Cause, State, Tick};

use super::message::{Ask, Offer, Record, Reply, Weight};

/// How long a lease may lie unused.
const UNUSED: Duration = Duration::from_secs(1);
/// How long a wish to probe stands.
const WISHED: Duration = Duration::from_secs(1);

/// What the breaker here says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct View {
    pub(crate) now: Tick,
    /// The same by the server, as far as is known.
    pub(crate) server_now: u64,
    /// Open, half-open, forced, or `Closed` for anything else.
    pub(crate) state: State,
    /// The latest change that has a reason of its own; none where there was no change.
    pub(crate) news: Option<News>,
    /// The latest of these that was no probe's, where the latest is one.
    pub(crate) opener: Option<News>,
    /// The state as a record, in the server's time.
    pub(crate) record: Record,
    pub(crate) live_probes: u32,
    pub(crate) good: u32,
    /// Whether a call wanted to probe since the last look.
    pub(crate) wished: bool,
    /// How long a lease lasts, in ms.
    pub(crate) lease: u64,
}

/// A change, and what it rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct News {
    pub(crate) number: u64,
    pub(crate) by: By,
}

/// What a change rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum By {
    /// An operator.
    Operator,
    /// The provider's own word: a wait hint, a spent quota.
    Provider,
    /// What all replicas have counted together.
    Fleet,
    /// A probe's result, or its silence.
    Probe,
    /// What this replica has counted, or kept from another time.
    Own,
}

impl By {
    /// What this cause rests on; none for changes that follow from others.
    pub(crate) const fn of(cause: Cause, is_word: bool) -> Option<Self> {
        match cause {
            Cause::Cooldown | Cause::Pressure | Cause::Expiry => None,
            Cause::Operator => Some(Self::Operator),
            Cause::Fleet => Some(Self::Fleet),
            Cause::OpenNow => Some(Self::Provider),
            Cause::Kind if is_word => Some(Self::Provider),
            Cause::Probe | Cause::Lease => Some(Self::Probe),
            _ => Some(Self::Own),
        }
    }
}

/// What the breaker here is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Orders {
    /// To be as this record says.
    pub(crate) adopt: Option<Record>,
    /// Whether it may probe; none leaves that as it is.
    pub(crate) probing: Option<Probing>,
}

/// Whose leave probes need, and whether they have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Probing {
    Freely,
    Awaited,
    Granted { until: Tick, good: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Lease {
    token: u64,
    until: Tick,
    used: Tick,
}

/// One replica's part in the fleet's view of one breaker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Member {
    version: u64,
    record: Option<Record>,
    /// The server has forgotten the record.
    is_lost: bool,
    /// The number of the latest change here that the fleet knows, or that came from it.
    settled: u64,
    /// The state here is the fleet's.
    is_shared: bool,
    /// The fleet's rules have opened what is already open here.
    is_confirmed: bool,
    /// The highest token seen.
    token: u64,
    lease: Option<Lease>,
    /// A lease that came when nobody wanted it any more.
    stray: Option<u64>,
    wished: Option<Tick>,
    probing: Option<Probing>,
}

/// What was sent, to be understood with the reply.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sent {
    pub(crate) offer: Option<Offer>,
    pub(crate) ask: Ask,
    /// The number of the change that is offered, if one is.
    news: Option<u64>,
    at: Tick,
}

impl Member {
    /// Whether the fleet must hear of this breaker, or this replica of what the fleet says of it.
    pub(crate) fn is_busy(&self, view: &View) -> bool {
        let holds = self.record.as_ref().is_some_and(Record::is_open);
        holds
            || self.is_lost
            || self.lease.is_some()
            || self.stray.is_some()
            || self.offer(view).is_some()
    }

    /// The version of the fleet's record that this replica knows.
    pub(crate) const fn version(&self) -> u64 {
        self.version
    }

    /// Whether the server has forgotten what this replica knows.
    pub(crate) const fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// The record, where it holds for the breaker here too.
    pub(crate) fn shared(&self) -> Option<&Record> {
        self.record.as_ref().filter(|_| self.is_shared)
    }

    /// The summed counts would open what has opened by itself here.
    pub(crate) fn confirm(&mut self) {
        self.is_confirmed = true;
    }

    /// What to send.
    pub(crate) fn send(&mut self, view: &View) -> Sent {
        if view.wished {
            self.wished = Some(view.now);
        }
        if self.is_news(view) && view.news.is_some_and(|news| news.by != By::Probe) {
            self.is_shared = false;
        }
        if let Some(lease) = &mut self.lease
            && view.live_probes > 0
        {
            lease.used = view.now;
        }
        let offer = self.offer(view);
        let is_news = offer.is_some() && self.is_news(view);
        let ask = if is_news {
            Ask::Nothing
        } else {
            self.ask(view)
        };
        Sent {
            offer,
            ask,
            news: view.news.filter(|_| is_news).map(|news| news.number),
            at: view.now,
        }
    }

    fn is_news(&self, view: &View) -> bool {
        view.news.is_some_and(|news| news.number != self.settled)
    }

    fn offer(&self, view: &View) -> Option<Offer> {
        let is_open = self.record.as_ref().is_some_and(Record::is_open);
        let token = self.lease.map_or(0, |lease| lease.token);
        let by = view.news.filter(|_| self.is_news(view)).map(|news| news.by);
        let weight = match (by, view.state) {
            (Some(By::Operator), _) => Some(Weight::Command),
            (Some(By::Provider | By::Fleet), State::Open) => Some(Weight::Evidence),
            (Some(By::Probe), State::Open | State::Closed) if is_open => Some(Weight::Evidence),
            // It opened, and its probe failed, before the fleet could hear of either.
            (Some(By::Probe), State::Open) if self.is_owed(view) => Some(Weight::Evidence),
            (Some(By::Own | By::Probe), State::Open) if self.is_confirmed => Some(Weight::Evidence),
            _ => None,
        };
        if let Some(weight) = weight {
            return Some(Offer {
                version: self.version + 1,
                record: Record {
                    is_command: by == Some(By::Operator),
                    ..view.record.clone()
                },
                token,
                weight,
            });
        }
        let record = self.record.clone().filter(|_| self.is_lost)?;
        Some(Offer {
            version: self.version,
            record,
            token,
            weight: Weight::Command,
        })
    }

    fn is_owed(&self, view: &View) -> bool {
        let is_for_all = |news: News| matches!(news.by, By::Provider | By::Fleet);
        let opener = view.opener.filter(|news| is_for_all(*news));
        opener.is_some_and(|news| news.number > self.settled)
    }

    fn ask(&self, view: &View) -> Ask {
        let length = view.lease;
        if let Some(token) = self.stray {
            return Ask::Back { token, good: 0 };
        }
        let is_open = self.shared().is_some_and(Record::is_open);
        match self.lease {
            Some(lease) if is_open && view.now.since(lease.used) < UNUSED => Ask::Keep {
                token: lease.token,
                length,
                good: view.good,
            },
            Some(lease) => Ask::Back {
                token: lease.token,
                good: view.good,
            },
            None if is_open && self.wishes(view.now) => Ask::Want {
                seen: self.token,
                length,
            },
            None => Ask::Nothing,
        }
    }

    fn wishes(&self, now: Tick) -> bool {
        self.wished.is_some_and(|wished| now.since(wished) < WISHED)
    }

    /// Takes in what the server said to it.
    pub(crate) fn hear(&mut self, me: &str, sent: &Sent, reply: &Reply, view: &View) -> Orders {
        let mut orders = Orders::default();
        self.token = self.token.max(reply.token);
        if let Some(offer) = sent.offer.as_ref().filter(|_| reply.taken) {
            self.version = offer.version;
            self.record = Some(offer.record.clone());
            self.is_lost = false;
            if let Some(number) = sent.news {
                self.settled = number;
                self.lease = None;
                self.is_shared = offer.record.holds(reply.now);
            }
            self.is_confirmed = false;
        } else if reply.version > self.version
            || reply.version == self.version && reply.record != self.record
        {
            self.learn(reply, view, &mut orders);
        } else if reply.version < self.version {
            self.miss(reply, view, &mut orders);
        } else {
            self.join(reply, view, &mut orders);
        }
        self.take_lease(me, sent, reply, view);
        self.probing(reply, &mut orders);
        orders
    }

    /// A newer record.
    fn learn(&mut self, reply: &Reply, view: &View, orders: &mut Orders) {
        let holds = reply
            .record
            .as_ref()
            .is_some_and(|record| record.holds(reply.now));
        let is_later = |record: &Record| view.news.is_none() || record.since >= view.record.since;
        let overrules = |record: &Record| record.is_command && is_later(record);
        let is_overruled = reply.record.as_ref().is_some_and(overrules);
        let outranks = self.is_news(view)
            && self.offer(view).is_some_and(|offer| {
                let by = view.news.map(|news| news.by);
                let is_open_anew = !holds && !is_overruled && by != Some(By::Probe);
                offer.weight == Weight::Command || is_open_anew
            });
        self.version = reply.version;
        self.record = reply.record.clone();
        self.is_lost = false;
        let is_closed = view.state == State::Closed;
        let stands_alone = !self.is_shared && !is_closed && !holds && !is_overruled;
        let nothing_to_end = is_closed && !holds && !is_overruled;
        if outranks || stands_alone {
            return;
        }
        self.is_shared = holds;
        self.is_confirmed = false;
        if !nothing_to_end {
            orders.adopt = reply.record.clone();
        }
    }

    /// Nothing new: but one that goes its own way, and has nothing to say for it, goes the fleet's.
    fn join(&mut self, reply: &Reply, view: &View, orders: &mut Orders) {
        let is_open = self
            .record
            .as_ref()
            .is_some_and(|record| record.holds(reply.now));
        if is_open && !self.is_shared && self.offer(view).is_none() {
            self.is_shared = true;
            orders.adopt = self.record.clone();
        }
    }

    /// The server has lost what this replica knows.
    fn miss(&mut self, reply: &Reply, view: &View, orders: &mut Orders) {
        if self
            .record
            .as_ref()
            .is_some_and(|record| record.holds(reply.now))
        {
            self.is_lost = true;
        } else {
            self.learn(reply, view, orders);
        }
    }

    fn take_lease(&mut self, me: &str, sent: &Sent, reply: &Reply, view: &View) {
        let mine = reply.holder.as_ref().filter(|(holder, _)| holder == me);
        let is_mine = mine.is_some();
        let left = mine.map_or(0, |(_, ends)| ends.saturating_sub(reply.now));
        let until = sent.at + Duration::from_millis(left);
        self.stray = None;
        match (sent.ask, &mut self.lease) {
            (Ask::Want { .. }, None) if is_mine => {
                self.wished = None;
                self.lease = Some(Lease {
                    token: reply.token,
                    until,
                    used: view.now,
                });
            }
            (Ask::Keep { token, .. }, Some(lease)) if is_mine && token == reply.token => {
                lease.until = until;
            }
            _ if self.is_lost => {} // the server will hear of it again
            _ => {
                self.stray = Some(reply.token).filter(|_| is_mine);
                self.lease = None;
            }
        }
    }

    fn probing(&mut self, reply: &Reply, orders: &mut Orders) {
        let is_open = self.shared().is_some_and(Record::is_open);
        let probing = match self.lease {
            _ if !is_open => Probing::Freely,
            None => Probing::Awaited,
            Some(lease) => Probing::Granted {
                until: lease.until,
                good: reply.good,
            },
        };
        if self.probing != Some(probing) {
            self.probing = Some(probing);
            orders.probing = Some(probing);
        }
    }

    /// Changes up to this number came from the fleet.
    pub(crate) fn settle(&mut self, number: u64) {
        self.settled = number;
    }

    /// This replica leaves: its lease goes back with the next word, unless a probe is out.
    pub(crate) fn leave(&mut self) {
        if let Some(lease) = &mut self.lease {
            lease.used = Tick::ZERO;
        }
    }

    /// The server is out of reach: probes need nobody's leave until it is back.
    pub(crate) fn part(&mut self) {
        self.lease = None;
        self.probing = None;
    }
}
