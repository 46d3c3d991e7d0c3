//! `IntoName`: what names a breaker.

use fuseline_core::ScopeName;

/// What names a breaker: a text names one thing that is guarded, a [`ScopeName`] also tells its scope.
///
/// ```
/// use fuseline::{Breaker, Policy, ScopeName};
///
/// let provider = Breaker::new("openai", Policy::default());
/// let model = Breaker::new(ScopeName::model("openai", "gpt-5"), Policy::default());
/// assert_eq!(model.name().to_string(), "openai/gpt-5");
/// # let _ = provider;
/// ```
pub trait IntoName {
    /// The name.
    fn into_name(self) -> ScopeName;
}

impl IntoName for ScopeName {
    fn into_name(self) -> ScopeName {
        self
    }
}

impl IntoName for &ScopeName {
    fn into_name(self) -> ScopeName {
        self.clone()
    }
}

impl IntoName for &str {
    fn into_name(self) -> ScopeName {
        ScopeName::provider(self)
    }
}

impl IntoName for String {
    fn into_name(self) -> ScopeName {
        ScopeName::provider(self.as_str())
    }
}

impl IntoName for &String {
    fn into_name(self) -> ScopeName {
        ScopeName::provider(self)
    }
}
