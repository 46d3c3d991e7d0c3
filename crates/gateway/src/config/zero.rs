//! What the gateway does without a configuration file: pass the caller's own key on to providers that it knows.

use std::collections::BTreeMap;

use fuseline_core::PolicySpec;
use http::Uri;

use super::provider::{BaseUrl, Credential, Protocol, Provider};
use super::rules;
use super::timeouts::TimeoutSpec;

/// Name (and path prefix), protocol and where the API begins.
const KNOWN: [(&str, Protocol, &str); 9] = [
    ("openai", Protocol::OpenAi, "https://api.openai.com/v1"),
    (
        "anthropic",
        Protocol::Anthropic,
        "https://api.anthropic.com",
    ),
    (
        "gemini",
        Protocol::Gemini,
        "https://generativelanguage.googleapis.com",
    ),
    ("groq", Protocol::OpenAi, "https://api.groq.com/openai/v1"),
    ("mistral", Protocol::OpenAi, "https://api.mistral.ai/v1"),
    (
        "openrouter",
        Protocol::OpenAi,
        "https://openrouter.ai/api/v1",
    ),
    ("deepseek", Protocol::OpenAi, "https://api.deepseek.com/v1"),
    ("xai", Protocol::OpenAi, "https://api.x.ai/v1"),
    ("together", Protocol::OpenAi, "https://api.together.xyz/v1"),
];

/// The providers served under their names where none is configured.
pub(super) fn providers() -> BTreeMap<String, Provider> {
    let provider = |(name, protocol, base_url): (&str, Protocol, &'static str)| {
        let base_url = Uri::from_static(base_url);
        let provider = Provider {
            protocol,
            rules: rules::of_address(&base_url).to_owned(),
            base_url: BaseUrl::known(base_url),
            credential: Credential::Caller,
            timeouts: TimeoutSpec::default(),
            breaker: PolicySpec::default(),
        };
        (name.to_owned(), provider)
    };
    KNOWN.into_iter().map(provider).collect()
}
