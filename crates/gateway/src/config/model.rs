//! `[[models]]`: settings for the models that a pattern matches.

use fuseline_core::PolicySpec;

use super::reader::Section;
use super::{Pattern, TimeoutSpec, breaker};

/// One `[[models]]` table.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ModelRule {
    /// `match`: compared with the model name that the provider sees.
    pub pattern: Pattern,
    /// The tokens that these models take at once, where a target says nothing else.
    pub context: Option<u32>,
    /// Time limits for these models.
    pub timeouts: TimeoutSpec,
    /// Breaker settings for these models.
    pub breaker: PolicySpec,
}

impl ModelRule {
    pub(super) fn read(section: &mut Section<'_, '_>) -> Option<Self> {
        let pattern = section.need("match", "a model name as the provider sees it, or a glob");
        let doc = "tokens that such a model takes at once, where a target says nothing else";
        let context = section.opt("context", None, doc);
        section.ensure(
            context != Some(0),
            "context",
            "leaves no room",
            "write 1 or more",
        );
        let timeouts = section.overlay("timeouts", TimeoutSpec::read);
        let breaker = section.overlay("breaker", breaker::read);
        Some(Self {
            pattern: pattern?,
            context,
            timeouts,
            breaker,
        })
    }
}
