//! How a provider behaves during a phase: the rules, the replies in their order, and the door.

use std::fmt;

use crate::Reply;
use crate::error::ScriptError;
use crate::request::Facts;

/// How the provider behaves during a phase.
#[derive(Clone, Debug)]
#[must_use]
pub struct Conduct {
    pub(super) doorway: Doorway,
    pub(super) rules: Vec<Rule>,
    replies: Sequence,
}

/// What happens to new connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doorway {
    Accept,
    Refuse,
    Reset,
}

/// Replies of their own for some requests: all conditions given must hold.
#[derive(Clone, Debug)]
#[must_use]
pub struct Rule {
    path: Option<String>,
    model: Option<String>,
    key: Option<Key>,
    replies: Sequence,
}

/// A caller's API key, never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Key(pub(crate) String);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// One reply per request, in order.
#[derive(Clone, Debug)]
struct Sequence {
    replies: Vec<Reply>,
    then: Then,
    next: usize,
}

/// What follows the last reply of a sequence.
#[derive(Clone, Copy, Debug)]
enum Then {
    First,
    Last,
}

impl Conduct {
    /// One reply per request; the last repeats.
    pub fn sequence(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::new(Doorway::Accept, Sequence::new(replies, Then::Last))
    }

    /// One reply per request, over and over.
    pub fn cycle(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::new(Doorway::Accept, Sequence::new(replies, Then::First))
    }

    /// Nobody listens: new connections are refused, idle ones are closed, a request on one still open is reset.
    pub fn refuse() -> Self {
        Self::new(Doorway::Refuse, Sequence::new([], Then::Last))
    }

    /// New connections are accepted and reset at once; so is a request on one still open.
    pub fn reset_on_accept() -> Self {
        Self::new(Doorway::Reset, Sequence::new([], Then::Last))
    }

    fn new(doorway: Doorway, replies: Sequence) -> Self {
        Self {
            doorway,
            rules: Vec::new(),
            replies,
        }
    }

    /// Adds a rule; the first that fits a request answers it.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    pub(super) fn check(&self, place: &str) -> Result<(), ScriptError> {
        if self.doorway != Doorway::Accept {
            return if self.rules.is_empty() {
                Ok(())
            } else {
                Err(ScriptError::new(
                    place,
                    "rules cannot apply where no request arrives; leave them out",
                ))
            };
        }
        for (index, rule) in self.rules.iter().enumerate() {
            let place = inside(place, "rules", index);
            if rule.path.is_none() && rule.model.is_none() && rule.key.is_none() {
                return Err(ScriptError::new(place, "a rule needs path, model or key"));
            }
            rule.replies.check(&place)?;
        }
        self.replies.check(place)
    }

    pub(super) fn reply(&mut self, facts: &Facts) -> Option<Reply> {
        if self.doorway != Doorway::Accept {
            return None;
        }
        let rule = self.rules.iter_mut().find(|rule| rule.fits(facts));
        rule.map_or(&mut self.replies, |rule| &mut rule.replies)
            .next()
    }
}

impl From<Reply> for Conduct {
    fn from(reply: Reply) -> Self {
        Self::sequence([reply])
    }
}

impl Rule {
    /// For paths that end so (the query left aside).
    pub fn path(suffix: impl Into<String>) -> Self {
        Self::when(Some(suffix.into()), None, None)
    }

    /// For requests whose body names exactly this model.
    pub fn model(model: impl Into<String>) -> Self {
        Self::when(None, Some(model.into()), None)
    }

    /// For requests with this API key, in `authorization: Bearer`, `x-api-key` or `api-key`.
    pub fn key(key: impl Into<String>) -> Self {
        Self::when(None, None, Some(key.into()))
    }

    /// For requests that fit all of what is given.
    pub(crate) fn when(path: Option<String>, model: Option<String>, key: Option<String>) -> Self {
        Self {
            path,
            model,
            key: key.map(Key),
            replies: Sequence::new([Reply::ok()], Then::Last),
        }
    }

    /// Asks for this path suffix too.
    pub fn and_path(mut self, suffix: impl Into<String>) -> Self {
        self.path = Some(suffix.into());
        self
    }

    /// Asks for this model too.
    pub fn and_model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Always this reply.
    pub fn reply(self, reply: Reply) -> Self {
        self.sequence([reply])
    }

    /// One reply per request that fits; the last repeats.
    pub fn sequence(mut self, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.replies = Sequence::new(replies, Then::Last);
        self
    }

    /// One reply per request that fits, over and over.
    pub fn cycle(mut self, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.replies = Sequence::new(replies, Then::First);
        self
    }

    fn fits(&self, facts: &Facts) -> bool {
        self.path
            .as_ref()
            .is_none_or(|suffix| facts.path.ends_with(suffix.as_str()))
            && (self.model.is_none() || self.model == facts.model)
            && (self.key.is_none() || self.key == facts.key)
    }
}

impl Sequence {
    fn new(replies: impl IntoIterator<Item = Reply>, then: Then) -> Self {
        Self {
            replies: replies.into_iter().collect(),
            then,
            next: 0,
        }
    }

    fn check(&self, place: &str) -> Result<(), ScriptError> {
        if self.replies.is_empty() {
            return Err(ScriptError::new(
                place,
                "replies is empty, must hold at least one",
            ));
        }
        for (index, reply) in self.replies.iter().enumerate() {
            if let Some(problem) = reply.problem() {
                return Err(ScriptError::new(inside(place, "replies", index), problem));
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Option<Reply> {
        let reply = self.replies.get(self.next).cloned();
        let last = self.next + 1 >= self.replies.len();
        self.next = match self.then {
            Then::First if last => 0,
            Then::Last if last => self.next,
            Then::First | Then::Last => self.next + 1,
        };
        reply
    }
}

/// The place of a list's entry, at the top of a script or inside a phase or rule.
fn inside(place: &str, list: &str, index: usize) -> String {
    let dot = if place.is_empty() { "" } else { "." };
    format!("{place}{dot}{list}[{index}]")
}
