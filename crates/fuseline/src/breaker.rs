//! `Breaker`: a circuit breaker with a clock.

use std::borrow::Borrow;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use fuseline_core::{Clock, Policy, Rejection, ScopeName, Snapshot, State, Tick, Transition};

use crate::error::CircuitOpen;
use crate::name::IntoName;
use crate::permit::Permit;

/// A circuit breaker. Clones are handles on the same one; it is cheap to clone and to share between threads and tasks.
///
/// Guard calls with [`call`](Self::call) (async, under any runtime), [`call_blocking`](Self::call_blocking),
/// [`call_stream`](Self::call_stream), or by hand with [`try_acquire`](Self::try_acquire). Nothing runs in the
/// background: time passes when somebody asks.
///
/// ```
/// use fuseline::{Breaker, Error, Kind, Policy, State};
///
/// let breaker = Breaker::new("openai", Policy::default());
/// for _ in 0..5 {
///     let _ = breaker.call_blocking(|| Err::<(), _>("503"));
/// }
/// assert_eq!(breaker.state(), State::Open);
/// let refused = breaker.call_blocking(|| Ok::<_, &str>("never asked")).unwrap_err();
/// assert!(refused.is_open());
/// assert!(refused.retry_after().unwrap() >= std::time::Duration::from_secs(14));
/// ```
#[derive(Clone, Debug)]
pub struct Breaker(fuseline_core::Breaker);

impl Breaker {
    /// A closed breaker of this name, timed by the system's monotonic clock. `Policy::default()` opens at 5 failures
    /// in a row, or when half of at least 10 calls within 60 s failed, for 15 s; [`Policy::new`] checks other settings.
    ///
    /// Its cooldowns are lengthened by chance (`jitter`, up to a tenth unless set), so that the processes of a fleet do
    /// not come back in the same instant.
    ///
    /// ```
    /// use fuseline::{Breaker, Policy, PolicySpec, Preset};
    ///
    /// let spec = PolicySpec { preset: Some(Preset::Llmtest), ..PolicySpec::default() };
    /// let breaker = Breaker::new("openai", Policy::new(&spec)?);
    /// assert!(breaker.is_available());
    /// # Ok::<(), fuseline::PolicyError>(())
    /// ```
    pub fn new(name: impl IntoName, policy: Policy) -> Self {
        Self::seeded(name, policy, random_seed(), Clock::system())
    }

    /// As [`new`](Self::new), timed by this clock: tests move a [`Clock::manual`] by hand. Its jitter follows from its
    /// name alone, so that a test sees the same cooldowns each time.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fuseline::{Breaker, Clock, Failure, Kind, Outcome, Policy};
    ///
    /// let clock = Clock::manual();
    /// let breaker = Breaker::with_clock("openai", Policy::default(), clock.clone());
    /// breaker.try_acquire()?.record(&Outcome::Failure(Failure::new(Kind::ServerError).open_now()));
    /// assert!(!breaker.is_available());
    /// clock.advance(Duration::from_secs(20));
    /// assert!(breaker.is_available());
    /// # Ok::<(), fuseline::Rejection>(())
    /// ```
    pub fn with_clock(name: impl IntoName, policy: Policy, clock: Clock) -> Self {
        Self::seeded(name, policy, 0, clock)
    }

    fn seeded(name: impl IntoName, policy: Policy, seed: u64, clock: Clock) -> Self {
        let name = name.into_name();
        Self(fuseline_core::Breaker::with_clock(
            name, policy, seed, clock,
        ))
    }

    /// One that has a clock.
    pub(crate) const fn from_core(core: fuseline_core::Breaker) -> Self {
        Self(core)
    }

    /// Asks for leave to make one call, and never waits. The permit borrows this breaker;
    /// [`try_acquire_owned`](Self::try_acquire_owned) gives one that can be moved to another task.
    ///
    /// # Errors
    /// The call must not be made; the refusal says why, and when to ask again.
    ///
    /// ```
    /// use fuseline::{Breaker, Kind, Policy};
    ///
    /// let breaker = Breaker::new("openai", Policy::default());
    /// let permit = breaker.try_acquire()?;
    /// match "an answer".parse::<f64>() {
    ///     Ok(_) => permit.success(),
    ///     Err(_) => permit.failure(Kind::ServerError),
    /// };
    /// # Ok::<(), fuseline::Rejection>(())
    /// ```
    #[inline(always)]
    pub fn try_acquire(&self) -> Result<Permit<&Self>, Rejection> {
        self.try_acquire_within(Duration::ZERO)
    }

