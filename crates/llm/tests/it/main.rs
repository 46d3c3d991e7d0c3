//! What the crate makes of real answers: recorded shapes, their variants, field reports.

mod case;
mod described;
mod mutations;
mod never_panics;
mod own_rules;
mod recorded;
mod reports;
mod usable;
