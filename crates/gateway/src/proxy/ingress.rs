//! The way in: who asks, for what, and which targets may serve it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fuseline_llm::{Fallback, Operation, Protocol, RequestFacts};
use http::header::{AUTHORIZATION, HeaderMap, HeaderName};
use http::{Method, Request, Response};
use hyper::body::Incoming;
use secrecy::SecretString;
use tokio::sync::OwnedSemaphorePermit;

use super::address;
use super::cache::Slot;
use super::coding;
use super::headers;
use super::memory::Share;
use super::own::{greeting, model_list, protocol_of};
use super::queue::{Errand, Tenant};
use super::refusal::Refusal;
use super::replay::Replay;
use super::respond::Body;
use super::steering::Steering;
use super::{Proxy, framing};
use crate::config::{Config, Route};
use crate::token;

const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");
static CLIENT_TOKEN_HEADERS: [HeaderName; 3] = [
    AUTHORIZATION,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-goog-api-key"),
];

/// A request, read and understood.
pub(crate) struct Call {
    pub(crate) method: Method,
    /// Without the prefix that named a provider.
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    /// What any target may see, and the caller's credentials.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) facts: RequestFacts,
    pub(crate) lane: Lane,
    pub(crate) fallback: Fallback,
    /// What the caller gives it until its answer is committed, if that is less than the route does.
    pub(crate) budget: Duration,
    /// It is a caller's own repetition.
    pub(crate) is_repeated: bool,
    /// Where its answer may be kept; filled by whoever keeps it.
    pub(crate) slot: Option<Slot>,
    /// Whose it is, where calls may be queued.
    pub(crate) tenant: Option<Tenant>,
    pub(crate) origin: Origin,
    pub(crate) replay: Replay,
    /// Among the calls at once; taken by whoever sends the answer.
    pub(crate) place: Option<OwnedSemaphorePermit>,
    /// Of the memory for bodies.
    pub(crate) _share: Share,
}

/// Who sends a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A caller, who waits.
    Caller,
    /// The queue: with the gateway's own keys, and to the route's own targets.
    Queue,
}

/// Where a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Along the targets of the route with this index.
    Route(usize),
    /// To the pass-through provider with this index.
    Provider(usize),
}

/// Why a request is answered at once.
pub(crate) enum Answered {
    /// The gateway knows the answer.
    Here(Box<Response<Body>>),
    /// It is about a call that waits.
    Errand(Errand, Protocol),
    /// It may not go on.
    Refused(Refusal, Protocol),
}

/// Reads a request as far as a target must be known for it.
pub(crate) async fn read(proxy: &Proxy, request: Request<Incoming>) -> Result<Call, Answered> {
    let config = &proxy.config;
    if let Some(greeting) = greeting(&request) {
        return Err(Answered::Here(Box::new(greeting)));
    }
    let path = request.uri().path();
    let prefix = if config.pass_through {
        Prefix::of(config, path)
    } else {
        None
    };
    let (protocol, path) = match &prefix {
        Some(prefix) => (prefix.protocol, prefix.rest.to_owned()),
        None => (dialect(&request), path.to_owned()),
    };
    let provider = prefix.map(|prefix| prefix.index);
    let refuse = |refusal| Answered::Refused(refusal, protocol);
    framing::check(request.headers()).map_err(refuse)?;
    let Some(carriers) = check_token(&config.client_tokens, request.headers()) else {
        proxy.lasting.strangers.note(proxy.registry().now());
        return Err(refuse(Refusal::unauthorized()));
    };
    if headers::wants_upgrade(&request) {
        return Err(refuse(Refusal::upgrade()));
    }
    if request.method() == Method::TRACE {
        return Err(refuse(Refusal::trace()));
    }
    if !address::stays_below(&path) {
        return Err(refuse(Refusal::no_path(&path)));
    }
    if proxy.has_queue
        && let Some(errand) = Errand::of(&request)
    {
        return Err(Answered::Errand(errand, protocol));
    }
    if let Some(list) = model_list(config, protocol, &request) {
        return Err(Answered::Here(Box::new(list)));
    }
    let (parts, body) = request.into_parts();
    let steering = Steering::of(&parts.headers).map_err(refuse)?;
    let place = Arc::clone(&proxy.places).try_acquire_owned();
    let place = place.map_err(|_| refuse(Refusal::too_many_calls()))?;
    let upload = proxy.uploads.read(body).await.map_err(refuse)?;
    let body = upload.body;
    let facts = RequestFacts::read(protocol, &parts.method, &path, &body);
    let is_routed = provider.is_none() && facts.operation() == Operation::Create;
    if is_routed && coding::is_coded(&parts.headers) {
        return Err(refuse(Refusal::coded()));
    }
    let lane = match provider {
        Some(index) => Lane::Provider(index),
        None => lane(config, &facts, &path, &steering).map_err(refuse)?,
    };
    let mut headers = parts.headers;
    headers::strip_request(&mut headers);
    for carrier in carriers {
        headers.remove(carrier);
    }
    let query = parts.uri.query().map(str::to_owned);
    let replay = proxy.replay.keep(body.len());
    let fallback = if facts.operation() == Operation::Other {
        Fallback::Off
    } else {
        steering.fallback
    };
    Ok(Call {
        method: parts.method,
        path,
        query,
        headers,
        body,
        facts,
        lane,
        fallback,
        budget: steering.budget,
        is_repeated: steering.is_repeated,
        slot: None,
        tenant: None,
        origin: Origin::Caller,
        replay,
        place: Some(place),
        _share: upload.share,
    })
}

