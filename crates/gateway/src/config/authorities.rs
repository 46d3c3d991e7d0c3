//! `ca_file`: certificate authorities that are trusted beside the public ones.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::load::read_bounded;
use super::reader::Section;

const KEY: &str = "ca_file";
/// Longest file of certificates.
const MAX_FILE: u64 = 1 << 20;
const REMEDY: &str =
    "write the path of a readable PEM file with certificates, relative to this one's folder";

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
    let path = section.document.secrets.folder.join(&file);
    let found = read_bounded(&path, MAX_FILE)
        .map_err(|why| format!("cannot be read: {why}"))
        .and_then(|pem| {
            let certificates = in_pem(&pem)?;
            Ok(Authorities { certificates, pem })
        });
    found.unwrap_or_else(|problem| {
        section.document.mistake(KEY, problem, REMEDY);
        Authorities::default()
    })
}

fn in_pem(text: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let authorities: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|why| format!("is no PEM file: {why}"))?;
    if authorities.is_empty() {
        return Err("holds no certificate".to_owned());
    }
    let mut roots = RootCertStore::empty();
    for (at, authority) in authorities.iter().enumerate() {
        roots
            .add(authority.clone())
            .map_err(|why| format!("certificate {} is none: {why}", at + 1))?;
    }
    Ok(authorities)
}
