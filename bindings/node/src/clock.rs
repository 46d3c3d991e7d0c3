//! `Clock`: where breakers have their time from; tests move one by hand.

use napi_derive::napi;

use crate::policy::ms;

/// The system's monotonic clock, or one that stands until it is moved.
#[napi]
#[derive(Clone, Debug)]
pub struct Clock(pub(crate) fuseline::Clock);

#[napi]
impl Clock {
    /// The system's.
    #[napi(factory)]
    pub fn system() -> Self {
        Self(fuseline::Clock::system())
    }

    /// One that is moved by hand.
    #[napi(factory)]
    pub fn manual() -> Self {
        Self(fuseline::Clock::manual())
    }

    /// Moves a manual clock.
    #[napi]
    pub fn advance(&self, by: f64) -> napi::Result<()> {
        self.0.advance(ms("by", by)?);
        Ok(())
    }

    /// Milliseconds since its origin.
    #[napi]
    pub fn now(&self) -> f64 {
        self.0.now().as_millis() as f64
    }
}
