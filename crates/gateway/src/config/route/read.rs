//! Reads `[[routes]]`. Names are kept for the checks across routes.

use std::collections::BTreeMap;
use std::time::Duration;

use fuseline_core::Kind;
use toml::Spanned;
use toml::de::DeValue;

use super::{Elsewhere, OnExhausted, OnKind, Route, Strategy, Target};
use crate::config::check::{Outline, Survey};
use crate::config::reader::{Choices, Section};
use crate::config::value::type_of;
use crate::config::{Pattern, TimeoutSpec};

const STRATEGIES: &Choices<Strategy> = &[
    ("priority", Strategy::Priority),
    ("cheapest", Strategy::Cheapest),
    ("fastest", Strategy::Fastest),
    ("weighted", Strategy::Weighted),
];

const ELSEWHERE: &str = "a provider's name, \"provider/model\", a table such as { provider = \"spare\" }, or another route's model";

impl Route {
    pub(in crate::config) fn read(
        section: &mut Section<'_, '_>,
        survey: &mut Survey,
    ) -> Option<Self> {
        let secs = Duration::from_secs;
        let mut outline = Outline::new(section.own_path());
        let model: Option<Pattern> =
            section.need("model", "the models it serves: a name, or a glob");
        outline.model = model.as_ref().map(|model| model.as_str().to_owned());
        let before = section.document.findings_so_far();
        let targets = targets(section, survey, &mut outline);
        let all_read = section.document.findings_so_far() == before;
        let strategy = section.choice(
            "strategy",
            STRATEGIES,
            Some("priority"),
            "in which order targets are tried",
        );
        let strategy = strategy.unwrap_or_default();
        if strategy == Strategy::Cheapest && all_read {
            ensure_prices(section, &targets);
        }
        let budget = section.opt(
            "budget",
            Some(secs(120)),
            "how long a call may take until its answer is committed",
        );
        if let Some(budget) = budget {
            section.ensure_positive(budget, "budget");
        }
        let retries = section.get(
            "retries",
            1,
            "further attempts at the same target, up to 20",
        );
        section.ensure(retries <= 20, "retries", "is out of range", "write 0 to 20");
        let max_attempts = section.get("max_attempts", 6, "attempts in all, up to 100");
        section.ensure(
            (1..=100).contains(&max_attempts),
            "max_attempts",
            "is out of range",
            "write 1 to 100",
        );
        let route = Self {
            targets,
            strategy,
            budget,
            retries,
            max_attempts,
            max_wait: section.get(
                "max_wait",
                secs(30),
                "longest wait within a call on a provider's word",
            ),
            resend_unknown: section.get(
                "resend_unknown",
                false,
                "send a request whose outcome is unknown again, under one Idempotency-Key",
            ),
            hedge: hedge(section),
            hold_back: section.get(
                "hold_back",
                secs(0),
                "how long after its first content a stream is kept back",
            ),
            on_exhausted: on_exhausted(section, survey, &mut outline),
            on: section.table("on", |on| on_kinds(on, survey, &mut outline)),
            timeouts: section.overlay("timeouts", TimeoutSpec::read),
            model: model?,
        };
        survey.routes.push(outline);
        Some(route)
    }
}

fn hedge(section: &mut Section<'_, '_>) -> Option<f64> {
    let doc = "share of answers, such as 0.95, after whose time a second target is asked as well";
    let share = section.opt("hedge", None, doc);
    let fits = share.is_none_or(|share| (0.5..=0.999).contains(&share));
    section.ensure(fits, "hedge", "is out of range", "write 0.5 to 0.999");
    share
}

/// What has no price could not be compared.
fn ensure_prices(section: &mut Section<'_, '_>, targets: &[Target]) {
    for (at, target) in targets.iter().enumerate() {
        if target.price.is_none() {
            let remedy = "strategy = \"cheapest\" compares prices; write price = 2.5 or price = { input = 2.5, output = 10 }";
            section.mistake_below(
                &format!("targets[{at}].price"),
                "is missing",
                remedy.to_owned(),
            );
        }
    }
}

