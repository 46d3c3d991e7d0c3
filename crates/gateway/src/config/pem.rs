//! Keys that name a PEM file: read, understood, and told when another content takes its place.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::load::read_bounded;
use super::reader::Section;

/// Longest file.
const MAX_FILE: u64 = 1 << 20;

impl Section<'_, '_> {
    /// What a key's file holds, as `parse` understands it. Nothing, and a mistake at the key, where it cannot be read or
    /// understood; no message repeats a word of the file.
    pub(super) fn pem<T>(
        &mut self,
        key: &str,
        file: &str,
        what: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let path = self.path(key);
        let name = self.document.secrets.folder.join(file);
        let read = read_bounded(&name, MAX_FILE).map_err(|why| format!("cannot be read: {why}"));
        let parsed = read.and_then(|text| {
            let parsed = parse(&text)?;
            self.document.holds(&path, &text);
            Ok(parsed)
        });
        let remedy = || {
            format!(
                "write the path of a readable PEM file with {what}, relative to this one's folder"
            )
        };
        parsed
            .map_err(|problem| self.document.mistake(&path, problem, remedy()))
            .ok()
    }
}

/// All certificates of a text, of which there is at least one.
pub(super) fn certificates(text: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|why| format!("is no PEM file: {why}"))?;
    if certificates.is_empty() {
        Err("holds no certificate".to_owned())
    } else {
        Ok(certificates)
    }
}
