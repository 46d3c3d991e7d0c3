//! The library from outside: every entrance, every ending, over real sockets where there is one.
#![cfg(test)]

mod bodies;
mod bytes;
mod chain;
mod crowd;
mod endings;
mod entrances;
mod http;
mod programs;
mod registry;
mod runtimes;
mod slow_bodies;
mod streams;
mod support;
mod watched;
