//! `Aim`: one target under one key, with what every call to it needs, and the memory of those that were called.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use fuseline_core::Scopes;
use fuseline_llm::Target;
use http::header::HeaderValue;

use crate::config::Timeouts;

/// Names of models are the callers' to choose: where these are more, all are forgotten, and found anew.
const MOST: usize = 1_000;

/// Where a call can go.
pub(crate) struct Aim {
    pub(crate) target: Target,
    /// What callers are told of where they are served: provider and model.
    pub(crate) name: HeaderValue,
    /// None where there is no room for its breaker.
    pub(crate) scopes: Option<Scopes>,
    /// Of an attempt there.
    pub(crate) timeouts: Timeouts,
}

/// The aims at one provider along one route, by model, one for each of its keys.
#[derive(Default)]
pub(crate) struct Aims(RwLock<HashMap<Box<str>, Keyed>>);

/// Those at one model, one for each key.
pub(super) type Keyed = Arc<[Arc<Aim>]>;

impl Aims {
    /// Those at this model, made where they are not known.
    pub(crate) fn at(&self, model: &str, make: impl FnOnce() -> Vec<Arc<Aim>>) -> Keyed {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(aims) = known.get(model) {
            return Arc::clone(aims);
        }
        drop(known);
        let made: Keyed = make().into();
        if made.iter().all(|aim| aim.scopes.is_some()) {
            let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= MOST {
                known.clear();
            }
            known.insert(model.into(), Arc::clone(&made));
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_callers_name_is_remembered_within_a_bound() {
        let aims = Aims::default();
        let none = || -> Vec<Arc<Aim>> { panic!("it is known") };
        for name in 0..3 * MOST {
            let name = name.to_string();
            aims.at(&name, Vec::new);
            aims.at(&name, none);
            assert!(aims.0.read().unwrap().len() <= MOST);
        }
    }
}
