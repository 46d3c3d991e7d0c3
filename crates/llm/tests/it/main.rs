//! What the crate makes of real answers: recorded shapes, their variants, field reports.
#![cfg(test)]

mod case;
mod described;
mod mutations;
mod never_panics;
mod own_rules;
mod recorded;
mod reports;
mod usable;
