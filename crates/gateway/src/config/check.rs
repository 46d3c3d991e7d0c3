//! What one section alone cannot tell: names that lead nowhere, mixed protocols, targets named twice, cycles.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fuseline_llm::Classifier;

use super::document::Document;
use super::provider::{Protocol, openai_endpoint};
use super::route::Target;
use super::rules;
use super::words::{did_you_mean, quoted};

/// What the checks need to know of all sections, those included that could not be read in full.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// The protocol of each provider written, where that is known.
    pub(super) providers: BTreeMap<String, Option<Protocol>>,
    /// The rules that providers name, each with its key.
    pub(super) rules: Vec<(String, String)>,
    pub(super) routes: Vec<Outline>,
    pub(super) allow_anonymous: bool,
    /// Whether some `[[models]]` has a `context`.
    pub(super) models_have_contexts: bool,
}

/// One route's names.
#[derive(Debug)]
pub(super) struct Outline {
    path: String,
    pub(super) model: Option<String>,
    /// The targets and those of `on_exhausted`, each with its key.
    pub(super) targets: Vec<(String, Target)>,
    /// The targets of `on`, which may be among the others.
    pub(super) detours: Vec<(String, Target)>,
    /// The routes that `on_exhausted` and `on` name, each with its key.
    pub(super) links: Vec<(String, String)>,
    /// The key that asks for a larger context, if there is one.
    pub(super) wants_contexts: Option<String>,
}

impl Outline {
    pub(super) fn new(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            model: None,
            targets: Vec::new(),
            detours: Vec::new(),
            links: Vec::new(),
            wants_contexts: None,
        }
    }

    fn named(&self) -> impl Iterator<Item = &(String, Target)> {
        self.targets.iter().chain(&self.detours)
    }
}

impl Survey {
    /// What to do about a provider's name that names none; none if it names one.
    pub(super) fn unknown_provider(&self, name: &str) -> Option<String> {
        let known = || self.providers.keys().map(String::as_str);
        if self.providers.contains_key(name) {
            None
        } else if self.providers.is_empty() {
            Some(format!("write a section [providers.{name}]"))
        } else {
            Some(
                did_you_mean(name, known()).unwrap_or_else(|| format!("write {}", quoted(known()))),
            )
        }
    }

    /// Every check across sections.
    pub(super) fn check(&self, classifier: &Classifier, document: &mut Document<'_>) {
        self.duplicate_routes(document);
        for (key, name) in &self.rules {
            rules::check(name, key, classifier, document);
        }
        for route in &self.routes {
            duplicate_targets(route, document);
            self.protocols(route, document);
            self.models_in_paths(route, document);
            self.links(route, document);
            self.contexts(route, document);
        }
        self.cycles(document);
        self.unused_providers(document);
    }

    fn duplicate_routes(&self, document: &mut Document<'_>) {
        let mut seen = BTreeMap::new();
        for route in &self.routes {
            let Some(model) = &route.model else { continue };
            if let Some(first) = seen.insert(model, &route.path) {
                let remedy = format!("{first} serves the same models; keep one of the two");
                document.mistake(&format!("{}.model", route.path), "is written twice", remedy);
                seen.insert(model, first);
            }
        }
    }

    fn protocols(&self, route: &Outline, document: &mut Document<'_>) {
        let Some((first, protocol)) = self.protocol(route) else {
            return;
        };
        for (key, target) in route.named() {
            let Some(Some(other)) = self.providers.get(&target.provider) else {
                continue;
            };
            if *other != protocol {
                let problem = format!(
                    "speaks {}, but the route's first provider {:?} speaks {}",
                    other.as_str(),
                    first.provider,
                    protocol.as_str()
                );
                let odd = if *other == Protocol::OpenAi {
                    (first, protocol)
                } else {
                    (target, *other)
                };
                document.mistake(key, problem, one_protocol(&odd.0.provider, odd.1));
            }
        }
    }

    /// Gemini has the model in the path, where it must stay one segment.
    fn models_in_paths(&self, route: &Outline, document: &mut Document<'_>) {
        for (key, target) in route.named() {
            let protocol = self.providers.get(&target.provider).copied().flatten();
            let model = target.model.as_deref().unwrap_or("m");
            if protocol == Some(Protocol::Gemini) && !is_segment(model) {
                let key = key
                    .strip_suffix(".provider")
                    .map_or_else(|| key.clone(), |target| format!("{target}.model"));
                document.mistake(
                    &key,
                    "cannot stand in a path, where Gemini has its model",
                    "write the model's id alone, such as \"gemini-2.5-pro\"",
                );
            }
        }
    }

