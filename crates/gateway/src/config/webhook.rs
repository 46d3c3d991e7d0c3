//! `[[webhooks]]`: who is told of transitions, and of which.

use std::fmt;

use fuseline_core::State;
use http::Uri;
use secrecy::ExposeSecret as _;
use toml::de::DeValue;

use super::reader::{Choices, Section};
use super::value::type_of;
use super::words::quoted;

/// One receiver.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Webhook {
    /// Where to.
    pub url: WebhookUrl,
    /// In which shape.
    pub format: WebhookFormat,
    /// It is told when a breaker comes into one of these.
    pub states: Vec<State>,
}

/// The shape of what is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WebhookFormat {
    /// The transition as one JSON object, as on `/events`.
    #[default]
    Json,
    /// A message to a channel of Slack, or of others that take the same.
    Slack,
}

/// A receiver's address. Whoever knows it may write there, so its text names the host alone.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookUrl(Uri);

impl WebhookUrl {
    /// The whole of it.
    pub fn uri(&self) -> &Uri {
        &self.0
    }

    fn new(text: &str) -> Option<Self> {
        let uri: Uri = text.parse().ok()?;
        let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
        let names_host = uri.host().is_some_and(|host| !host.is_empty());
        (is_web && names_host && !text.contains('@')).then_some(Self(uri))
    }
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.0.scheme_str().unwrap_or_default();
        write!(f, "{scheme}://{}/***", self.0.host().unwrap_or_default())
    }
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

const FORMATS: &Choices<WebhookFormat> = &[
    ("json", WebhookFormat::Json),
    ("slack", WebhookFormat::Slack),
];
const USUAL: [State; 4] = [
    State::Open,
    State::Closed,
    State::ForcedOpen,
    State::ForcedClosed,
];

impl Webhook {
    pub(super) fn read(section: &mut Section<'_, '_>) -> Option<Self> {
        let is_missing = !section.has("url") && !section.is_listing();
        let path = section.path("url");
        let url = section.secret("url", "where transitions are posted to; it is kept secret");
        if is_missing {
            let remedy = "write a URL, { env = \"NAME\" } or { file = \"path\" }";
            section.document.mistake(&path, "is missing", remedy);
        }
        let parsed = url.as_ref().map(|url| WebhookUrl::new(url.expose_secret()));
        if let Some(None) = parsed {
            let remedy =
                "write one that begins with http:// or https://, without a user or password";
            section
                .document
                .secret_mistake(&path, "is no URL of the web", remedy);
        }
        let doc = "the shape of what is posted: the transition as JSON, or a message for Slack";
        let format = section.choice("format", FORMATS, Some("json"), doc);
        let states = states(section);
        Some(Self {
            url: parsed??,
            format: format.unwrap_or_default(),
            states,
        })
    }
}

fn states(section: &mut Section<'_, '_>) -> Vec<State> {
    let names = || State::ALL.into_iter().map(State::as_str);
    let form = "a list of states [default: open, closed, forced_open, forced_closed]";
    let doc = "the states of which it is told when a breaker comes into them";
    let Some(value) = section.raw("states", form, doc) else {
        return USUAL.to_vec();
    };
    let path = section.path("states");
    let Some(items) = value.get_ref().as_array().filter(|items| !items.is_empty()) else {
        let problem = match value.get_ref() {
            DeValue::Array(_) => "is empty",
            other => type_of(other),
        };
        let remedy = format!("write a list of {}", quoted(names()));
        section.document.mistake(&path, problem, remedy);
        return Vec::new();
    };
    let mut states = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let name = item.get_ref().as_str();
        match State::ALL
            .into_iter()
            .find(|state| name == Some(state.as_str()))
        {
            Some(state) => states.push(state),
            None => section.document.mistake(
                &format!("{path}[{at}]"),
                "is no state",
                format!("write {}", quoted(names())),
            ),
        }
    }
    states
}
