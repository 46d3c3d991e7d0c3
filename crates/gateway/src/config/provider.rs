//! `[providers.<name>]`: where a provider is, what it speaks and how one signs in.

use std::fmt;
use std::net::SocketAddr;

use fuseline_core::PolicySpec;
pub use fuseline_llm::Protocol;
use http::Uri;
use secrecy::SecretString;
use toml::de::DeValue;

use super::check::Survey;
use super::reader::{Choices, Section};
use super::value::{Setting, Wrong, text};
use super::{TimeoutSpec, breaker, rules};

/// One provider.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Provider {
    /// The dialect of its API.
    pub protocol: Protocol,
    /// Where its API begins.
    pub base_url: BaseUrl,
    /// The name by which the classifier knows it; empty where only the rules for everybody hold.
    pub rules: String,
    /// Whose key is shown to it.
    pub credential: Credential,
    /// Time limits for this provider.
    pub timeouts: TimeoutSpec,
    /// Breaker settings for this provider.
    pub breaker: PolicySpec,
}

const PROTOCOLS: &Choices<Protocol> = &[
    ("openai", Protocol::OpenAi),
    ("anthropic", Protocol::Anthropic),
    ("gemini", Protocol::Gemini),
];

/// Where the inventor of a protocol answers OpenAI's as well.
pub(super) const fn openai_endpoint(protocol: Protocol) -> Option<&'static str> {
    match protocol {
        Protocol::Anthropic => Some("https://api.anthropic.com/v1"),
        Protocol::Gemini => Some("https://generativelanguage.googleapis.com/v1beta/openai"),
        _ => None,
    }
}

/// Whose key is shown to a provider.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Credential {
    /// The caller's own, passed on.
    Caller,
    /// The gateway's, at least one; a later one serves when an earlier one is spent.
    Keys(Vec<SecretString>),
}

/// Where an API begins: `http` or `https`, a host, perhaps a path and a query; no user or password in it.
///
/// Its text leaves the query out, since some providers take keys there.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl(Uri);

impl BaseUrl {
    /// One that needs no check.
    pub(super) const fn known(uri: Uri) -> Self {
        Self(uri)
    }

    /// The same paths at another address, without TLS.
    pub(crate) fn moved_to(&self, address: SocketAddr) -> Result<Self, http::Error> {
        let path = self.0.path_and_query().map_or("/", |path| path.as_str());
        let uri = Uri::builder().scheme("http").authority(address.to_string());
        uri.path_and_query(path).build().map(Self)
    }

    /// The whole of it.
    pub fn uri(&self) -> &Uri {
        &self.0
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.0.scheme_str().unwrap_or_default();
        let authority = self
            .0
            .authority()
            .map_or("", |authority| authority.as_str());
        write!(f, "{scheme}://{authority}{}", self.0.path())
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl Setting for BaseUrl {
    const FORM: &'static str = "a URL such as \"https://api.openai.com/v1\"";

    fn read(value: &DeValue<'_>) -> Result<Self, Wrong> {
        let text = text(value)?;
        let uri: Uri = text.parse().map_err(|_| Wrong::Value("is no URL"))?;
        let Some(authority) = uri.authority() else {
            return Err(Wrong::Value("is no full URL"));
        };
        let problem = if !matches!(uri.scheme_str(), Some("http" | "https")) {
            "begins with neither http:// nor https://"
        } else if authority.as_str().contains('@') {
            "holds a user or password, which belongs into api_key"
        } else if uri.host().is_none_or(str::is_empty) {
            "names no host"
        } else if authority.as_str().len() > uri.host().map_or(0, str::len)
            && uri.port_u16().is_none()
        {
            "has a bad port"
        } else if text.contains('#') {
            "has a fragment (#), which no server sees"
        } else {
            return Ok(Self(uri));
        };
        Err(Wrong::Value(problem))
    }

    fn written(&self) -> String {
        format!("{self:?}")
    }

    fn may_hide_a_secret(text: &str) -> bool {
        text.contains(['@', '?'])
    }
}

impl Provider {
    pub(super) fn read(
        name: &str,
        section: &mut Section<'_, '_>,
        survey: &mut Survey,
    ) -> Option<Self> {
        let fits = |sign: char| sign.is_ascii_alphanumeric() || "_-.".contains(sign);
        if !section.is_listing() && (name.is_empty() || name.len() > 64 || !name.chars().all(fits))
        {
            let remedy = "use up to 64 letters, digits, `-`, `_` and `.`";
            section.mistake_here("is no name for a provider", remedy);
        }
        let protocol = section.need_choice("protocol", PROTOCOLS, "the dialect of its API");
        survey.providers.insert(name.to_owned(), protocol);
        let base_url: Option<BaseUrl> = section.need(
            "base_url",
            "where its API begins; the version part is joined once, written or not",
        );
        let rules = rules::read(section);
        if let Some(rules) = &rules {
            survey.rules.push((section.path("rules"), rules.clone()));
        }
        let credential = Credential::read(section);
        let timeouts = section.overlay("timeouts", TimeoutSpec::read);
        let breaker = section.overlay("breaker", breaker::read);
        Some(Self {
            protocol: protocol?,
            rules: rules.unwrap_or_else(|| {
                base_url
                    .as_ref()
                    .map_or("", |base| rules::of_address(base.uri()))
                    .to_owned()
            }),
            base_url: base_url?,
            credential: credential?,
            timeouts,
            breaker,
        })
    }
}

impl Credential {
    fn read(section: &mut Section<'_, '_>) -> Option<Self> {
        let keys = section.secrets(
            "api_key",
            "the gateway's own key, or several; a text, from the environment or a file",
        );
        let auth = section.raw(
            "auth",
            "\"caller\"",
            "\"caller\": the caller's own key is passed on",
        );
        let auth = auth.map(|value| value.get_ref().as_str());
        let path = section.path("auth");
        if auth.is_some_and(|auth| auth != Some("caller")) {
            // A key written here by mistake is not repeated.
            section.document.secret_mistake(
                &path,
                "is not known",
                "write \"caller\", or put a key into api_key",
            );
            return None;
        }
        match (section.has("api_key"), auth) {
            (true, Some(_)) => {
                section
                    .document
                    .mistake(&path, "stands beside api_key", "keep one of the two");
                None
            }
            (false, None) => {
                let remedy = "write api_key = { env = \"NAME\" }, or auth = \"caller\" to pass the caller's own on";
                section
                    .document
                    .mistake(&section.path("api_key"), "is missing", remedy);
                None
            }
            (false, Some(_)) => Some(Self::Caller),
            (true, None) => Some(Self::Keys(keys)),
        }
    }
}
