//! The gateway from the outside.
#![cfg(test)]

mod admin;
mod caller;
mod classified;
mod classify;
mod cli;
mod coded;
mod config;
mod connections;
mod demo;
mod fallback;
mod field_reports;
mod guarded;
mod layers;
mod logs;
mod metrics;
mod mock;
mod operator;
mod outage;
mod proxy;
mod replay;
mod shutdown;
mod streams;
mod support;
mod tls;
mod wire;
