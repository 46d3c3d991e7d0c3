//! `Tenant`: whose a queued call is, as a digest of what he shows, and the ids that nobody guesses.

use std::fmt::Write as _;

use fuseline_store::Digest;
use http::header::{COOKIE, HeaderMap};
use sha2::{Digest as _, Sha256};

use super::super::headers::CREDENTIALS;
use super::super::upstream::key_in;

/// A caller by every credential that he shows. It is kept in memory while his call lasts, and never stored.
pub(crate) struct Tenant(Digest);

impl Tenant {
    /// Who shows these. Cookies count where nothing else is shown: providers set some of their own, and change them.
    pub(crate) fn of(headers: &HeaderMap, query: Option<&str>) -> Self {
        let mut parts = Sha256::new();
        let mut shown = 0_u32;
        let mut add = |name: &str, value: &[u8]| {
            shown += 1;
            take_in(&mut parts, name.as_bytes());
            take_in(&mut parts, value);
        };
        for name in CREDENTIALS.iter().filter(|name| **name != COOKIE) {
            for value in headers.get_all(name) {
                add(name.as_str(), value.as_bytes());
            }
        }
        for pair in query.into_iter().flat_map(|query| query.split('&')) {
            if let Some(key) = key_in(pair) {
                add("query", key.as_bytes());
            }
        }
        if shown == 0 {
            for value in headers.get_all(COOKIE) {
                take_in(&mut parts, b"cookie");
                take_in(&mut parts, value.as_bytes());
            }
        }
        Self(parts.finalize().into())
    }

    /// The digest that goes with this call of his alone.
    pub(super) fn of_call(&self, id: &str) -> Digest {
        self.with(b"call", id.as_bytes())
    }

    /// The digest of the name that he has given a request.
    pub(super) fn named(&self, name: &[u8]) -> Digest {
        self.with(b"name", name)
    }

    fn with(&self, purpose: &[u8], what: &[u8]) -> Digest {
        let mut parts = Sha256::new();
        for part in [purpose, what, &self.0] {
            take_in(&mut parts, part);
        }
        parts.finalize().into()
    }
}

/// Each part comes with its length, so that no two lists of parts are the same bytes.
fn take_in(parts: &mut Sha256, part: &[u8]) {
    parts.update((part.len() as u64).to_be_bytes());
    parts.update(part);
}

/// By chance, of 128 bits; none where the system gives none.
pub(super) fn new_id() -> Option<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).ok()?;
    let mut id = "q-".to_owned();
    for byte in bytes {
        let _written = write!(id, "{byte:02x}");
    }
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(shown: &[(&'static str, &'static str)], query: &str) -> Digest {
        let headers = shown.iter().map(|(name, value)| {
            let name: http::HeaderName = name.parse().unwrap();
            (name, value.parse().unwrap())
        });
        Tenant::of(&headers.collect(), Some(query)).of_call("q-1")
    }

    #[test]
    fn every_credential_counts_and_nothing_else() {
        let me = tenant(&[("authorization", "Bearer a"), ("user-agent", "x")], "");
        assert_eq!(me, tenant(&[("authorization", "Bearer a")], "alt=sse"));
        for other in [
            tenant(&[("authorization", "Bearer b")], ""),
            tenant(&[("x-api-key", "Bearer a")], ""),
            tenant(&[("authorization", "Bearer a"), ("x-api-key", "k")], ""),
            tenant(&[("authorization", "Bearer a")], "key=k"),
            tenant(&[], ""),
        ] {
            assert_ne!(me, other);
        }
    }

    #[test]
    fn cookies_count_where_nothing_else_does() {
        let shown = |cookie| tenant(&[("authorization", "Bearer a"), ("cookie", cookie)], "");
        assert_eq!(shown("__cf_bm=1"), shown("__cf_bm=2"));
        let alone = |cookie| tenant(&[("cookie", cookie)], "");
        assert_ne!(alone("session=1"), alone("session=2"));
        assert_ne!(alone("session=1"), tenant(&[], ""));
    }

    #[test]
    fn two_calls_of_one_tenant_have_nothing_in_common() {
        let me = Tenant::of(&HeaderMap::new(), None);
        assert_ne!(me.of_call("q-1"), me.of_call("q-2"));
        assert_ne!(me.of_call("q-1"), me.named(b"q-1"));
        assert_ne!(new_id(), new_id());
        assert_eq!(new_id().unwrap().len(), 34);
    }
}
