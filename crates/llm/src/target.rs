//! `Target`: where a call can go, and whose breakers guard the way.

use std::fmt::Write as _;
use std::sync::Arc;

use fuseline_core::ScopeName;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Whose credential a target is called with: decides who can mend a refused one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "complete by definition: one of the two sides of the gateway"
)]
pub enum Owner {
    /// One of the gateway's own, from its configuration: another target has another.
    Gateway,
    /// The caller's, passed through: no other target will like it better.
    Caller,
}

/// One provider's model under one credential. Cheap to clone; holds no secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    provider: Arc<str>,
    model: Arc<str>,
    credential: Arc<str>,
    owner: Owner,
}

impl Target {
    /// A target; `credential` is what [`credential_id`] made of the key, never the key itself.
    pub fn new(
        provider: impl Into<Arc<str>>,
        model: impl Into<Arc<str>>,
        credential: impl Into<Arc<str>>,
        owner: Owner,
    ) -> Self {
        Self {
            provider: provider.into(),
            model: model.into(),
            credential: credential.into(),
            owner,
        }
    }

    /// The provider's name in the configuration.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The model's name as this provider knows it.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The credential's id.
    pub fn credential(&self) -> &str {
        &self.credential
    }

    /// Whose credential it is.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// The names of the three breakers that guard this target: provider, model, key.
    pub fn scopes(&self) -> [ScopeName; 3] {
        [
            ScopeName::provider(&self.provider),
            ScopeName::model(&self.provider, &self.model),
            ScopeName::key(&self.provider, &self.credential),
        ]
    }

    /// Whether the other target differs in its credential at most.
    pub fn is_same_model(&self, other: &Self) -> bool {
        self.provider == other.provider && self.model == other.model
    }
}

/// The name under which a key may be seen: the first 64 bits of its HMAC-SHA-256 under `salt`, in hexadecimal.
///
/// The same key has the same id as long as the salt stays; without the salt an id neither leads to its key nor can
/// be matched with a guess.
///
/// ```
/// use fuseline_llm::credential_id;
///
/// let id = credential_id(b"salt of this installation", b"sk-secret");
/// assert_eq!(id.len(), 16);
/// assert_ne!(id, credential_id(b"another salt", b"sk-secret"));
/// ```
pub fn credential_id(salt: &[u8], key: &[u8]) -> String {
    // An HMAC takes a key of any length, so the error cannot occur; an empty id would merely share a breaker.
    let Ok(mac) = Hmac::<Sha256>::new_from_slice(salt) else {
        return String::new();
    };
    let digest = mac.chain_update(key).finalize().into_bytes();
    digest
        .iter()
        .take(8)
        .fold(String::with_capacity(16), |mut id, byte| {
            let _ = write!(id, "{byte:02x}");
            id
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_match_a_published_hmac_and_hide_the_key() {
        // RFC 4231, test case 2.
        assert_eq!(
            credential_id(b"Jefe", b"what do ya want for nothing?"),
            "5bdcc146bf60754e"
        );
        assert_eq!(credential_id(b"", b"").len(), 16);
        assert_eq!(
            credential_id(&[7; 1_000], b"k"),
            credential_id(&[7; 1_000], b"k")
        );
    }

    #[test]
    fn two_keys_of_one_model_differ_in_their_key_scope_alone() {
        let one = Target::new("primary", "large", "k1", Owner::Gateway);
        let two = Target::new("primary", "large", "k2", Owner::Gateway);
        assert!(one.is_same_model(&two));
        let [provider, model, key] = one.scopes();
        assert_eq!([provider, model], two.scopes()[..2]);
        assert_ne!(key, two.scopes()[2]);
    }
}
