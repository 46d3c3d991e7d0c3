//! `ca_file`: certificate authorities that are trusted beside the public ones.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

use super::pem::certificates;
use super::reader::Section;

const KEY: &str = "ca_file";

/// Certificate authorities that are trusted beside the public ones.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Authorities {
    /// Their certificates.
    pub certificates: Vec<CertificateDer<'static>>,
    /// The same as they stand in the file.
    pub pem: String,
}

/// The authorities in the file that the key names; none where it is not written.
pub(super) fn read(section: &mut Section<'_, '_>) -> Authorities {
    let doc = "PEM file with authorities trusted for providers and for the fleet's Redis, beside the public ones";
    let Some(file) = section.opt::<String>(KEY, None, doc) else {
        return Authorities::default();
    };
    let found = section.pem(KEY, &file, "certificates", |pem| {
        let certificates = in_pem(pem)?;
        let pem = pem.to_owned();
        Ok(Authorities { certificates, pem })
    });
    found.unwrap_or_default()
}

fn in_pem(text: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let authorities = certificates(text)?;
    let mut roots = RootCertStore::empty();
    for (at, authority) in authorities.iter().enumerate() {
        roots
            .add(authority.clone())
            .map_err(|why| format!("certificate {} is none: {why}", at + 1))?;
    }
    Ok(authorities)
}
