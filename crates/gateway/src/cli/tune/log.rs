//! `Log`: recorded calls by target, from the gateway's own lines or from a table.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{BufRead, Read as _};
use std::time::Duration;

use anyhow::{Context as _, bail};
use fuseline_core::{Kind, Tick};
use fuseline_sim::{Recorded, assume_refused};
use serde::Deserialize;

use super::super::progress::Progress;
use super::table;

/// Longest line taken.
const MAX_LINE: u64 = 1 << 20;
/// Most calls taken; each weighs some 60 bytes.
const MAX_CALLS: usize = 5_000_000;
/// Bytes between two signs of progress.
const PROGRESS: u64 = 16 << 20;

/// The calls of a log.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// By target, each in the order of their time; their times count from `began`.
    pub(super) targets: BTreeMap<String, Vec<Recorded>>,
    /// When the first began, in milliseconds since 1970.
    pub(super) began: u64,
    /// Lines that tell of no call.
    pub(super) passed_over: u64,
    calls: usize,
}

/// One of the gateway's lines.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    message: Cow<'a, str>,
    #[serde(borrow, default)]
    timestamp: Cow<'a, str>,
    #[serde(borrow)]
    target: Option<Cow<'a, str>>,
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(default)]
    took_ms: u64,
    first_token_ms: Option<u64>,
    #[serde(default)]
    attempts: u32,
    #[serde(borrow)]
    story: Option<Cow<'a, str>>,
}

/// What became of a call before its end.
#[derive(Deserialize)]
struct Told {
    target: String,
    kind: Option<String>,
    #[serde(default)]
    took_ms: u64,
}

impl Log {
    /// Reads either form, told apart by the first sign.
    pub(super) fn read(from: &mut impl BufRead, size: Option<u64>) -> anyhow::Result<Self> {
        let mut log = Self::default();
        let mut progress = Progress::new("read", size, PROGRESS);
        if from.fill_buf()?.trim_ascii_start().starts_with(b"{") {
            log.read_lines(from, &mut progress)?;
        } else {
            table::read(&mut log, from, &mut progress)?;
        }
        progress.finish();
        if log.calls == 0 {
            bail!(
                "no calls in it; give the gateway's log as JSON lines, or CSV whose head names time, outcome and duration"
            );
        }
        log.put_in_order();
        Ok(log)
    }

    /// Forgets all other targets.
    pub(super) fn keep_only(&mut self, target: &str) -> anyhow::Result<()> {
        let known: Vec<_> = self.targets.keys().take(20).cloned().collect();
        self.targets.retain(|name, _| name == target);
        if self.targets.is_empty() {
            bail!(
                "--target {target}: no call went there; there are {}",
                known.join(", ")
            );
        }
        Ok(())
    }

    /// All calls.
    pub(super) fn calls(&self) -> impl Iterator<Item = &Recorded> {
        self.targets.values().flatten()
    }

    fn read_lines(
        &mut self,
        from: &mut impl BufRead,
        progress: &mut Progress,
    ) -> anyhow::Result<()> {
        let (mut text, mut number) = (Vec::new(), 0_u64);
        loop {
            text.clear();
            number += 1;
            let read = (&mut *from).take(MAX_LINE).read_until(b'\n', &mut text)? as u64;
            if read == 0 {
                return Ok(());
            }
            if read == MAX_LINE {
                bail!("line {number} is longer than {MAX_LINE} bytes");
            }
            progress.add(read);
            match serde_json::from_slice::<Line<'_>>(&text) {
                Ok(line) if line.message == "call" => {
                    self.take(&line).with_context(|| format!("line {number}"))?;
                }
                _ => self.passed_over += 1,
            }
        }
    }

    /// One call: its attempts, one after another, and the targets that turned it away.
    fn take(&mut self, line: &Line<'_>) -> anyhow::Result<()> {
        let ended = table::date(&line.timestamp)
            .with_context(|| format!("timestamp is {:?}, must be RFC 3339", line.timestamp))?;
        let began = ended.saturating_sub(line.took_ms);
        let story: Vec<Told> = match &line.story {
            Some(story) => serde_json::from_str(story).context("story is no list of attempts")?,
            None => Vec::new(),
        };
        let (tried, skipped): (Vec<Told>, Vec<Told>) =
            story.into_iter().partition(|told| told.kind.is_some());
        for told in &skipped {
            self.refused(&told.target, began)?;
        }
        let kind = line.kind.as_deref().map(kind);
        let target = line.target.as_deref().filter(|target| *target != "none");
        if let Some(target) = target
            && line.attempts == 0
            && kind == Some(Kind::Local)
            && skipped.is_empty()
        {
            return self.refused(target, began);
        }
        let (mut at, mut since) = (began, began);
        let mut tried = tried.iter().peekable();
        let mut last = None;
        while let Some(told) = tried.next() {
            at = ended.min(at.saturating_add(told.took_ms));
            let goes_on = match tried.peek() {
                Some(next) => next.target == told.target,
                // It ended well at the same target: a retry that helped.
                None => kind.is_none() && target == Some(told.target.as_str()),
            };
            last = told
                .kind
                .as_deref()
                .map(self::kind)
                .map(|kind| (told.target.as_str(), kind));
            if let (false, Some((target, kind))) = (goes_on, last) {
                self.add(target, since, at - since, None, Err(kind))?;
                since = at;
            }
        }
        let Some(target) = target.filter(|_| line.attempts > 0) else {
            return Ok(());
        };
        match kind {
            None => self.add(target, since, ended - since, line.first_token_ms, Ok(())),
            Some(kind) if last == Some((target, kind)) => Ok(()),
            Some(kind) => self.add(target, since, ended - since, None, Err(kind)),
        }
    }

    fn refused(&mut self, target: &str, at: u64) -> anyhow::Result<()> {
        self.push(
            target,
            Recorded {
                at: Tick::from_millis(at),
                took: Duration::ZERO,
                first: None,
                result: Ok(()),
                is_refused: true,
            },
        )
    }

    /// A call that began then, in milliseconds since 1970.
    pub(super) fn add(
        &mut self,
        target: &str,
        at: u64,
        took_ms: u64,
        first_ms: Option<u64>,
        result: Result<(), Kind>,
    ) -> anyhow::Result<()> {
        let took = Duration::from_millis(took_ms);
        self.push(
            target,
            Recorded {
                at: Tick::from_millis(at),
                took,
                first: first_ms.map(|ms| Duration::from_millis(ms).min(took)),
                result,
                is_refused: false,
            },
        )
    }

    fn push(&mut self, target: &str, call: Recorded) -> anyhow::Result<()> {
        self.calls += 1;
        if self.calls > MAX_CALLS {
            bail!("more than {MAX_CALLS} calls; give a shorter stretch of the log");
        }
        if let Some(calls) = self.targets.get_mut(target) {
            calls.push(call);
        } else {
            self.targets.insert(target.to_owned(), vec![call]);
        }
        Ok(())
    }

    fn put_in_order(&mut self) {
        let first = self.calls().map(|call| call.at.as_millis()).min();
        self.began = first.unwrap_or(0);
        for calls in self.targets.values_mut() {
            for call in &mut *calls {
                call.at = Tick::from_millis(call.at.as_millis() - self.began);
            }
            calls.sort_by_key(|call| call.at);
            assume_refused(calls);
        }
    }
}

/// What a line calls a kind; what is none of ours, such as a slow reader, is no provider's fault.
fn kind(name: &str) -> Kind {
    name.parse().unwrap_or(Kind::Cancelled)
}

#[cfg(test)]
mod tests;
