//! What looks like a credential in a provider's message is masked before the message is logged or shown.
//!
//! Providers quote the key that they refuse, in part or as a whole, and name organisations and projects. One pass over
//! the words; a word that is masked by mistake costs less than a key in a log.

use std::borrow::Cow;

const MASK: &str = "***";

/// How credentials and the ids of who pays begin. This much of a word stays, so that its kind can be told.
#[rustfmt::skip]
const BEGINNINGS: [&str; 30] = [
    "sk-", "sk_", "pk-", "rk-", "sess-",        // OpenAI, Anthropic, DeepSeek, OpenRouter and those that follow them
    "org-", "org_", "proj-", "proj_",           // organisations and projects: OpenAI, Groq
    "AIza", "AQ.", "ya29.",                     // Google: keys, newer keys, OAuth tokens
    "AKIA", "ASIA", "ABSK", "bedrock-api-key-", // AWS
    "gsk_", "xai-", "csk-", "pplx-", "nvapi-",  // Groq, xAI, Cerebras, Perplexity, NVIDIA
    "hf_", "r8_", "fw_", "fw-", "tgp_",         // Hugging Face, Replicate, Fireworks, Together
    "ghp_", "gho_", "github_pat_",              // GitHub
    "eyJ",                                      // JWT
];

/// Shorter remainders are words such as `sk-learn`.
const SHORTEST_REMAINDER: usize = 8;

/// Names whose value is a secret, without case, `_` and `-`.
#[rustfmt::skip]
const NAMES: [&str; 11] = [
    "apikey", "xapikey", "xgoogapikey", "subscriptionkey", "authorization", "accesstoken", "refreshtoken",
    "clientsecret", "secret", "password",
    "provided", // Incorrect API key provided: ...
];

/// Schemes that stand before a secret with nothing but a space between.
const SCHEMES: [&str; 2] = ["bearer", "basic"];

/// Shorter values are words such as `API key: none`, and the name of a scheme.
const SHORTEST_VALUE: usize = 7;

/// Identifiers of requests are no secrets, and the first thing that a provider's support asks for.
const REQUEST_ID: &str = "req_";

/// From here on, letters with this many digits among them are no word and no model's name.
const SHORTEST_KEY: usize = 20;
const FEWEST_DIGITS: usize = 3;

/// A message with everything that looks like a credential, or like the id of an account, replaced by `***`.
///
/// Known are the beginnings of the usual keys, values after names such as `x-api-key:` and `Bearer`, and long runs of
/// letters and digits. Masking twice changes nothing more. Text without credentials is borrowed.
///
/// ```
/// use fuseline_llm::mask;
///
/// let message = "Incorrect API key provided: sk-proj-0123456789abcdef. You can find your key in the console.";
/// assert_eq!(mask(message), "Incorrect API key provided: sk-***. You can find your key in the console.");
/// ```
pub fn mask(text: &str) -> Cow<'_, str> {
    let mut masked = String::new();
    let mut copied = text;
    let mut before = Before::default();
    let mut rest = text;
    while let Some((gap, word, after)) = next_word(rest) {
        rest = after;
        let kept = kept(word, gap, &before);
        if let Some(kept) = kept {
            let clear = copied.len() - after.len() - word.len();
            masked.extend(copied.get(..clear));
            masked.push_str(kept);
            masked.push_str(MASK);
            copied = after;
        }
        before = Before {
            word,
            is_masked: kept.is_some(),
        };
    }
    if copied.len() == text.len() {
        return Cow::Borrowed(text);
    }
    masked.push_str(copied);
    Cow::Owned(masked)
}

/// The word before, and what became of it.
#[derive(Default)]
struct Before<'a> {
    word: &'a str,
    is_masked: bool,
}

/// The next word, with what stands before it and what follows. A full stop at its end is not part of it.
fn next_word(text: &str) -> Option<(&str, &str, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '*' | '~');
    let (gap, text) = text.split_at_checked(text.find(is_part)?)?;
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let word = text.get(..end)?.trim_end_matches('.');
    let end = if word.is_empty() { end } else { word.len() };
    let (word, rest) = text.split_at_checked(end)?;
    Some((gap, word, rest))
}

/// What of a word stays before the mask; none if the word stays as it is.
fn kept<'a>(word: &'a str, gap: &str, before: &Before<'_>) -> Option<&'a str> {
    if is_masked(word) || word.starts_with(REQUEST_ID) {
        return None;
    }
    let beginning = BEGINNINGS.iter().find_map(|beginning| {
        let (kept, remainder) = word.split_at_checked(beginning.len())?;
        (kept == *beginning && remainder.len() >= SHORTEST_REMAINDER).then_some(kept)
    });
    beginning.or_else(|| {
        // Base64 goes on behind a slash or a plus.
        let goes_on = before.is_masked && matches!(gap, "/" | "+");
        let is_value = word.len() >= SHORTEST_VALUE && is_said_secret(before.word, gap);
        (goes_on || is_value || is_key_like(word)).then_some("")
    })
}

