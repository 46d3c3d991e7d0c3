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
