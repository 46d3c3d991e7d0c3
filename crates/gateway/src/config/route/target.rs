//! Reads one target of `[[routes]]`.

use toml::de::DeValue;

use super::{Price, Target};
use crate::config::check::{Outline, Survey};
use crate::config::reader::{Section, setting};
use crate::config::value::type_of;

const PRICE: &str = "a number, or a table { input = 2.5, output = 10 }";

impl Target {
    pub(super) fn read(
        section: &mut Section<'_, '_>,
        survey: &Survey,
        outline: &mut Outline,
    ) -> Option<Self> {
        let provider: Option<String> = section.need("provider", "a name in providers");
        let doc = "the model to ask it for; else the one that the caller named";
        let model = section.opt("model", None, doc);
        let price = price(section);
        let doc = "share of the calls, for strategy = \"weighted\"";
        let weight = section.opt("weight", None, doc);
        let fits = weight.is_none_or(|weight| (1..=1_000_000).contains(&weight));
        section.ensure(fits, "weight", "is out of range", "write 1 to 1000000");
        let doc = "tokens that the model takes at once; a request that needs more goes elsewhere";
        let context = section.opt("context", None, doc);
        section.ensure(
            context != Some(0),
            "context",
            "leaves no room",
            "write 1 or more",
        );
        let doc = "calls of this route that it may have at once";
        let max_in_flight = section.opt("max_in_flight", None, doc);
        let fits = max_in_flight != Some(0);
        section.ensure(fits, "max_in_flight", "leaves no room", "write 1 or more");
        let provider = provider?;
        let key = section.path("provider");
        if let Some(remedy) = survey.unknown_provider(&provider) {
            section.document.mistake(&key, "no such provider", remedy);
            return None;
        }
        let target = Self {
            price,
            weight,
            context,
            max_in_flight,
            ..Self::named(&provider, model)
        };
        outline.targets.push((key, target.clone()));
        Some(target)
    }

    /// A target of which no more is said.
    pub(crate) fn named(provider: &str, model: Option<String>) -> Self {
        Self {
            provider: provider.to_owned(),
            model,
            price: None,
            weight: None,
            context: None,
            max_in_flight: None,
        }
    }
}

/// One number for both directions, or one for each.
fn price(section: &mut Section<'_, '_>) -> Option<Price> {
    let doc = "US dollars per million tokens, for strategy = \"cheapest\"";
    let value = section.raw("price", PRICE, doc)?;
    let path = section.path("price");
    match value.get_ref() {
        DeValue::Table(table) => section.inline(path, table, |both| {
            Some(Price {
                input: amount(both, "input", "for the tokens of requests")?,
                output: amount(both, "output", "for the tokens of answers")?,
            })
        }),
        DeValue::Integer(_) | DeValue::Float(_) => {
            let both: f64 = setting(section.document, &path, value)?;
            section.ensure(
                is_price(both),
                "price",
                "is out of range",
                "write 0 or more",
            );
            Some(Price {
                input: both,
                output: both,
            })
        }
        other => {
            let remedy = format!("write {PRICE}");
            section.document.mistake(&path, type_of(other), remedy);
            None
        }
    }
}

fn amount(section: &mut Section<'_, '_>, key: &'static str, doc: &'static str) -> Option<f64> {
    let amount = section.need(key, doc)?;
    section.ensure(is_price(amount), key, "is out of range", "write 0 or more");
    Some(amount)
}

fn is_price(amount: f64) -> bool {
    amount.is_finite() && amount >= 0.0
}
