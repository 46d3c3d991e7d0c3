//! The gateway from the outside.
#![cfg(test)]

mod admin;
mod classified;
mod classify;
mod cli;
mod config;
mod connections;
mod demo;
mod fallback;
mod field_reports;
mod guarded;
mod layers;
mod logs;
mod mock;
mod outage;
mod proxy;
mod replay;
mod shutdown;
mod streams;
mod support;
mod wire;
