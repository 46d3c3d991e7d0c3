//! `Catalogue`: the names that may become labels. Callers cannot make it grow beyond a bound.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

/// The label of every model that is not in the catalogue.
pub(crate) const OTHER: &str = "other";

/// Models that are learnt at one provider at most.
const MAX_LEARNT: usize = 20;

/// The providers, and the models that the configuration names at each. All other models share the label `other`, so that
/// no caller decides how many series there are. At a provider where no model is named, the first 20 that it served, or
/// failed to, have labels of their own.
///
/// ```
/// use fuseline_telemetry::Catalogue;
///
/// let catalogue: Catalogue = [("openai", Some("gpt-5")), ("groq", None)].into_iter().collect();
/// assert_eq!(catalogue.label("openai", "gpt-5"), "gpt-5");
/// assert_eq!(catalogue.label("openai", "made-up"), "other");
/// ```
#[derive(Debug, Default)]
pub struct Catalogue(BTreeMap<String, Models>);

#[derive(Debug, Default)]
struct Models {
    named: BTreeSet<String>,
    learnt: RwLock<BTreeSet<String>>,
}

impl<'a> FromIterator<(&'a str, Option<&'a str>)> for Catalogue {
    fn from_iter<I: IntoIterator<Item = (&'a str, Option<&'a str>)>>(named: I) -> Self {
        let mut models = BTreeMap::<String, Models>::new();
        for (provider, model) in named {
            let known = models.entry(provider.to_owned()).or_default();
            known.named.extend(model.map(str::to_owned));
        }
        Self(models)
    }
}

impl Models {
    fn knows(&self, model: &str) -> bool {
        self.named.contains(model) || self.learnt().contains(model)
    }

    fn learnt(&self) -> std::sync::RwLockReadGuard<'_, BTreeSet<String>> {
        self.learnt.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn learn(&self, model: &str) {
        let is_full = |learnt: &BTreeSet<String>| learnt.len() >= MAX_LEARNT;
        if !self.named.is_empty() || self.knows(model) || is_full(&self.learnt()) {
            return;
        }
        let mut learnt = self.learnt.write().unwrap_or_else(PoisonError::into_inner);
        if !is_full(&learnt) {
            learnt.insert(model.to_owned());
        }
    }
}

impl Catalogue {
    /// The label of a model at a provider.
    pub fn label<'m>(&self, provider: &str, model: &'m str) -> &'m str {
        let models = self.0.get(provider);
        if models.is_some_and(|models| models.knows(model)) {
            model
        } else {
            OTHER
        }
    }

    /// There is such a model at this provider: it served it, or failed to.
    pub(crate) fn learn(&self, provider: &str, model: &str) {
        if let Some(models) = self.0.get(provider) {
            models.learn(model);
        }
    }

    /// Whether there is such a provider.
    pub(crate) fn holds(&self, provider: &str) -> bool {
        self.0.contains_key(provider)
    }

    /// Whether a series may carry this model as a label; an empty one stands for the provider as a whole.
    pub(crate) fn allows(&self, provider: &str, model: &str) -> bool {
        let models = self.0.get(provider);
        models.is_some_and(|models| model.is_empty() || model == OTHER || models.knows(model))
    }

    /// Takes over what an earlier one has learnt of the providers that both hold.
    fn inherit(&self, old: &Self) {
        for (provider, models) in &old.0 {
            for model in &*models.learnt() {
                self.learn(provider, model);
            }
        }
    }

    /// Every pair of labels of providers and models.
    pub(crate) fn pairs(&self) -> Vec<(String, String)> {
        let mut pairs = Vec::new();
        for (provider, models) in &self.0 {
            let learnt = models.learnt();
            let labels = models.named.iter().chain(&*learnt).map(String::as_str);
            let labels = labels.chain([OTHER]);
            pairs.extend(labels.map(|model| (provider.clone(), model.to_owned())));
        }
        pairs
    }

    pub(crate) fn providers(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// The catalogue that holds at present. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Names(Arc<RwLock<Arc<Catalogue>>>);

impl Names {
    pub(crate) fn new(catalogue: Catalogue) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(catalogue))))
    }

    pub(crate) fn read(&self) -> Arc<Catalogue> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace(&self, catalogue: Catalogue) {
        catalogue.inherit(&self.read());
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(catalogue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_learnt_only_where_none_is_named_and_only_so_many() {
        let catalogue: Catalogue = [("closed", Some("m")), ("open", None)]
            .into_iter()
            .collect();
        for number in 0..1_000 {
            for provider in ["closed", "open", "unknown"] {
                catalogue.learn(provider, &format!("model-{number}"));
            }
        }
        assert_eq!(catalogue.label("closed", "model-0"), OTHER);
        assert_eq!(catalogue.label("open", "model-19"), "model-19");
        assert_eq!(catalogue.label("open", "model-20"), OTHER);
        assert_eq!(catalogue.label("unknown", "model-0"), OTHER);
        assert_eq!(catalogue.pairs().len(), 2 + 21);
    }
}
