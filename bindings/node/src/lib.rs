//! `fuseline.node`: breakers, verdicts and watched streams for the Node package around it.
//!
//! It is private: what users see is written by hand in `lib/` and `index.d.ts`. Nothing here waits, nothing calls back, and
//! nothing runs in the background: numbers, texts and bytes are handed over one call at a time, and whoever awaits does so
//! in his own language. Durations are milliseconds, as JavaScript counts.

pub mod breaker;
pub mod calls;
pub mod clock;
pub mod keep;
pub mod policy;
pub mod registry;
pub mod verdict;
pub mod view;
pub mod watch;
