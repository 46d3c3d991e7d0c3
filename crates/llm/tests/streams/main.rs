//! Streams, recorded and made up, through the scanner in every division into chunks.
#![cfg(test)]

mod chunks;
mod collect;
mod guard;
mod made_up;
mod recorded;
mod support;