    /// As [`try_acquire`](Self::try_acquire), for a call that is given up after `limit`: where it is a probe, its lease
    /// then lasts `limit` and a second at least, so that a slow probe is not taken for a lost one.
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire).
    #[inline(always)]
    pub fn try_acquire_within(&self, limit: Duration) -> Result<Permit<&Self>, Rejection> {
        fuseline_core::Permit::acquire(self, limit, self.0.now()).map(Permit::new)
    }

    /// As [`try_acquire`](Self::try_acquire), with a permit that owns its breaker: [`Permit::into_owned`].
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire).
    ///
    /// ```
    /// use fuseline::{Breaker, Policy};
    ///
    /// let breaker = Breaker::new("openai", Policy::default());
    /// let permit = breaker.try_acquire_owned()?;
    /// std::thread::spawn(move || permit.success()).join().unwrap();
    /// # Ok::<(), fuseline::Rejection>(())
    /// ```
    #[inline(always)]
    pub fn try_acquire_owned(&self) -> Result<Permit, Rejection> {
        self.try_acquire().map(Permit::into_owned)
    }

    /// As [`try_acquire`](Self::try_acquire), for what is refused by name.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Result<Permit<&Self>, CircuitOpen> {
        self.try_acquire()
            .map_err(|rejection| self.refused(rejection))
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn refused(&self, rejection: Rejection) -> CircuitOpen {
        CircuitOpen::new(self.name(), rejection)
    }

    /// Its name, which tells its scope.
    pub fn name(&self) -> &ScopeName {
        self.0.name()
    }

    /// The settings in force.
    pub fn policy(&self) -> Policy {
        self.0.policy()
    }

    /// The present by its clock: [`Transition::at`] and [`Snapshot::at`] are such times.
    pub fn now(&self) -> Tick {
        self.0.now()
    }

    /// The state as the next call would find it. An `open` whose cooldown is over still reads `open`: only a call
    /// makes it half-open.
    pub fn state(&self) -> State {
        self.0.state(self.0.now())
    }

    /// Whether a call would be let through now. Asking changes nothing, and reserves nothing.
    pub fn is_available(&self) -> bool {
        self.0.is_available(self.0.now())
    }

    /// Everything there is to see about it at this instant: state, rules with what they observe, the last failures.
    ///
    /// ```
    /// use fuseline::{Breaker, Kind, Policy, State};
    ///
    /// let breaker = Breaker::new("openai", Policy::default());
    /// for _ in 0..3 {
    ///     breaker.try_acquire()?.failure(Kind::Timeout);
    /// }
    /// let seen = breaker.snapshot();
    /// assert_eq!((seen.state, seen.run), (State::Degraded, 3)); // 3 of 5: 60 % of the way
    /// assert_eq!(seen.kinds, [(Kind::Timeout, 3)]);
    /// # Ok::<(), fuseline::Rejection>(())
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        self.0.snapshot(self.0.now())
    }

    /// Its transitions after number `after`, oldest first; the last 20 are kept. [`Registry::events`] reads those of
    /// many breakers.
    ///
    /// ```
    /// use fuseline::{Breaker, Kind, Policy};
    ///
    /// let breaker = Breaker::new("openai", Policy::default());
    /// for _ in 0..5 {
    ///     breaker.try_acquire()?.failure(Kind::Timeout);
    /// }
    /// let mut why = breaker.history(0).into_iter().map(|transition| transition.why.to_string());
    /// assert!(why.any(|why| why.starts_with("consecutive 5/5, timeout")));
    /// # Ok::<(), fuseline::Rejection>(())
    /// ```
    ///
    /// [`Registry::events`]: crate::Registry::events
    pub fn history(&self, after: u64) -> Vec<Transition> {
        self.0.history(after)
    }

    /// Refuses all calls, for this long, or until [`release`](Self::release).
    ///
    /// ```
    /// use std::time::Duration;
    /// use fuseline::{Breaker, Policy, State};
    ///
    /// let breaker = Breaker::new("openai", Policy::default());
    /// breaker.force_open(Some(Duration::from_secs(300)));
    /// assert_eq!(breaker.state(), State::ForcedOpen);
    /// breaker.release();
    /// assert_eq!(breaker.state(), State::Closed);
    /// ```
    pub fn force_open(&self, lasting: Option<Duration>) {
        let now = self.0.now();
        self.0.force_open(lasting.map(|length| now + length), now);
    }

    /// Lets all calls pass, for this long, or until [`release`](Self::release).
    pub fn force_closed(&self, lasting: Option<Duration>) {
        let now = self.0.now();
        self.0.force_closed(lasting.map(|length| now + length), now);
    }

    /// Ends a forced state in a fresh `closed`. Does nothing where none is in force.
    pub fn release(&self) {
        self.0.release(self.0.now());
    }

    /// A fresh `closed`, from any state.
    pub fn reset(&self) {
        self.0.reset(self.0.now());
    }

    /// Other settings from now on, for all handles. The state, the run of failures and a running cooldown stay; a
    /// window that changed starts empty.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fuseline::{Breaker, Policy, PolicySpec};
    ///
    /// let breaker = Breaker::new("openai", Policy::default());
    /// let spec = PolicySpec { cooldown: Some(Duration::from_secs(60)), ..PolicySpec::default() };
    /// breaker.reconfigure(Policy::new(&spec)?);
    /// assert_eq!(breaker.policy().cooldown(), Duration::from_secs(60));
    /// # Ok::<(), fuseline::PolicyError>(())
    /// ```
    pub fn reconfigure(&self, policy: Policy) {
        self.0.reconfigure(policy, self.0.now());
    }
}

impl Borrow<fuseline_core::Breaker> for Breaker {
    #[inline]
    fn borrow(&self) -> &fuseline_core::Breaker {
        &self.0
    }
}

impl Borrow<fuseline_core::Breaker> for &Breaker {
    #[inline]
    fn borrow(&self) -> &fuseline_core::Breaker {
        &self.0
    }
}

/// The seed of a jitter that no other process shares.
pub(crate) fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}
