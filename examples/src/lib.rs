//! The library in use: each file of `src/bin` is a program of its own, to be read and copied from.
//!
//! `cargo run -- mock` plays a provider for them, without a key or a network; then `cargo run -p fuseline-examples --bin
//! quick_start` and so on.
//!
//! | program | shows |
//! |---|---|
//! | `quick_start` | one breaker around one async call |
//! | `chain` | a second provider for when the first is out |
//! | `chain_cache` | the last good answer for when all are out |
//! | `reqwest_stream` | a streamed answer through your `reqwest::Client` |
//! | `collected_answer` | a streamed answer that is whole, with its tool calls, or none |
//! | `tower_client` | a layer for any HTTP client that is a tower service |
//! | `axum_app` | a web application that tells its own callers when to come back |
//! | `blocking_threads` | threads without async |
//! | `presets` | the behaviour of known systems, by one word |
#![cfg_attr(doctest, doc = include_str!("../../README.md"))]
