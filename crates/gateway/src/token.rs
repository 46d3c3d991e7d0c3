//! Tokens that callers and operators show, compared in a time that does not tell where they differ.

use secrecy::{ExposeSecret as _, SecretString};
use subtle::ConstantTimeEq as _;

/// Whether this is the token.
pub(crate) fn matches(expected: &SecretString, shown: &[u8]) -> bool {
    expected.expose_secret().as_bytes().ct_eq(shown).into()
}

/// The token in an `authorization` value; nothing where the scheme is another.
pub(crate) fn bearer(value: &[u8]) -> &[u8] {
    match value.split_at_checked(7) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => token,
        _ => b"",
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// The shortest of some comparisons, which is the one that nothing disturbed.
    #[expect(clippy::disallowed_methods, reason = "it is about real time")]
    fn shortest(expected: &SecretString, shown: &[u8]) -> Duration {
        let timed = |_| {
            let began = Instant::now();
            assert!(!std::hint::black_box(matches(expected, shown)));
            began.elapsed()
        };
        (0..40).map(timed).min().unwrap()
    }

    #[test]
    fn report_144_tokens_are_compared_in_constant_time_wherever_they_differ() {
        // So long that what stops at the first difference would take less than a fiftieth.
        let token = "t".repeat(1 << 16);
        let expected = SecretString::from(token.as_str());
        let (mut first, mut last) = (token.clone().into_bytes(), token.clone().into_bytes());
        first[0] = b'x';
        *last.last_mut().unwrap() = b'x';
        let (at_first, at_last) = (shortest(&expected, &first), shortest(&expected, &last));
        assert!(at_first * 8 > at_last, "{at_first:?}, {at_last:?}");
        assert!(at_last * 8 > at_first, "{at_first:?}, {at_last:?}");
        assert!(matches(&expected, token.as_bytes()));
        assert!(!matches(&expected, b""));
    }

    #[test]
    fn a_token_is_shown_as_a_bearer_in_any_case() {
        assert_eq!(bearer(b"bEARER t"), b"t");
        assert_eq!(bearer(b"Basic t"), b"");
        assert_eq!(bearer(b"Bearer"), b"");
    }
}
