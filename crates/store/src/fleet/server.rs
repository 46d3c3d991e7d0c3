//! What the script on the server does, in Rust: for the model, and to be compared with the script itself.

use std::collections::BTreeMap;

use fuseline_core::State;

use super::message::{Ask, Offer, Record, Reply, Request, Weight};

/// How far from its sending a request is obeyed, in ms.
const FRESH: u64 = 1_000;
/// For how long no lease is given once a lost record has come back, so that its holder can say so first.
const QUIET: u64 = 1_000;
/// How long counts are shown.
const COUNTED: u64 = 1_000;

/// One breaker on the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Shelf {
    pub(crate) version: u64,
    pub(crate) record: Option<Record>,
    pub(crate) token: u64,
    pub(crate) holder: Option<String>,
    pub(crate) lease_ends: u64,
    good: u32,
    quiet_until: u64,
    counts: BTreeMap<String, (u64, String)>,
}

impl Shelf {
    pub(crate) fn exchange(&mut self, me: &str, request: &Request, now: u64) -> Reply {
        let mut taken = false;
        if now.abs_diff(request.sent) <= FRESH {
            self.counts
                .insert(me.to_owned(), (now, request.counts.clone()));
            taken = request
                .offer
                .as_ref()
                .is_some_and(|offer| self.take(me, offer, now));
            self.answer(me, request.ask, now);
        }
        self.counts.retain(|_, (at, _)| now < *at + COUNTED);
        let holder = self.holder.clone().filter(|_| self.lease_ends > now);
        let holder = holder.map(|holder| (holder, self.lease_ends));
        Reply {
            now,
            taken,
            version: self.version,
            record: self.record.clone(),
            token: self.token,
            holder,
            good: self.good,
            counts: self
                .counts
                .iter()
                .map(|(who, (at, text))| (who.clone(), *at, text.clone()))
                .collect(),
        }
    }

    fn take(&mut self, me: &str, offer: &Offer, now: u64) -> bool {
        let is_leased = self.lease_ends > now;
        let holds = self.holder.as_deref() == Some(me) && offer.token == self.token;
        let waits = is_leased && !holds && offer.weight == Weight::Evidence;
        let fenced = offer.token > 0 && offer.token < self.token;
        if offer.version <= self.version || waits || fenced {
            return false;
        }
        if self.version == 0 && offer.weight == Weight::Command {
            self.quiet_until = now + QUIET;
        }
        self.version = offer.version;
        self.record = Some(offer.record.clone());
        if offer.token > 0 {
            self.token = offer.token;
            self.holder = Some(me.to_owned());
        }
        self.lease_ends = 0;
        self.good = 0;
        true
    }

    fn answer(&mut self, me: &str, ask: Ask, now: u64) {
        let is_mine = self.holder.as_deref() == Some(me);
        let open = self
            .record
            .as_ref()
            .filter(|record| record.state == State::Open);
        match ask {
            Ask::Want { seen, length } => {
                if self.lease_ends > now && is_mine {
                    self.lease_ends = now + length;
                } else if open.is_some_and(|open| open.until <= now)
                    && self.lease_ends <= now
                    && self.quiet_until <= now
                {
                    self.token = self.token.max(seen) + 1;
                    self.holder = Some(me.to_owned());
                    self.lease_ends = now + length;
                }
            }
            Ask::Keep {
                token,
                length,
                good,
            } => {
                if open.is_some() && (token > self.token || token == self.token && is_mine) {
                    self.token = token;
                    self.holder = Some(me.to_owned());
                    self.lease_ends = now + length;
                    self.good = self.good.max(good);
                }
            }
            Ask::Back { token, good } => {
                if token == self.token && is_mine {
                    self.lease_ends = 0;
                    self.good = self.good.max(good);
                }
            }
            Ask::Nothing => {}
        }
    }
}
