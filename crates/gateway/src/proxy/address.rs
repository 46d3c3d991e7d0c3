//! The address of a call at its target: base URL and path joined so that the version part is there exactly once.

use fuseline_llm::Protocol;
use http::Uri;
use http::uri::PathAndQuery;

/// Joins a provider's base URL with a caller's path and query, both kept byte for byte but for the version.
///
/// The caller's version is left out where the base has its own. A base with a path and no version is taken as the
/// SDKs of its dialect take it: OpenAI's append `/chat/completions`, Anthropic's and Google's bring the version along.
pub(crate) fn join(
    protocol: Protocol,
    base: &Uri,
    path: &str,
    query: Option<&str>,
) -> Result<Uri, http::Error> {
    let root = base.path().trim_end_matches('/');
    let (version, rest) = split_version(path);
    let version = version.unwrap_or(match protocol {
        Protocol::Gemini => "v1beta",
        _ => "v1",
    });
    let has_version = match protocol {
        Protocol::OpenAi => !root.is_empty(),
        _ => root.rsplit('/').next().is_some_and(is_version),
    };
    let query_len = |query: Option<&str>| query.map_or(0, |query| query.len() + 1);
    let room = root.len() + version.len() + rest.len() + 1;
    let mut joined = String::with_capacity(room + query_len(base.query()) + query_len(query));
    joined.push_str(root);
    if !has_version {
        joined.push('/');
        joined.push_str(version);
    }
    joined.push_str(rest);
    for (at, query) in [base.query(), query]
        .into_iter()
        .flatten()
        .filter(|query| !query.is_empty())
        .enumerate()
    {
        joined.push(if at == 0 { '?' } else { '&' });
        joined.push_str(query);
    }
    let mut parts = http::uri::Parts::default();
    parts.scheme = base.scheme().cloned();
    parts.authority = base.authority().cloned();
    parts.path_and_query = Some(PathAndQuery::try_from(joined)?);
    Ok(Uri::from_parts(parts)?)
}

/// Whether a path can be joined to a base without leaving it: it begins at the root, and no segment steps upwards.
pub(crate) fn stays_below(path: &str) -> bool {
    let steps = |segment: &str| {
        let is_dotted = segment.starts_with(['.', '%']);
        is_dotted && {
            let plain = segment.to_ascii_lowercase().replace("%2e", ".");
            plain == "." || plain == ".."
        }
    };
    path.starts_with('/') && !path.split(['/', '\\']).any(steps)
}

/// `/v1/files` is `v1` and `/files`; `/files` has no version. Slashes before and after a version count as one.
fn split_version(path: &str) -> (Option<&str>, &str) {
    let path = with_one_slash(path);
    let first = path
        .strip_prefix('/')
        .and_then(|path| path.split('/').next())
        .filter(|first| is_version(first));
    first.map_or((None, path), |first| {
        let rest = path.get(first.len() + 1..).unwrap_or_default();
        (Some(first), with_one_slash(rest))
    })
}

/// The path from the last of its leading slashes on.
fn with_one_slash(path: &str) -> &str {
    let slashes = path.len() - path.trim_start_matches('/').len();
    path.get(slashes.saturating_sub(1)..).unwrap_or_default()
}

fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|rest| {
        rest.starts_with(|first: char| first.is_ascii_digit())
            && rest.chars().all(|sign| sign.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(protocol: Protocol, base: &str, path: &str, query: Option<&str>) -> String {
        join(protocol, &base.parse().unwrap(), path, query)
            .unwrap()
            .to_string()
    }

    #[test]
    fn report_131_every_form_of_a_base_url_hits_its_path_once() {
        for (base, expected) in [
            ("http://host", "http://host/v1/chat/completions"),
            ("http://host/", "http://host/v1/chat/completions"),
            ("http://host/v1", "http://host/v1/chat/completions"),
            ("http://host/v1/", "http://host/v1/chat/completions"),
            ("http://host/v4", "http://host/v4/chat/completions"),
            (
                "http://host/openai/v1",
                "http://host/openai/v1/chat/completions",
            ),
            (
                "http://host/v1beta/openai/",
                "http://host/v1beta/openai/chat/completions",
            ),
            (
                "http://host/openai/deployments/x?api-version=2026-01-01",
                "http://host/openai/deployments/x/chat/completions?api-version=2026-01-01",
            ),
        ] {
            assert_eq!(
                joined(Protocol::OpenAi, base, "/v1/chat/completions", None),
                expected,
                "{base}"
            );
        }
        for (base, expected) in [
            (
                "https://api.anthropic.com",
                "https://api.anthropic.com/v1/messages",
            ),
            (
                "https://api.anthropic.com/v1/",
                "https://api.anthropic.com/v1/messages",
            ),
            (
                "https://host/anthropic",
                "https://host/anthropic/v1/messages",
            ),
        ] {
            assert_eq!(
                joined(Protocol::Anthropic, base, "/v1/messages", None),
                expected,
                "{base}"
            );
        }
        for (base, expected) in [
            (
                "https://host",
                "https://host/v1beta/models/g:generateContent",
            ),
            (
                "https://host/v1",
                "https://host/v1/models/g:generateContent",
            ),
        ] {
            assert_eq!(
                joined(
                    Protocol::Gemini,
                    base,
                    "/v1beta/models/g:generateContent",
                    None
                ),
                expected,
                "{base}"
            );
        }
    }

    #[test]
    fn slashes_around_the_version_count_as_one_and_others_are_kept() {
        for (path, expected) in [
            ("//v1/chat/completions", "http://h/v1/chat/completions"),
            ("/v1//chat/completions", "http://h/v1/chat/completions"),
            ("//chat/completions", "http://h/v1/chat/completions"),
            ("/v1/files//x", "http://h/v1/files//x"),
            ("/v1/", "http://h/v1/"),
        ] {
            for base in ["http://h", "http://h/v1/"] {
                assert_eq!(
                    joined(Protocol::OpenAi, base, path, None),
                    expected,
                    "{path}"
                );
            }
        }
    }

    #[test]
    fn a_path_that_steps_upwards_leaves_its_base() {
        for path in ["/", "/v1/files/a..b", "/v1/...", "/v1/.hidden", "//v1"] {
            assert!(stays_below(path), "{path}");
        }
        for path in [
            "*",
            "",
            "/v1/../admin",
            "/..",
            "/v1/%2e%2E/x",
            "/v1/.%2e",
            "/v1/./x",
            "/v1\\..\\x",
        ] {
            assert!(!stays_below(path), "{path}");
        }
    }

    #[test]
    fn queries_and_percent_signs_are_kept() {
        assert_eq!(
            joined(
                Protocol::OpenAi,
                "http://h/v1?a=1",
                "/v1/files/a%2Fb",
                Some("b=%20c")
            ),
            "http://h/v1/files/a%2Fb?a=1&b=%20c"
        );
        assert_eq!(
            joined(Protocol::OpenAi, "http://h", "/chat/completions", None),
            "http://h/v1/chat/completions"
        );
        assert_eq!(
            joined(Protocol::OpenAi, "http://h", "/v1", None),
            "http://h/v1"
        );
    }
}
