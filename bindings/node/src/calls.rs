//! Calls under way. Hot path: a permit stays here, and JavaScript holds the number of its place. These are plain functions of
//! numbers because a method of a class costs more than twice as much; a guarded call crosses twice and makes no object.
//!
//! Each thread of JavaScript has its own tables: what it was given never leaves it.

use std::cell::RefCell;
use std::time::Duration;

use fuseline::{
    Breaker, CircuitOpen, Failure, Kind, Outcome, Permit, Rejection, UnknownName, outcome,
};
use napi::Either;
use napi_derive::napi;
use slab::Slab;

use crate::policy::{in_ms, invalid, ms};
use crate::verdict::Verdict;

thread_local! {
    static BREAKERS: RefCell<Slab<Breaker>> = RefCell::default();
    static OUT: RefCell<Slab<Out>> = RefCell::default();
}

/// A permit whose call is under way.
struct Out {
    permit: Permit,
    /// When the first item of a stream came.
    first: Option<Duration>,
}

/// A call must not be made.
#[napi(object, object_from_js = false)]
#[derive(Debug)]
pub struct Refusal {
    /// The sentence.
    pub message: String,
    /// Whose breaker.
    pub name: String,
    /// What it guards.
    pub scope: &'static str,
    /// Why.
    pub reason: &'static str,
    /// When it is worth asking again.
    pub retry_after_ms: f64,
}

/// What there is to say of a failure beside its kind.
#[napi(object, object_to_js = false)]
#[derive(Debug)]
pub struct FailureNotes {
    /// The provider's wait hint.
    pub retry_after_ms: Option<f64>,
    /// Open now, whatever the counts say.
    pub open_now: Option<bool>,
    /// An HTTP status, for the record.
    pub code: Option<u16>,
}

/// Gives a breaker its number.
pub(crate) fn enlist(breaker: Breaker) -> u32 {
    BREAKERS.with_borrow_mut(|breakers| number(breakers.insert(breaker)))
}

/// Nobody calls by this number any more. At a thread's end the tables may be gone before.
pub(crate) fn strike_off(id: u32) {
    let _ = BREAKERS.try_with(|breakers| breakers.borrow_mut().try_remove(id as usize));
}

/// The permit at this place, for whoever settles it from now on.
pub(crate) fn take(place: u32) -> Option<Permit> {
    remove(place).map(|out| out.permit)
}

fn remove(place: u32) -> Option<Out> {
    OUT.with_borrow_mut(|out| out.try_remove(place as usize))
}

fn look<T>(place: u32, of: impl FnOnce(&Permit) -> T) -> Option<T> {
    OUT.with_borrow(|out| out.get(place as usize).map(|out| of(&out.permit)))
}

fn enter(breaker: u32, limit: Duration) -> napi::Result<Either<u32, Refusal>> {
    BREAKERS.with_borrow(|breakers| {
        let Some(breaker) = breakers.get(breaker as usize) else {
            return Err(invalid("there is no such breaker"));
        };
        let permit = match breaker.try_acquire_within(limit) {
            Ok(permit) => permit.into_owned(),
            Err(rejection) => return Ok(Either::B(refused(breaker, rejection))),
        };
        let out = Out {
            permit,
            first: None,
        };
        let place = OUT.with_borrow_mut(|all| all.insert(out));
        Ok(Either::A(number(place)))
    })
}

#[cold]
fn refused(breaker: &Breaker, rejection: Rejection) -> Refusal {
    let refused = CircuitOpen::new(breaker.name(), rejection);
    Refusal {
        message: refused.to_string(),
        name: refused.name.to_string(),
        scope: refused.scope.as_str(),
        reason: refused.reason.as_str(),
        retry_after_ms: in_ms(refused.retry_after),
    }
}

/// As many as would not fit are in no process.
const fn number(place: usize) -> u32 {
    place as u32
}

fn kind_of(name: &str) -> napi::Result<Kind> {
    name.parse().map_err(|error: UnknownName| invalid(error))
}

/// Asks for leave to make one call: the place of its permit.
#[napi]
pub fn acquire(breaker: u32) -> napi::Result<Either<u32, Refusal>> {
    enter(breaker, Duration::ZERO)
}

/// As `acquire`, for a call that is given up after so long.
#[napi]
pub fn acquire_within(breaker: u32, limit: f64) -> napi::Result<Either<u32, Refusal>> {
    enter(breaker, ms("within", limit)?)
}

/// The provider came through.
#[napi]
pub fn success(place: u32) {
    if let Some(out) = remove(place) {
        match out.first {
            Some(first) => out.permit.record(&Outcome::success(first)),
            None => out.permit.success(),
        };
    }
}

/// The provider came through after so long, by the caller's own clock.
#[napi]
pub fn success_after(place: u32, took: f64) -> napi::Result<()> {
    let took = ms("tookMs", took)?;
    if let Some(permit) = take(place) {
        permit.record(&Outcome::success(took));
    }
    Ok(())
}

/// The call failed.
#[napi]
pub fn failure(place: u32, kind: String, notes: Option<FailureNotes>) -> napi::Result<()> {
    let mut failure = Failure::new(kind_of(&kind)?);
    if let Some(notes) = notes {
        if let Some(wait) = notes.retry_after_ms {
            failure = failure.retry_after(ms("retryAfterMs", wait)?);
        }
        if notes.open_now == Some(true) {
            failure = failure.open_now();
        }
        if let Some(code) = notes.code {
            failure = failure.code(code);
        }
    }
    if let Some(permit) = take(place) {
        permit.record(&Outcome::Failure(failure));
    }
    Ok(())
}

/// Settles by what a verdict says of the call; the kind that is recorded.
#[napi]
pub fn settle(place: u32, verdict: &Verdict) -> Option<&'static str> {
    let permit = take(place)?;
    let outcome = outcome(&verdict.0, permit.elapsed());
    permit.record(&outcome);
    match outcome {
        Outcome::Failure(failure) => Some(failure.kind().as_str()),
        Outcome::Success { .. } | Outcome::Neutral => None,
    }
}

/// Gives it back: the call says nothing.
#[napi]
pub fn cancel(place: u32) {
    drop(take(place));
}

/// A sign of life.
#[napi]
pub fn progress(place: u32) {
    look(place, Permit::progress);
}

/// An item of a stream has come: a sign of life, and in time a probe's proof. Whether that settled the permit.
#[napi]
pub fn item(place: u32) -> bool {
    let proven = OUT.with_borrow_mut(|out| {
        let Out { permit, first } = out.get_mut(place as usize)?;
        let first = *first.get_or_insert_with(|| permit.elapsed());
        if !permit.is_proven(first) {
            permit.progress();
            return None;
        }
        Some((out.try_remove(place as usize)?, first))
    });
    if let Some((out, first)) = proven {
        out.permit.record(&Outcome::success(first));
        return true;
    }
    false
}

/// How long ago it was given; none once it is settled.
#[napi]
pub fn elapsed(place: u32) -> Option<f64> {
    look(place, |permit| in_ms(permit.elapsed()))
}

/// Whether it is a probe.
#[napi]
pub fn is_probe(place: u32) -> bool {
    look(place, Permit::is_probe) == Some(true)
}

/// In shadow mode, why an enforcing breaker would have refused.
#[napi]
pub fn would_reject(place: u32) -> Option<&'static str> {
    let refusal = look(place, Permit::would_reject)??;
    Some(refusal.reason.as_str())
}

/// How many calls of this thread are under way.
#[napi]
pub fn under_way() -> u32 {
    OUT.with_borrow(|out| number(out.len()))
}