    fn protocol<'a>(&self, route: &'a Outline) -> Option<(&'a Target, Protocol)> {
        let known = |(_, target): &'a (String, Target)| {
            Some((
                target,
                self.providers.get(&target.provider).copied().flatten()?,
            ))
        };
        route.targets.iter().find_map(known)
    }

    fn links(&self, route: &Outline, document: &mut Document<'_>) {
        for (key, model) in &route.links {
            let Some(other) = self
                .routes
                .iter()
                .find(|other| other.model.as_ref() == Some(model))
            else {
                let models = self
                    .routes
                    .iter()
                    .filter_map(|route| route.model.as_deref());
                let known: BTreeSet<&str> = self
                    .providers
                    .keys()
                    .map(String::as_str)
                    .chain(models)
                    .collect();
                let remedy = did_you_mean(model, known.iter().copied()).unwrap_or_else(|| {
                    "write a provider's name, \"provider/model\" or another route's model"
                        .to_owned()
                });
                document.mistake(key, "no such provider, and no route's model", remedy);
                continue;
            };
            let (Some((_, own)), Some((theirs, other))) =
                (self.protocol(route), self.protocol(other))
            else {
                continue;
            };
            if own != other {
                let problem = format!(
                    "leads to a route that speaks {}, while this one speaks {}",
                    other.as_str(),
                    own.as_str()
                );
                document.mistake(
                    key,
                    problem,
                    format!("{:?} must speak {} too", theirs.provider, own.as_str()),
                );
            }
        }
    }

    fn contexts(&self, route: &Outline, document: &mut Document<'_>) {
        let of_targets = route.named().any(|(_, target)| target.context.is_some());
        if let Some(key) = &route.wants_contexts
            && !of_targets
            && !self.models_have_contexts
        {
            let remedy = "write context = TOKENS at the targets, or in [[models]]";
            document.mistake(key, "has no contexts to compare", remedy);
        }
    }

    /// Each cycle once: from its first route, by a shortest way round.
    fn cycles(&self, document: &mut Document<'_>) {
        for start in 0..self.routes.len() {
            if let Some((key, way)) = self.way_back(start) {
                let remedy = format!("{}; remove one of these steps", way.join(" -> "));
                document.mistake(&key, "leads back to its own route", remedy);
            }
        }
    }

    /// The key of the first step and the models on a way from a route back to it through later ones.
    fn way_back(&self, start: usize) -> Option<(String, Vec<String>)> {
        let home = self.routes.get(start)?;
        let home_model = home.model.clone()?;
        let mut seen = BTreeSet::new();
        let mut open: VecDeque<(usize, String, Vec<String>)> = VecDeque::new();
        let first = home
            .links
            .iter()
            .map(|(key, model)| (key.clone(), model, vec![home_model.clone()]));
        let mut steps: Vec<_> = first.collect();
        loop {
            for (key, model, mut way) in steps.drain(..) {
                way.push(model.clone());
                let next = self
                    .routes
                    .iter()
                    .position(|route| route.model.as_ref() == Some(model));
                match next {
                    Some(next) if next == start => return Some((key, way)),
                    Some(next) if next > start && seen.insert(next) => {
                        open.push_back((next, key, way))
                    }
                    _ => {}
                }
            }
            let (at, key, way) = open.pop_front()?;
            let links = self
                .routes
                .get(at)
                .into_iter()
                .flat_map(|route| &route.links);
            steps = links
                .map(|(_, model)| (key.clone(), model, way.clone()))
                .collect();
        }
    }

    fn unused_providers(&self, document: &mut Document<'_>) {
        let targets = self.routes.iter().flat_map(Outline::named);
        let used: BTreeSet<&str> = targets
            .map(|(_, target)| target.provider.as_str())
            .collect();
        for name in self
            .providers
            .keys()
            .filter(|name| !used.contains(name.as_str()))
        {
            document.note(
                &super::document::join("providers", name),
                "no route names this provider",
            );
        }
    }
}

fn duplicate_targets(route: &Outline, document: &mut Document<'_>) {
    let mut seen = BTreeMap::new();
    for (key, target) in &route.targets {
        if let Some(first) = seen.get(&(&target.provider, &target.model)) {
            let remedy = format!("{first} names it already; remove one of the two");
            document.mistake(key, "is the same target again", remedy);
        } else {
            seen.insert((&target.provider, &target.model), key);
        }
    }
}

/// Whether a text is one segment of a path, as it is (RFC 3986, section 3.3).
fn is_segment(text: &str) -> bool {
    let fits = |sign: char| sign.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@".contains(sign);
    text.chars().all(fits) && !matches!(text, "." | "..")
}

fn one_protocol(provider: &str, protocol: Protocol) -> String {
    match openai_endpoint(protocol) {
        Some(endpoint) => format!(
            "give {provider:?} protocol = \"openai\" and its compatible endpoint base_url = {endpoint:?}"
        ),
        None => "keep to one protocol in a route".to_owned(),
    }
}