/// Whether a word is what this module leaves; a mask behind anything else is a provider's, over a part of the secret.
fn is_masked(word: &str) -> bool {
    word.strip_suffix(MASK)
        .is_some_and(|kept| kept.is_empty() || BEGINNINGS.contains(&kept))
}

/// Whether a name and what stands behind it say that the next word is a secret.
fn is_said_secret(name: &str, gap: &str) -> bool {
    let is_one_of = |names: &[&str]| {
        names.iter().any(|known| {
            let letters = name.bytes().filter(|byte| !matches!(byte, b'_' | b'-'));
            letters
                .map(|byte| byte.to_ascii_lowercase())
                .eq(known.bytes())
        })
    };
    let is_joint = |c: char| matches!(c, ' ' | ':' | '=' | '"' | '\'' | '`' | '\\');
    gap.chars().all(is_joint)
        && (is_one_of(&SCHEMES) || (gap.contains([':', '=']) && is_one_of(&NAMES)))
}

/// Whether a long run of letters and digits is part of a word.
fn is_key_like(word: &str) -> bool {
    let mut runs = word.split(|c: char| !c.is_ascii_alphanumeric());
    runs.any(|run| {
        let digits = run.bytes().filter(u8::is_ascii_digit).count();
        run.len() >= SHORTEST_KEY && digits >= FEWEST_DIGITS && digits < run.len()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_looks_like_a_credential_is_masked() {
        for (text, masked) in [
            ("sk-proj-0123456789abcdef", "sk-***"),
            (
                "key 'sk-ant-api03-AbC_d-e1.', again",
                "key 'sk-***.', again",
            ),
            (
                "Incorrect API key provided: sk-proj-****abcd.",
                "Incorrect API key provided: sk-***.",
            ),
            (
                "Incorrect API key provided: my-own-key",
                "Incorrect API key provided: ***",
            ),
            (
                "Consumer 'api_key:AIzaSyA0123456789-abcdefghijklmnopqrst' has been suspended",
                "Consumer 'api_key:AIza***' has been suspended",
            ),
            (
                "Authorization: Bearer abc.def-ghi",
                "Authorization: Bearer ***",
            ),
            ("api_key: my-key***", "api_key: ***"),
            ("bearer  abcdefg", "bearer  ***"),
            ("authorization=abcdefg", "authorization=***"),
            (
                r#"{"x-api-key":"a-secret-value"}"#,
                r#"{"x-api-key":"***"}"#,
            ),
            (
                r#"{\"api_key\": \"a-secret-value\"}"#,
                r#"{\"api_key\": \"***\"}"#,
            ),
            (
                "client_secret=wJalrXUt/K7MDENG/bPx+RfiCY",
                "client_secret=***/***/***+***",
            ),
            ("0123456789abcdef0123456789ABCDEF", "***"),
            ("token eyJhbGciOi.J9.abc", "token eyJ***"),
            (
                "organization org-AbCdEfGh on tokens",
                "organization org-*** on tokens",
            ),
            ("project proj_AbCdEfGh", "project proj_***"),
            ("two: gsk_abcdefgh xai-abcdefgh", "two: gsk_*** xai-***"),
            ("é sk-abcdefgh é", "é sk-*** é"),
        ] {
            assert_eq!(mask(text), masked, "{text}");
        }
    }

    #[test]
    fn what_does_not_stays_and_is_borrowed() {
        for text in [
            "",
            "Rate limit reached for claude-3-5-sonnet-20241022 in 11.054s.",
            "meta-llama/Llama-3.3-70B-Instruct-Turbo",
            "GenerateRequestsPerMinutePerProjectPerModel-FreeTier",
            "API key not valid. Please pass a valid API key.",
            "Missing bearer token",
            "Install sk-learn first",
            "request req_011CSHoEeqs5C35K2UUqR7Fy",
            "request 123e4567-e89b-42d3-a456-426614174000",
            "12345678901234567890123",
            "Limit: 30000, Requested 31538...",
            "sk-***",
            "api_key:AIza***",
            "Authorization: Bearer ***",
            "***",
        ] {
            assert!(
                matches!(mask(text), Cow::Borrowed(same) if same == text),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_key_survives_and_masking_twice_changes_nothing(
            before in "\\PC{0,20}[ \"':=]",
            key in "(sk-|AIza|gsk_|Bearer )[A-Za-z0-9]{20}[0-9]{3}",
            after in "[ \"',.]\\PC{0,20}",
        ) {
            let text = format!("{before}{key}{after}");
            let masked = mask(&text);
            prop_assert!(!masked.contains(&key), "{}", masked);
            prop_assert_eq!(mask(&masked), masked.clone());
        }
    }
}