/// The dialect of a request. Two of them share paths such as `/v1/models`; only Anthropic's SDK says its version.
fn dialect(request: &Request<Incoming>) -> Protocol {
    let path = request.uri().path();
    let spoken = Protocol::of_path(path);
    let is_shared =
        || RequestFacts::read(spoken, request.method(), path, b"").operation() == Operation::Other;
    if spoken == Protocol::OpenAi
        && request.headers().contains_key(ANTHROPIC_VERSION)
        && is_shared()
    {
        Protocol::Anthropic
    } else {
        spoken
    }
}

/// `/groq/v1/models` in a gateway without a file: provider `groq`, and the path there. The provider's own SDK may
/// write the path of its base URL once more, as in `/groq/openai/v1/models`; there it counts once.
struct Prefix<'p> {
    index: usize,
    protocol: Protocol,
    rest: &'p str,
}

impl<'p> Prefix<'p> {
    fn of(config: &Config, path: &'p str) -> Option<Self> {
        let name = path.strip_prefix('/')?.split('/').next()?;
        let index = config
            .providers
            .keys()
            .position(|provider| provider == name)?;
        let provider = config.providers.get(name)?;
        let rest = path.get(name.len() + 1..)?;
        let root = provider.base_url.uri().path().trim_end_matches('/');
        let below_root = rest
            .strip_prefix(root)
            .filter(|below| below.starts_with('/'));
        Some(Self {
            index,
            protocol: provider.protocol,
            rest: below_root.unwrap_or(rest),
        })
    }
}

/// Whether the caller may call: the headers that carry the right token, or none where it is missing or wrong. Every
/// token is compared, in a time that does not depend on where they differ.
fn check_token(tokens: &[SecretString], headers: &HeaderMap) -> Option<Vec<HeaderName>> {
    if tokens.is_empty() {
        return Some(Vec::new());
    }
    let carries = |name: &&HeaderName| {
        let shown = headers
            .get(*name)
            .map_or(&b""[..], |value| value.as_bytes());
        let shown = if **name == AUTHORIZATION {
            token::bearer(shown)
        } else {
            shown
        };
        tokens
            .iter()
            .fold(false, |any, expected| any | token::matches(expected, shown))
    };
    let carriers: Vec<HeaderName> = CLIENT_TOKEN_HEADERS
        .iter()
        .filter(carries)
        .cloned()
        .collect();
    Some(carriers).filter(|carriers| !carriers.is_empty())
}

fn lane(
    config: &Config,
    facts: &RequestFacts,
    path: &str,
    steering: &Steering,
) -> Result<Lane, Refusal> {
    let position = |route: &Route| {
        config
            .routes
            .iter()
            .position(|other| std::ptr::eq(other, route))
    };
    let dialect = facts.protocol();
    let found = match (&steering.route, facts.operation()) {
        (Some(name), _) => {
            let named = config
                .routes
                .iter()
                .find(|route| route.model.as_str() == name);
            named.ok_or_else(|| {
                Refusal::no_route(&format!("the route `{name}` that x-fuseline-route names"))
            })?
        }
        (None, Operation::Create) => {
            let model = facts.model();
            config.route(model.unwrap_or_default()).ok_or_else(|| {
                Refusal::no_route(&model.map_or_else(
                    || "a call without a model".to_owned(),
                    |model| format!("model `{model}`"),
                ))
            })?
        }
        (None, Operation::Other) => {
            let mut spoken = config
                .routes
                .iter()
                .filter(|route| protocol_of(config, route) == Some(dialect));
            let everything = spoken.clone().find(|route| route.model.as_str() == "*");
            everything
                .or_else(|| spoken.next())
                .ok_or_else(|| Refusal::no_path(path))?
        }
    };
    let index = position(found).ok_or_else(|| Refusal::no_path(path))?;
    match protocol_of(config, found) {
        Some(theirs) if theirs != dialect => Err(Refusal::other_dialect(
            dialect,
            found.model.as_str(),
            theirs,
        )),
        _ => Ok(Lane::Route(index)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::headers::CREDENTIALS;
    use super::*;

    #[test]
    fn a_token_is_taken_from_any_of_its_headers_and_only_the_right_one() {
        let tokens = ["one", "two"].map(SecretString::from);
        let check = |name: &'static str, value: &'static str| {
            let headers = [(HeaderName::from_static(name), value.parse().unwrap())]
                .into_iter()
                .collect();
            check_token(&tokens, &headers).map(|carriers| carriers.len())
        };
        assert_eq!(check("authorization", "Bearer two"), Some(1));
        assert_eq!(check("authorization", "bearer one"), Some(1));
        assert_eq!(check("x-api-key", "one"), Some(1));
        assert_eq!(check("authorization", "one"), None);
        assert_eq!(check("x-api-key", "on"), None);
        assert_eq!(check("x-api-key", ""), None);
        assert_eq!(check_token(&tokens, &HeaderMap::new()), None);
        assert_eq!(check_token(&[], &HeaderMap::new()), Some(Vec::new()));
    }

    #[test]
    fn every_credential_header_that_can_carry_a_token_is_known_as_one() {
        assert!(
            CLIENT_TOKEN_HEADERS
                .iter()
                .all(|name| CREDENTIALS.contains(name))
        );
    }
}
