//! What the classifier is told of an exchange.

use crate::classify::Transcript;
use crate::evidence::Fault;
use crate::head::Head;
use crate::request::Operation;

/// An exchange as far as it came: head, body, and how it ended.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that drivers write down"
)]
pub struct Answer<'a> {
    /// The provider's name in the rules, in lower case, like `openai`; empty where it is not known.
    pub provider: &'a str,
    /// What the request was for: only where an answer was asked for is a success answer looked into.
    pub operation: Operation,
    /// The head, if one came.
    pub head: Option<Head<'a>>,
    /// What was read after it.
    pub body: Body<'a>,
    /// How it ended.
    pub ending: Ending,
}

/// What was read of an answer's body.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Body<'a> {
    /// Nothing was read: the head must do.
    Unread,
    /// All of it.
    Whole(&'a [u8]),
    /// Its beginning. An error cut in the middle still tells its code; a success answer that is cut is taken as good.
    Cut(&'a [u8]),
    /// Events.
    Stream(&'a Transcript),
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "complete by definition: it ended well, broke, or was given up"
)]
pub enum Ending {
    /// By its end, or it is still going on and the head decides.
    Complete,
    /// Something happened on the wire.
    Broken(Fault),
    /// The caller left.
    Left,
}
