//! A fleet: replicas that exchange what they know of their breakers, and act as one.

mod member;
mod message;
#[cfg(test)]
mod model;
#[cfg(test)]
mod server;
