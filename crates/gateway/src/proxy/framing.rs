//! What of a request's framing is refused, although the HTTP library could read it: where two readers may differ about
//! where a request ends, or whom it is for, there is room for a smuggled one (RFC 9112, sections 3.2 and 6.1).

use http::header::{HOST, HeaderMap, TRANSFER_ENCODING};

use super::refusal::Refusal;

/// Lets requests with one host at most and with no transfer coding but `chunked` through.
pub(super) fn check(headers: &HeaderMap) -> Result<(), Refusal> {
    if headers.get_all(HOST).iter().count() > 1 {
        return Err(Refusal::misframed("has more than one host header"));
    }
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        // The body would be passed on in a coding that nothing speaks of any more.
        _ => Err(Refusal::misframed(
            "has a transfer coding other than chunked",
        )),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    #[test]
    fn one_host_and_one_chunked_pass_and_nothing_else_does() {
        for (lines, passes) in [
            (&[][..], true),
            (&[("host", "a")], true),
            (&[("transfer-encoding", "chunked")], true),
            (&[("transfer-encoding", "Chunked")], true),
            (&[("host", "a"), ("host", "a")], false),
            (&[("transfer-encoding", "gzip, chunked")], false),
            (&[("transfer-encoding", "chunked, chunked")], false),
            (&[("transfer-encoding", "identity, chunked")], false),
            (
                &[
                    ("transfer-encoding", "gzip"),
                    ("transfer-encoding", "chunked"),
                ],
                false,
            ),
            (&[("transfer-encoding", "chunked;q=1")], false),
        ] {
            let headers: HeaderMap = lines
                .iter()
                .map(|&(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
                .collect();
            assert_eq!(check(&headers).is_ok(), passes, "{lines:?}");
        }
    }
}
