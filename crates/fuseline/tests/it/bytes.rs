//! Guarded streams of bytes, in virtual time: what comes out, what settles, and when.

mod collected;
mod endings;
mod identity;
mod limits;
mod reports;
mod world;
