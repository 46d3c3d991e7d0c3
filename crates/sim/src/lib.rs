//! The breaker in virtual time: outages simulated over real traffic, and recorded calls judged by other settings.
//!
//! No I/O, no clock, no threads: everything follows from its arguments, a seed among them. What is simulated is the gateway's way
//! of making calls (leave, attempt, retry, fallback) around the real state machine of `fuseline-core`.
//!
//! ```
//! use fuseline_sim::{Outage, Run, Subject, Traffic};
//! use core::time::Duration;
//!
//! let traffic = Traffic::recorded().thinned(20, 1);
//! let run = Run {
//!     traffic: &traffic,
//!     outage: Outage::Down,
//!     incident: Duration::from_secs(600),
//!     replicas: 1,
//!     seed: 7,
//! };
//! let with = run.play(&Subject::defaults());
//! let without = run.play(&Subject::no_breaker());
//! assert!(with.wasted < without.wasted / 2);
//! assert!(with.detected.is_some() && without.detected.is_none());
//! ```
//!
//! Where to look: [`Run`] for one outage, [`Study`] for many, [`replay`] for calls that were recorded, [`chart`] for figures.

mod agenda;
mod chance;
pub mod chart;
mod incidents;
mod outage;
mod recorded;
mod report;
mod run;
mod study;
mod subject;
mod traffic;

pub use incidents::incident_lengths;
pub use outage::Outage;
pub use recorded::{Judged, Recorded, assume_refused, replay};
pub use report::{as_detection, as_markdown, as_ratios, as_svg};
pub use run::{Measures, Run};
pub use study::{Cell, Scene, Study};
pub use subject::Subject;
pub use traffic::Traffic;