fn targets(section: &mut Section<'_, '_>, survey: &Survey, outline: &mut Outline) -> Vec<Target> {
    let path = section.path("targets");
    let before = section.document.findings_so_far();
    let targets = section.list("targets", |target| Target::read(target, survey, outline));
    if targets.is_empty() && section.document.findings_so_far() == before {
        let problem = if section.has("targets") {
            "is empty"
        } else {
            "is missing"
        };
        section.document.mistake(
            &path,
            problem,
            "write at least one target: [{ provider = \"name\" }]",
        );
    }
    targets
}

fn on_exhausted(
    section: &mut Section<'_, '_>,
    survey: &Survey,
    outline: &mut Outline,
) -> Vec<OnExhausted> {
    let form = "a list of \"cache\", \"wait\", \"queue\", targets and routes";
    let doc = "what is left to do when every target is out, in order";
    let Some(value) = section.raw("on_exhausted", form, doc) else {
        return Vec::new();
    };
    let path = section.path("on_exhausted");
    let Some(steps) = value.get_ref().as_array() else {
        section
            .document
            .mistake(&path, type_of(value.get_ref()), format!("write {form}"));
        return Vec::new();
    };
    let mut found = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        found.extend(match step.get_ref().as_str() {
            Some("cache") => Some(OnExhausted::Cache),
            Some("wait") => Some(OnExhausted::Wait),
            Some("queue") => Some(OnExhausted::Queue),
            _ => elsewhere(section, format!("{path}[{at}]"), step, survey, outline)
                .map(OnExhausted::Elsewhere),
        });
    }
    found
}

fn on_kinds(
    section: &mut Section<'_, '_>,
    survey: &Survey,
    outline: &mut Outline,
) -> BTreeMap<Kind, OnKind> {
    let mut found = BTreeMap::new();
    let mut named = Outline::new(section.own_path());
    for kind in Kind::ALL {
        let doc = "after such a failure, instead of the usual";
        let form = match kind {
            Kind::ContextLength => "\"next\", \"return\", \"bigger\", a target or a route",
            _ => "\"next\", \"return\", a target or a route",
        };
        let Some(value) = section.raw(kind.as_str(), form, doc) else {
            continue;
        };
        let step = match value.get_ref().as_str() {
            Some("next") => Some(OnKind::Next),
            Some("return") => Some(OnKind::Return),
            Some("bigger") if kind == Kind::ContextLength => {
                outline.wants_contexts = Some(section.path(kind.as_str()));
                Some(OnKind::Bigger)
            }
            _ => elsewhere(
                section,
                section.path(kind.as_str()),
                value,
                survey,
                &mut named,
            )
            .map(OnKind::Elsewhere),
        };
        found.extend(step.map(|step| (kind, step)));
    }
    outline.detours = named.targets;
    outline.links.extend(named.links);
    found
}

/// A text or table that names a target, or a text that names a route by its model. A provider's name is taken
/// first; whether a route of that name exists is seen when all are read.
fn elsewhere<'t>(
    section: &mut Section<'_, 't>,
    path: String,
    value: &Spanned<DeValue<'t>>,
    survey: &Survey,
    outline: &mut Outline,
) -> Option<Elsewhere> {
    match value.get_ref() {
        DeValue::Table(table) => section
            .inline(path, table, |target| Target::read(target, survey, outline))
            .map(Elsewhere::Target),
        DeValue::String(text) => {
            let (provider, model) = match text.split_once('/') {
                Some((provider, model)) => (provider, Some(model.to_owned())),
                None => (text.as_ref(), None),
            };
            if survey.unknown_provider(provider).is_some() {
                outline.links.push((path, text.to_string()));
                return Some(Elsewhere::Route(text.to_string()));
            }
            let target = Target::named(provider, model);
            outline.targets.push((path, target.clone()));
            Some(Elsewhere::Target(target))
        }
        other => {
            section
                .document
                .mistake(&path, type_of(other), format!("write {ELSEWHERE}"));
            None
        }
    }
}
