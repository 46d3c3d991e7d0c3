//! Which headers cross the gateway, and whose credential goes where.

use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, EXPECT, HOST,
    HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{Method, Request};

/// Prefix of every header that is between a caller and this gateway, in both directions.
pub(crate) const OURS: &str = "x-fuseline-";

/// Where callers and providers put keys, whatever the dialect; and where callers' proxies put theirs.
pub(crate) static CREDENTIALS: [HeaderName; 8] = [
    AUTHORIZATION,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-goog-api-key"),
    HeaderName::from_static("api-key"),
    HeaderName::from_static("ocp-apim-subscription-key"),
    HeaderName::from_static("x-auth-token"),
    HeaderName::from_static("x-amz-security-token"),
    COOKIE,
];

const EVENT_STREAM: &[u8] = b"text/event-stream";
/// What nginx and those who follow it obey.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Headers that speak of one connection only; with them go those that `connection` names.
static HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Removes what belongs to the connection that the headers came by.
fn strip_hop(headers: &mut HeaderMap) {
    if headers.contains_key(CONNECTION) {
        let named: Vec<HeaderName> = headers
            .get_all(CONNECTION)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(str::trim)
            // By far the most say this, and a header of that name goes anyway.
            .filter(|name| !name.eq_ignore_ascii_case("keep-alive"))
            .filter_map(|name| name.parse().ok())
            .collect();
        for name in &named {
            headers.remove(name);
        }
    }
    strip(headers, |name| HOP_BY_HOP.contains(name));
}

/// Removes what is meant. Most messages have little of it, so that looking through once is quicker than looking each up.
fn strip(headers: &mut HeaderMap, is_meant: impl Fn(&HeaderName) -> bool) {
    while let Some(name) = headers.keys().find(|name| is_meant(name)).cloned() {
        headers.remove(name);
    }
}

/// Turns a caller's headers into those that any target may see: without the hop's, ours, and the body's length, which
/// the client writes anew. Credentials are still there.
pub(crate) fn strip_request(headers: &mut HeaderMap) {
    strip_hop(headers);
    strip(headers, |name| {
        *name == HOST
            || *name == CONTENT_LENGTH
            || *name == EXPECT
            || name.as_str().starts_with(OURS)
    });
}

/// Turns an upstream's headers into those that the caller may see. A length beside a transfer coding is not the
/// body's (RFC 9112, section 6.3).
pub(crate) fn strip_answer(headers: &mut HeaderMap) {
    if headers.contains_key(TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
    }
    strip_hop(headers);
}

/// Turns the headers of a stream into those that the caller may see: our own events can make it longer, and what is no
/// JSON shorter.
pub(crate) fn of_a_stream(headers: &mut HeaderMap) {
    headers.remove(CONTENT_LENGTH);
}

/// Tells whoever stands between here and the caller to pass an event stream on as it comes.
pub(crate) fn unbuffer_stream(headers: &mut HeaderMap) {
    let kind = headers
        .get(CONTENT_TYPE)
        .map_or(&b""[..], |kind| kind.as_bytes());
    let is_stream = kind
        .get(..EVENT_STREAM.len())
        .is_some_and(|kind| kind.eq_ignore_ascii_case(EVENT_STREAM));
    if is_stream {
        headers.insert(BUFFERING, HeaderValue::from_static("no"));
        headers
            .entry(CACHE_CONTROL)
            .or_insert(HeaderValue::from_static("no-cache"));
    }
}

/// Puts a target's own credential in place of the caller's.
pub(crate) fn sign(headers: &mut HeaderMap, name: &HeaderName, key: &HeaderValue) {
    strip(headers, |name| CREDENTIALS.contains(name));
    headers.insert(name, key.clone());
}

/// Whether the caller wants another protocol on this connection. An offer of HTTP/2 may be ignored, so it is.
pub(crate) fn wants_upgrade<B>(request: &Request<B>) -> bool {
    let offers = request.headers().get_all(UPGRADE).iter();
    let mut offers = offers
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    request.method() == Method::CONNECT
        || offers.any(|offer| !offer.trim().eq_ignore_ascii_case("h2c"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&str, &str)]) -> HeaderMap {
        list.iter()
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
            .collect()
    }

    fn names(headers: &HeaderMap) -> Vec<&str> {
        headers.keys().map(HeaderName::as_str).collect()
    }

    #[test]
    fn what_connection_names_goes_with_it() {
        let mut map = headers(&[
            ("connection", "close, X-Secret"),
            ("x-secret", "1"),
            ("x-kept", "2"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
        ]);
        strip_hop(&mut map);
        assert_eq!(names(&map), ["x-kept"]);
    }

    #[test]
    fn a_request_loses_its_hop_and_our_steering_and_keeps_the_rest() {
        let mut map = headers(&[
            ("host", "gateway"),
            ("content-length", "3"),
            ("x-fuseline-route", "r"),
            ("x-stainless-retry-count", "0"),
            ("authorization", "Bearer caller"),
        ]);
        strip_request(&mut map);
        assert_eq!(names(&map), ["authorization", "x-stainless-retry-count"]);
    }

    #[test]
    fn an_answer_keeps_its_length_unless_a_transfer_coding_overrules_it() {
        let mut map = headers(&[("content-length", "5"), ("etag", "e")]);
        strip_answer(&mut map);
        assert_eq!(names(&map), ["content-length", "etag"]);
        map.insert("transfer-encoding", HeaderValue::from_static("chunked"));
        strip_answer(&mut map);
        assert_eq!(names(&map), ["etag"]);
    }

    #[test]
    fn signing_leaves_no_key_of_the_caller() {
        let mut map = headers(&[
            ("authorization", "Bearer caller"),
            ("x-api-key", "c"),
            ("api-key", "c"),
        ]);
        sign(&mut map, &CREDENTIALS[1], &HeaderValue::from_static("own"));
        assert_eq!(map, headers(&[("x-api-key", "own")]));
    }

    #[test]
    fn an_offer_of_http2_is_no_upgrade() {
        let asks = |value: &str| {
            wants_upgrade(
                &Request::builder()
                    .header("upgrade", value)
                    .body(())
                    .unwrap(),
            )
        };
        assert!(asks("websocket"));
        assert!(asks("h2c, websocket"));
        assert!(!asks("h2c"));
        assert!(!wants_upgrade(&Request::new(())));
    }
}
