//! The library from outside: every entrance, every ending, over real sockets where there is one.
#![cfg(test)]

mod chain;
mod crowd;
mod entrances;
mod http;
mod programs;
mod registry;
mod streams;
mod support;
