//! The gateway from the outside.
#![cfg(test)]

mod admin;
mod cache;
mod caller;
mod canary;
mod classified;
mod classify;
mod cli;
mod coded;
mod config;
mod connections;
mod demo;
mod exhausted;
mod fallback;
mod field_reports;
mod fleet;
mod guarded;
mod layers;
mod logs;
mod metrics;
mod mock;
mod operator;
mod outage;
mod proxy;
mod reload;
mod replay;
mod routing;
mod shutdown;
mod state;
mod streams;
mod support;
mod tls;
mod webhook;
mod wire;
