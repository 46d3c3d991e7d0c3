//! `StreamTerms`: what a streamed answer is in, and what it may take.

use std::sync::Arc;

use fuseline_core::Tick;
use fuseline_llm::{Classifier, Collector, Dialect, Framing, StreamGuard, StreamTimers};

/// What a streamed answer is in, and what it may take. Made once for a provider, and used for all its streams.
///
/// ```
/// use std::time::Duration;
/// use fuseline::{StreamTerms, classify::{Dialect, Framing, StreamTimers}};
///
/// let terms = StreamTerms::new(Dialect::Gemini)
///     .framing(Framing::JsonArray) // server-sent events unless set
///     .timers(StreamTimers { stall: Duration::from_secs(10), ..StreamTimers::default() })
///     .provider("google");
/// # let _ = terms;
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct StreamTerms {
    dialect: Dialect,
    framing: Framing,
    timers: StreamTimers,
    pub(super) provider: Arc<str>,
    pub(super) classifier: &'static Classifier,
}

impl StreamTerms {
    /// Streams of this dialect in its [usual framing](Dialect::usual_framing), with the default limits, judged by the
    /// rules that hold for every provider.
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            framing: dialect.usual_framing(),
            timers: StreamTimers::default(),
            provider: Arc::default(),
            classifier: Classifier::builtin(),
        }
    }

    /// Another framing.
    pub const fn framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// The framing that this `content-type` announces; of one that nobody knows nothing changes.
    ///
    /// ```
    /// use fuseline::{StreamTerms, classify::Dialect};
    ///
    /// let terms = StreamTerms::new(Dialect::Cohere).content_type("application/stream+json");
    /// # let _ = terms;
    /// ```
    pub fn content_type(mut self, content_type: &str) -> Self {
        self.framing = Framing::of_content_type(content_type).unwrap_or(self.framing);
        self
    }

    /// Other limits. For a model that thinks for long, see
    /// [`reasoning_first_token`](fuseline_llm::reasoning_first_token).
    pub const fn timers(mut self, timers: StreamTimers) -> Self {
        self.timers = timers;
        self
    }

    /// Whose rules beside the common ones say what an error means: a name of [`Classifier::providers`], in lower case.
    pub fn provider(mut self, provider: impl Into<Arc<str>>) -> Self {
        self.provider = provider.into();
        self
    }

    /// Rules of your own. They are compiled once, and stay: a `LazyLock` holds them.
    pub const fn classifier(mut self, classifier: &'static Classifier) -> Self {
        self.classifier = classifier;
        self
    }

    /// For how long nothing but silence may come.
    #[cfg(feature = "reqwest")]
    pub(crate) const fn first_token(&self) -> std::time::Duration {
        self.timers.first_token
    }

    /// A guard for a stream that was asked for at `sent`, and that nobody reads yet.
    pub(super) fn guard(&self, sent: Tick, now: Tick) -> StreamGuard {
        let timers = self.timers.clone();
        let hold_back = std::time::Duration::ZERO;
        StreamGuard::new(self.dialect, self.framing, timers, hold_back, sent).pulled(now)
    }

    pub(super) fn collector(&self) -> Collector {
        Collector::new(self.dialect, self.framing)
    }
}

impl From<Dialect> for StreamTerms {
    fn from(dialect: Dialect) -> Self {
        Self::new(dialect)
    }
}
