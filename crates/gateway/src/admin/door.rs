//! Who may use the admin listener: whoever has the token, and no page of another site in the operator's browser.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{
    AUTHORIZATION, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::uri::Authority;
use axum::middleware::Next;
use axum::response::Response;

use super::{Admin, refusal};
use crate::token;

/// Lets in, or says what is missing.
pub(super) async fn ask(State(admin): State<Admin>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let shown = headers.get(AUTHORIZATION);
    let shown = token::bearer(shown.map_or(&b""[..], |value| value.as_bytes()));
    match &admin.proxy().config().admin_token {
        Some(expected) if !token::matches(expected, shown) => {
            let why = "this listener asks for `authorization: Bearer` with `admin_token`";
            return refusal(StatusCode::UNAUTHORIZED, why);
        }
        // A page cannot know the token.
        Some(_) => {}
        None if is_from_another_site(headers) => {
            let why = "a page of another site may not use this listener; set `admin_token`, or use an IP address or `localhost`";
            return refusal(StatusCode::FORBIDDEN, why);
        }
        None => {}
    }
    let mut answer = next.run(request).await;
    let no_sniffing = HeaderValue::from_static("nosniff");
    answer
        .headers_mut()
        .insert(X_CONTENT_TYPE_OPTIONS, no_sniffing);
    answer
}

/// Whether a browser may be sending this on behalf of a page that is not ours: its origin differs, or our name is one that
/// its owner may point at any address. Names without a dot have no owner.
fn is_from_another_site(headers: &HeaderMap) -> bool {
    let text = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let host = text(&HOST);
    let is_own = text(&ORIGIN).is_none_or(|origin| {
        let of = origin.split_once("://").map(|(_, of)| of);
        of.is_some() && of == host
    });
    let authority = host.and_then(|host| host.parse::<Authority>().ok());
    let is_owned = authority.is_some_and(|authority| {
        let name = authority.host();
        let address = name.trim_matches(['[', ']']).parse::<IpAddr>();
        name.contains('.') && address.is_err()
    });
    !is_own || is_owned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_other_sites_are_told_from_tools_and_from_our_own() {
        for (host, origin, is_foreign) in [
            ("127.0.0.1:8081", None, false),
            ("[::1]:8081", None, false),
            ("localhost:8081", None, false),
            ("gateway", None, false),
            ("127.0.0.1:8081", Some("http://127.0.0.1:8081"), false),
            ("localhost:8081", Some("http://localhost:8081"), false),
            ("127.0.0.1:8081", Some("http://127.0.0.1:3000"), true),
            ("127.0.0.1:8081", Some("https://evil.example"), true),
            ("127.0.0.1:8081", Some("null"), true),
            ("rebound.example:8081", None, true),
            (
                "rebound.example:8081",
                Some("http://rebound.example:8081"),
                true,
            ),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            assert_eq!(
                is_from_another_site(&headers),
                is_foreign,
                "{host} {origin:?}"
            );
        }
    }
}
