//! `Finish`: why a model stopped, by the words that providers have for it.

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Finish {
    /// It had said all, or wants a tool. A reason that nobody knows is taken for this one.
    Stop,
    /// It reached a limit of tokens; without any output, reasoning has used them up.
    Length,
    /// It was stopped, or the answer withheld, for what it said; with the reason.
    Policy(&'static str),
    /// It broke down, told as if it were an end; with the reason.
    Failure(&'static str),
}

/// The case of letters does not matter.
#[rustfmt::skip]
const REASONS: [(&str, Finish); 24] = [
    ("length",                        Finish::Length),
    ("max_tokens",                    Finish::Length),
    ("max_output_tokens",             Finish::Length),
    ("model_context_window_exceeded", Finish::Length),
    ("content_filter",                Finish::Policy("content_filter")),
    ("content_filtered",              Finish::Policy("content_filtered")),
    ("refusal",                       Finish::Policy("refusal")),
    ("safety",                        Finish::Policy("safety")),
    ("image_safety",                  Finish::Policy("image_safety")),
    ("recitation",                    Finish::Policy("recitation")),
    ("prohibited_content",            Finish::Policy("prohibited_content")),
    ("blocklist",                     Finish::Policy("blocklist")),
    ("spii",                          Finish::Policy("spii")),
    ("guardrail_intervened",          Finish::Policy("guardrail_intervened")),
    ("error_toxic",                   Finish::Policy("error_toxic")),
    ("insufficient_system_resource",  Finish::Failure("insufficient_system_resource")), // DeepSeek
    ("error",                         Finish::Failure("error")),                        // OpenRouter, Cohere
    ("error_limit",                   Finish::Failure("error_limit")),                  // Cohere
    ("timeout",                       Finish::Failure("timeout")),                      // Cohere
    ("malformed_function_call",       Finish::Failure("malformed_function_call")),      // Gemini
    ("unexpected_tool_call",          Finish::Failure("unexpected_tool_call")),         // Gemini
    ("malformed_model_output",        Finish::Failure("malformed_model_output")),       // Bedrock
    ("malformed_tool_use",            Finish::Failure("malformed_tool_use")),           // Bedrock
    ("stop",                          Finish::Stop),
];

impl Finish {
    /// The reason in the word that stands for it: a provider's own, or the most common one.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Policy(reason) | Self::Failure(reason) => reason,
        }
    }

    /// None for an empty reason, which some send until they have one.
    pub(super) fn of(reason: &str) -> Option<Self> {
        if reason.is_empty() {
            return None;
        }
        let known = REASONS
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(reason));
        Some(known.map_or(Self::Stop, |(_, finish)| *finish))
    }
}
