//! Streams, recorded and made up, through the scanner in every division into chunks.

mod chunks;
mod made_up;
mod recorded;
mod support;
