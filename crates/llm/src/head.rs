//! `Head`: the status and headers of an answer, as far as classification asks for them.
//!
//! Headers are looked up through one method, so that a driver in another language can answer from the map it has.

use http::HeaderMap;

/// Finds headers by name.
pub trait Headers {
    /// Calls `each` with every value of the header `name` (given in lower case; names match in any case), in the
    /// order in which they came. A value that is not text is left out.
    fn visit(&self, name: &str, each: &mut dyn FnMut(&str));
}

impl Headers for HeaderMap {
    fn visit(&self, name: &str, each: &mut dyn FnMut(&str)) {
        self.get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .for_each(each);
    }
}

impl Headers for &[(&str, &str)] {
    fn visit(&self, name: &str, each: &mut dyn FnMut(&str)) {
        self.iter()
            .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            .for_each(|(_, value)| each(value));
    }
}

/// The first part of an answer: everything before its body.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    status: u16,
    headers: &'a dyn Headers,
}

impl<'a> Head<'a> {
    /// A status with its headers.
    pub fn new(status: u16, headers: &'a dyn Headers) -> Self {
        Self { status, headers }
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The headers.
    pub fn headers(&self) -> &'a dyn Headers {
        self.headers
    }

    /// Whether the status is 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

// Header values may be secrets, so only the status is shown.
impl std::fmt::Debug for Head<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Head")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}
