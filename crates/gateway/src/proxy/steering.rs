//! `Steering`: what a caller says of his call in headers, to the gateway and not to any target.

use std::time::Duration;

use fuseline_llm::Fallback;
use http::header::{HeaderMap, HeaderName};

use super::headers::OURS;
use super::refusal::Refusal;

const FALLBACK_HEADER: HeaderName = HeaderName::from_static("x-fuseline-fallback");
const ROUTE_HEADER: HeaderName = HeaderName::from_static("x-fuseline-route");
const BUDGET_HEADER: HeaderName = HeaderName::from_static("x-fuseline-budget-ms");
/// How often an SDK has repeated this call already.
const RETRY_COUNT: HeaderName = HeaderName::from_static("x-stainless-retry-count");

/// What a caller asks of the gateway itself.
pub(super) struct Steering {
    pub(super) route: Option<String>,
    pub(super) fallback: Fallback,
    /// What he gives the call until its answer is committed.
    pub(super) budget: Duration,
    /// His SDK has sent the same call before.
    pub(super) is_repeated: bool,
}

impl Default for Steering {
    fn default() -> Self {
        Self {
            route: None,
            fallback: Fallback::On,
            budget: Duration::MAX,
            is_repeated: false,
        }
    }
}

impl Steering {
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Refusal> {
        // Hardly any call says any of it, and looking once through its headers is quicker than looking each up.
        let is_ours = |name: &HeaderName| name.as_str().starts_with(OURS) || *name == RETRY_COUNT;
        if !headers.keys().any(is_ours) {
            return Ok(Self::default());
        }
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let off = text(FALLBACK_HEADER).is_some_and(|value| value.eq_ignore_ascii_case("off"));
        let fallback = if off { Fallback::Off } else { Fallback::On };
        let budget = match (headers.get(BUDGET_HEADER), number(headers, BUDGET_HEADER)) {
            (None, _) => Duration::MAX,
            (Some(_), Some(millis)) if millis > 0 => Duration::from_millis(millis),
            (Some(_), _) => {
                let form = "a whole number of milliseconds, such as 30000";
                return Err(Refusal::bad_header(BUDGET_HEADER.as_str(), form));
            }
        };
        Ok(Self {
            route: text(ROUTE_HEADER).map(str::to_owned),
            fallback,
            budget,
            is_repeated: number(headers, RETRY_COUNT).is_some_and(|count| count > 0),
        })
    }
}

fn number(headers: &HeaderMap, name: HeaderName) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}
