//! Models that think long before their first token, and how long they may.

use std::time::Duration;

/// The beginning of a name decides, the first row that fits; it ends where the name ends or a part of it does.
#[rustfmt::skip]
const MODELS: [(&str, u64); 21] = [
    ("o3-deep-research",      1800),
    ("o4-mini-deep-research", 1800),
    ("o1-pro",                 900),
    ("o3-pro",                 900),
    ("gpt-5-pro",              900),
    ("gpt-5.2-pro",            900),
    ("o1",                     300),
    ("o3",                     300),
    ("o3-mini",                300),
    ("o4-mini",                300),
    ("gpt-5",                  180),
    ("codex-mini",             180),
    ("gemini-2.5-pro",         180),
    ("gemini-3-pro",           180),
    ("grok-4",                 300),
    ("grok-3-mini",            180),
    ("deepseek-reasoner",      300),
    ("deepseek-r1",            300),
    ("qwq",                    180),
    ("magistral",              180),
    ("kimi-k2-thinking",       300),
];

/// The `first_token` that a known reasoning model needs; none for all others. It is what to use where configuration
/// says nothing for the model, if it is longer than what would hold otherwise.
///
/// ```
/// use std::time::Duration;
/// use fuseline_llm::reasoning_first_token;
///
/// assert_eq!(reasoning_first_token("openai/o3-2025-04-16"), Some(Duration::from_secs(300)));
/// assert_eq!(reasoning_first_token("gpt-4o"), None);
/// ```
pub fn reasoning_first_token(model: &str) -> Option<Duration> {
    let name = model.rsplit('/').next()?.to_ascii_lowercase();
    let (_, seconds) = MODELS.iter().find(|(beginning, _)| {
        name.strip_prefix(beginning)
            .is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()))
    })?;
    Some(Duration::from_secs(*seconds))
}
