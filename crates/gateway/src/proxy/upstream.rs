//! `Upstream`: how a provider is reached, and the request as it wants it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use fuseline_llm::{Protocol, Shape};
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, HeaderName, HeaderValue};
use http::{Method, Request, Uri};
use http_body_util::Full;

use super::BuildError;
use super::address;
use super::headers;
use super::ingress::Call;
use crate::config::Config;

/// How one provider is reached.
pub(crate) struct Upstream {
    pub(crate) protocol: Protocol,
    pub(crate) base: Uri,
    pub(crate) keys: Keys,
    /// The name under which the classifier knows it; empty where that is not known.
    pub(crate) rules: Arc<str>,
}

/// Whose key goes there.
pub(crate) enum Keys {
    Caller,
    /// With the id by which each is known outside.
    Own(Vec<(String, HeaderValue)>),
}

impl Keys {
    /// What stands in the key's header; none = what the caller has there.
    pub(crate) fn header(&self, at: usize) -> Option<&HeaderValue> {
        match self {
            Self::Caller => None,
            Self::Own(keys) => keys.get(at).map(|(_, header)| header),
        }
    }
}

impl Upstream {
    /// Those of a configuration, by their names.
    pub(crate) fn all(config: &Config) -> Result<BTreeMap<String, Self>, BuildError> {
        let providers = config.providers.iter();
        let upstreams = providers.map(|(name, provider)| {
            let upstream = Self::new(name, provider)?;
            Ok((name.clone(), upstream))
        });
        upstreams.collect()
    }

    /// The header in which a dialect carries its key.
    pub(crate) const fn key_header(protocol: Protocol) -> HeaderName {
        match protocol {
            Protocol::Anthropic => HeaderName::from_static("x-api-key"),
            Protocol::Gemini => HeaderName::from_static("x-goog-api-key"),
            _ => AUTHORIZATION,
        }
    }

    /// What that header says.
    pub(crate) fn key_value(
        protocol: Protocol,
        key: &str,
    ) -> Result<HeaderValue, http::header::InvalidHeaderValue> {
        let mut value = match protocol {
            Protocol::Anthropic | Protocol::Gemini => HeaderValue::from_str(key)?,
            _ => HeaderValue::from_str(&format!("Bearer {key}"))?,
        };
        value.set_sensitive(true);
        Ok(value)
    }

    /// Where the request goes.
    pub(crate) fn address(
        &self,
        call: &Call,
        model: Option<&str>,
        key: Option<&HeaderValue>,
    ) -> Result<Uri, http::Error> {
        let path = model.map_or_else(
            || call.path.as_str().into(),
            |model| call.facts.path_for(model, &call.path),
        );
        let query = call.query.as_deref();
        let query = if key.is_some() {
            query.map(without_key)
        } else {
            query.map(Into::into)
        };
        address::join(self.protocol, &self.base, &path, query.as_deref())
    }

    /// The caller's request with this target's address, credential and, where it has its own, model.
    pub(crate) fn request(
        &self,
        call: &Call,
        model: Option<&str>,
        key: Option<&HeaderValue>,
    ) -> Result<Request<Full<Bytes>>, http::Error> {
        let uri = self.address(call, model, key)?;
        let body = model.map_or_else(
            || call.body.clone(),
            |model| call.facts.body_for(model, &call.body),
        );
        let says_nothing = body.is_empty() && is_upload(&call.method);
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = call.headers.clone();
        if call.facts.shape() == Shape::Stream && call.facts.dialect().is_some() {
            // A stream that is coded could not be passed on event by event.
            let plain = HeaderValue::from_static("identity");
            request.headers_mut().insert(ACCEPT_ENCODING, plain);
        }
        if says_nothing {
            // The client writes no length where there is no body, and some front ends answer that with 411.
            request.headers_mut().insert(CONTENT_LENGTH, 0.into());
        }
        if let Some(key) = key {
            headers::sign(request.headers_mut(), &Self::key_header(self.protocol), key);
        }
        Ok(request)
    }
}

/// Whether a request of this method is meant to carry a body, an empty one included.
fn is_upload(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

/// The names under which clients show a key in the query: Google's the first, gateways in front of models the others.
const KEY_PARAMETERS: [&str; 5] = [
    "key",
    "api_key",
    "api-key",
    "access_token",
    "subscription-key",
];

/// The key that a part of a query shows, if it does.
pub(super) fn key_in(pair: &str) -> Option<&str> {
    let (name, key) = pair.split_once('=')?;
    KEY_PARAMETERS.contains(&name).then_some(key)
}

/// A key in the query is the caller's and stays here.
pub(super) fn without_key(query: &str) -> std::borrow::Cow<'_, str> {
    if !query.split('&').any(|pair| key_in(pair).is_some()) {
        return query.into();
    }
    query
        .split('&')
        .filter(|pair| key_in(pair).is_none())
        .collect::<Vec<_>>()
        .join("&")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callers_key_leaves_the_query_and_the_rest_stays() {
        assert_eq!(without_key("alt=sse&key=secret&x=%20"), "alt=sse&x=%20");
        assert_eq!(without_key("key=secret"), "");
        assert_eq!(without_key("api_key=a&access_token=b&a=1"), "a=1");
        assert_eq!(without_key("monkey=1&alt=sse"), "monkey=1&alt=sse");
    }
}
