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

/// The authorities in the file that the key names; none where it is not written.
pub(super) fn read(section: &mut Section<'_, '_>) -> Vec<CertificateDer<'static>> {
    let doc = "PEM file with authorities trusted for providers, beside the public ones";
    let Some(file) = section.opt::<String>(KEY, None, doc) else {
        return Vec::new();
    };
    let path = section.document.secrets.folder.join(&file);
    let found = read_bounded(&path, MAX_FILE)
        .map_err(|why| format!("cannot be read: {why}"))
        .and_then(|text| in_pem(&text));
    found.unwrap_or_else(|problem| {
        section.document.mistake(KEY, problem, REMEDY);
        Vec::new()
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
