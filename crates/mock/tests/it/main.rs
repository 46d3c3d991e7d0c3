//! The scripted provider over real sockets, asked by a client that sees every byte.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may panic"
)]

mod answers;
mod client;
mod door;
mod faults;
mod leaving;
mod records;
