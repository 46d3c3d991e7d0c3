//! `cert_file` and `key_file`: the certificate that callers are shown, and its key.

use std::fmt;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::pem::certificates;
use super::reader::Section;

const CERT: &str = "cert_file";
const KEY: &str = "key_file";

/// A chain of certificates, the listener's own first, with the key of that one, ready for TLS 1.2 and 1.3 with HTTP/1.1 in it.
#[derive(Clone)]
pub struct Identity(Arc<ServerConfig>);

impl Identity {
    fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, rustls::Error> {
        let crypto = Arc::new(aws_lc_rs::default_provider());
        let mut tls = ServerConfig::builder_with_provider(crypto)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(tls)))
    }

    /// Who answers for it.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0))
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// What the two keys name; none where neither is written.
pub(super) fn read(section: &mut Section<'_, '_>) -> Option<Identity> {
    let cert: Option<String> = section.opt(
        CERT,
        None,
        "PEM file with the certificate that callers are shown, and those behind it",
    );
    let key: Option<String> = section.opt(KEY, None, "PEM file with the key of that certificate");
    let (cert, key) = match (cert, key) {
        (Some(cert), Some(key)) => (cert, key),
        (cert, key) => {
            if let Some(missing) = lone(cert.is_some(), key.is_some()) {
                let missing = section.path(missing);
                let remedy = "write both cert_file and key_file, or neither";
                section.document.mistake(&missing, "is missing", remedy);
            }
            return None;
        }
    };
    let chain = section.pem(CERT, &cert, "certificates", certificates)?;
    let key = section.pem(KEY, &key, "a private key", private_key)?;
    Identity::new(chain, key)
        .map_err(|why| {
            let problem = format!("does not go with {CERT}: {why}");
            let remedy = "write the key of the file's first certificate";
            let path = section.path(KEY);
            section.document.mistake(&path, problem, remedy);
        })
        .ok()
}

/// The key that is missing beside the other.
fn lone(has_cert: bool, has_key: bool) -> Option<&'static str> {
    match (has_cert, has_key) {
        (true, false) => Some(KEY),
        (false, true) => Some(CERT),
        _ => None,
    }
}

/// What is wrong with it is told without a word of it.
fn private_key(text: &str) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|_| "holds no private key".to_owned())
}
