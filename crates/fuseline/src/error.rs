//! `CircuitOpen`, a refusal with a name on it, and `Error`, what a guarded call can end in.

use std::fmt;
use std::time::Duration;

use fuseline_core::{Reason, Rejection, Scope, ScopeName};

/// The breaker refused the call, which was not made.
///
/// ```
/// use fuseline::{Breaker, Error, Policy, Reason};
///
/// let breaker = Breaker::new("openai", Policy::default());
/// breaker.force_open(None);
/// let Err(Error::Open(refused)) = breaker.call_blocking(|| Ok::<_, ()>(())) else { unreachable!() };
/// assert_eq!(refused.reason, Reason::Forced);
/// assert_eq!(refused.to_string(), "circuit `openai` is forced open, retry in 60 s");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CircuitOpen {
    /// Whose breaker.
    pub name: ScopeName,
    /// What that breaker guards.
    pub scope: Scope,
    /// Why it refused.
    pub reason: Reason,
    /// When it is worth asking again, from now. Milliseconds are exact; the message rounds up to whole seconds.
    pub retry_after: Duration,
}

impl CircuitOpen {
    /// What this breaker's rejection of a permit is as an error with a name.
    ///
    /// ```
    /// use fuseline::{Breaker, CircuitOpen, Policy};
    ///
    /// let breaker = Breaker::new("openai", Policy::default());
    /// breaker.force_open(None);
    /// let rejection = breaker.try_acquire().unwrap_err();
    /// let error = CircuitOpen::new(breaker.name(), rejection);
    /// assert_eq!(error.to_string(), "circuit `openai` is forced open, retry in 60 s");
    /// ```
    pub fn new(name: &ScopeName, rejection: Rejection) -> Self {
        Self {
            name: name.clone(),
            scope: name.scope(),
            reason: rejection.reason,
            retry_after: rejection.retry_after,
        }
    }
}

impl fmt::Display for CircuitOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.reason {
            Reason::Forced => "forced open",
            reason => reason.as_str(),
        };
        let seconds = self.retry_after.as_millis().div_ceil(1_000);
        write!(f, "circuit `{}` is {what}, retry in {seconds} s", self.name)
    }
}

impl std::error::Error for CircuitOpen {}

/// How a guarded call failed: refused by the breaker, or in the caller's own way.
///
/// ```
/// use fuseline::{Breaker, Error, Policy};
///
/// let breaker = Breaker::new("openai", Policy::default());
/// let answer = breaker.call_blocking(|| Err::<String, _>("no route to host"));
/// match answer {
///     Ok(text) => println!("{text}"),
///     Err(Error::Open(refused)) => println!("not asked, again in {:?}", refused.retry_after),
///     Err(Error::Inner(error)) => println!("asked in vain: {error}"),
///     Err(_) => {}
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error<E> {
    /// The breaker refused; the call was not made.
    Open(CircuitOpen),
    /// The call was made and failed by this error.
    Inner(E),
}

impl<E> Error<E> {
    /// Whether the breaker refused, so that nothing was sent.
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    /// When it is worth asking again, where the breaker refused.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Open(refused) => Some(refused.retry_after),
            Self::Inner(_) => None,
        }
    }

    /// One error for both, of a type that a refusal can be turned into: `anyhow::Error`, a boxed error, an enum of yours
    /// with a `From<CircuitOpen>`.
    ///
    /// ```
    /// use fuseline::{Breaker, CircuitOpen, Error, Policy};
    ///
    /// type Failed = Box<dyn std::error::Error + Send + Sync>;
    ///
    /// fn ask(breaker: &Breaker) -> Result<u8, Failed> {
    ///     breaker.call_blocking(|| Ok("42".parse()?)).map_err(Error::flatten)
    /// }
    ///
    /// let breaker = Breaker::new("openai", Policy::default());
    /// assert_eq!(ask(&breaker)?, 42);
    /// breaker.force_open(None);
    /// assert!(ask(&breaker).unwrap_err().is::<CircuitOpen>());
    /// # Ok::<(), Failed>(())
    /// ```
    pub fn flatten(self) -> E
    where
        E: From<CircuitOpen>,
    {
        match self {
            Self::Open(refused) => refused.into(),
            Self::Inner(error) => error,
        }
    }

    /// The call's own error, where it was made.
    pub fn into_inner(self) -> Option<E> {
        match self {
            Self::Open(_) => None,
            Self::Inner(error) => Some(error),
        }
    }
}

impl<E> From<CircuitOpen> for Error<E> {
    fn from(refused: CircuitOpen) -> Self {
        Self::Open(refused)
    }
}

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(refused) => refused.fmt(f),
            Self::Inner(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for Error<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open(_) => None,
            // It speaks for itself, so what comes next is what caused it.
            Self::Inner(error) => error.source(),
        }
    }
}
