//! What there is to see of a breaker, as dictionaries whose keys are the fields of the Python classes. Times are seconds by
//! the breaker's clock.

use fuseline::{FailureNote, RuleSnapshot, Snapshot, State, Tick, Transition, Why};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// An instant in seconds.
pub(crate) fn at(tick: Tick) -> f64 {
    // Exact for as long as anything runs.
    tick.as_millis() as f64 / 1_000.0
}

pub(crate) fn snapshot<'py>(py: Python<'py>, seen: &Snapshot) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("name", seen.name.to_string())?;
    all.set_item("scope", seen.scope().as_str())?;
    all.set_item("at", at(seen.at))?;
    all.set_item("state", seen.state.as_str())?;
    all.set_item("since", at(seen.since))?;
    all.set_item("generation", seen.generation)?;
    all.set_item("reason", seen.reason.map(|reason| reason.as_str()))?;
    let wait = seen.retry_after.map(|wait| wait.as_secs_f64());
    all.set_item("retry_after", wait)?;
    all.set_item("run", seen.run)?;
    let kinds = PyDict::new(py);
    for (kind, count) in &seen.kinds {
        kinds.set_item(kind.as_str(), count)?;
    }
    all.set_item("kinds", kinds)?;
    let rules: PyResult<Vec<_>> = seen.rules.iter().map(|seen| rule(py, seen)).collect();
    all.set_item("rules", rules?)?;
    all.set_item("pressure", seen.pressure)?;
    all.set_item("episodes", seen.episodes)?;
    all.set_item("live_probes", seen.live_probes)?;
    all.set_item("good_probes", seen.good_probes)?;
    all.set_item("in_flight", seen.in_flight)?;
    all.set_item("late", seen.late)?;
    let rejected = PyDict::new(py);
    for (reason, count) in seen.rejected {
        rejected.set_item(reason.as_str(), count)?;
    }
    all.set_item("rejected", rejected)?;
    let entered = PyDict::new(py);
    for (state, count) in State::ALL.into_iter().zip(seen.entered) {
        entered.set_item(state.as_str(), count)?;
    }
    all.set_item("entered", entered)?;
    all.set_item("open_for", seen.open_for.as_secs_f64())?;
    all.set_item("incident_since", seen.incident_since.map(at))?;
    all.set_item("last_failures", failures(py, &seen.last_failures)?)?;
    let last = seen.why.as_ref().map(|last| transition(py, last));
    all.set_item("why", last.transpose()?)?;
    Ok(all)
}

pub(crate) fn transition<'py>(
    py: Python<'py>,
    change: &Transition,
) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("number", change.number)?;
    all.set_item("at", at(change.at))?;
    all.set_item("from_state", change.from.as_str())?;
    all.set_item("to_state", change.to.as_str())?;
    all.set_item("generation", change.generation)?;
    all.set_item("until", change.until.map(at))?;
    all.set_item("why", why(py, &change.why)?)?;
    Ok(all)
}

fn why<'py>(py: Python<'py>, why: &Why) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("cause", why.cause.as_str())?;
    all.set_item("observed", why.observed)?;
    all.set_item("threshold", why.threshold)?;
    all.set_item("kind", why.kind.map(|kind| kind.as_str()))?;
    all.set_item("last_failures", failures(py, &why.last_failures)?)?;
    all.set_item("text", why.to_string())?;
    Ok(all)
}

fn failures<'py>(py: Python<'py>, notes: &[FailureNote]) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let note = |note: &FailureNote| {
        let all = PyDict::new(py);
        all.set_item("at", at(note.at))?;
        all.set_item("kind", note.kind.as_str())?;
        all.set_item("code", note.code)?;
        Ok(all)
    };
    notes.iter().map(note).collect()
}

fn rule<'py>(py: Python<'py>, seen: &RuleSnapshot) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("rule", seen.rule)?;
    all.set_item("hits", seen.hits)?;
    all.set_item("calls", seen.calls)?;
    all.set_item("observed", seen.observed)?;
    all.set_item("threshold", seen.threshold)?;
    all.set_item("armed", seen.armed)?;
    Ok(all)
}
