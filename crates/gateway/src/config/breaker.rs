//! `[breaker]`: the circuit breaker's settings. Also per provider and model.

use std::time::Duration;

use fuseline_core::{
    Count, Kind, KindSpec, Mode, OnSuccess, Per, Policy, PolicySpec, Preset, TripRule,
};

use super::reader::{Choices, Section};

const MODES: &Choices<Mode> = &[
    ("enforce", Mode::Enforce),
    ("shadow", Mode::Shadow),
    ("off", Mode::Off),
];
const ON_SUCCESS: &Choices<OnSuccess> = &[
    ("reset", OnSuccess::Reset),
    ("decrement", OnSuccess::Decrement),
];
const COUNTS: &Choices<Count> = &[("call", Count::Call), ("attempt", Count::Attempt)];
const PER: &Choices<Per> = &[("model", Per::Model), ("provider", Per::Provider)];

#[derive(Clone, Copy)]
enum Rule {
    Consecutive,
    Window,
    Rate,
    Slow,
    Cusum,
}

const RULES: &Choices<Rule> = &[
    ("consecutive", Rule::Consecutive),
    ("window", Rule::Window),
    ("rate", Rule::Rate),
    ("slow", Rule::Slow),
    ("cusum", Rule::Cusum),
];

const TRIP: &str = "any rule that fires opens; without rules: 5 failures in a row, or half of at least 10 calls in 60s";
const MINUTE: Duration = Duration::from_secs(60);

/// Reads a `breaker` section. The core judges the values; its verdicts are told at their keys.
pub(super) fn read(section: &mut Section<'_, '_>) -> PolicySpec {
    let presets = Preset::ALL.map(|preset| (preset.as_str(), preset));
    let preset = "a known system's behaviour; keys written beside it win";
    let mode = "shadow decides and reports and rejects nobody";
    let on_success = "what a success does to the failures counted";
    let degraded_at = "share of a threshold from which the state reads degraded; 1 = never";
    let max_in_flight = "calls at once; more are rejected; 0 = no limit";
    let count = "whether a call or each attempt counts once";
    let per = "whose breaker a provider's failure is charged to";
    if section.has("preset") {
        section.without_defaults();
    }
    let spec = PolicySpec {
        preset: section.choice("preset", &presets, None, preset),
        mode: section.choice("mode", MODES, Some("enforce"), mode),
        trip: trip(section),
        on_success: section.choice("on_success", ON_SUCCESS, Some("reset"), on_success),
        degraded_at: section.opt("degraded_at", Some(0.6), degraded_at),
        max_in_flight: section.opt("max_in_flight", Some(0), max_in_flight),
        count: section.choice("count", COUNTS, Some("call"), count),
        per: section.choice("per", PER, Some("model"), per),
        kinds: section.overlay("kinds", |kinds| {
            let row = |kind: Kind| Some((kind, kinds_row(kinds, kind)?));
            Kind::ALL.into_iter().filter_map(row).collect()
        }),
        ..recovery(section)
    };
    if let Err(error) = Policy::new(&spec) {
        for problem in error.problems {
            let remedy = format!("write {}", problem.allowed);
            section.mistake_below(&problem.key, "is out of range", remedy);
        }
    }
    spec
}

/// The keys about being open, and about the way back.
fn recovery(section: &mut Section<'_, '_>) -> PolicySpec {
    let secs = |count| Some(Duration::from_secs(count));
    let backoff = "factor on the cooldown per failed probe episode";
    let max_cooldown = "cap of that growth, never below the cooldown";
    let jitter = "lengthens a cooldown by up to this share";
    let probe_timeout = "a probe without a sign of life for this long has failed";
    let probe_proof = "a streaming probe with content for this long is a success";
    let ramp = "after closing, admission grows from 10 % to all over this time";
    PolicySpec {
        cooldown: section.opt("cooldown", secs(15), "time in open"),
        backoff: section.opt("backoff", Some(2.0), backoff),
        backoff_after: section.opt(
            "backoff_after",
            Some(0),
            "failed episodes before the factor applies",
        ),
        max_cooldown: section.opt("max_cooldown", secs(120), max_cooldown),
        jitter: section.opt("jitter", Some(0.1), jitter),
        max_retry_after: section.opt(
            "max_retry_after",
            secs(3_600),
            "cap of a provider's own wait hint",
        ),
        probes: section.opt("probes", Some(1), "probes at once while half-open, 1 to 64"),
        successes_to_close: section.opt(
            "successes_to_close",
            Some(2),
            "good probes needed to close",
        ),
        probe_timeout: section.opt("probe_timeout", secs(60), probe_timeout),
        probe_proof: section.opt("probe_proof", secs(5), probe_proof),
        ramp: section.opt("ramp", secs(0), ramp),
        ..PolicySpec::default()
    }
}

fn trip(section: &mut Section<'_, '_>) -> Option<Vec<TripRule>> {
    let written = section.has("trip");
    let rules = section.list("trip", |rule| Some(trip_rule(rule)));
    written.then_some(rules)
}

/// One rule. What cannot be read has a harmless value, so that the rest of it and the other rules are still judged.
fn trip_rule(section: &mut Section<'_, '_>) -> TripRule {
    match section.need_choice("rule", RULES, TRIP) {
        Some(Rule::Consecutive) => TripRule::Consecutive {
            failures: failures(section),
        },
        Some(Rule::Window) => TripRule::Window {
            failures: failures(section),
            window: window(section),
        },
        Some(Rule::Rate) => {
            let (threshold, window, min_calls) = ratio(section);
            TripRule::Rate {
                threshold,
                window,
                min_calls,
            }
        }
        Some(Rule::Slow) => {
            let slower_than = slower_than(section);
            let (threshold, window, min_calls) = ratio(section);
            TripRule::Slow {
                slower_than,
                threshold,
                window,
                min_calls,
            }
        }
        Some(Rule::Cusum) => cusum(section),
        None if section.is_listing() => {
            slower_than(section);
            ratio(section);
            cusum(section);
            TripRule::Consecutive {
                failures: failures(section),
            }
        }
        None => {
            section.spare_the_rest();
            TripRule::Consecutive { failures: 1 }
        }
    }
}

fn failures(section: &mut Section<'_, '_>) -> u32 {
    section
        .need("failures", "consecutive, window: failures that open")
        .unwrap_or(1)
}

fn window(section: &mut Section<'_, '_>) -> Duration {
    section
        .need(
            "window",
            "window, rate, slow: how far back calls are looked at",
        )
        .unwrap_or(MINUTE)
}

fn slower_than(section: &mut Section<'_, '_>) -> Duration {
    section
        .need("slower_than", "slow: a success that took longer is slow")
        .unwrap_or(MINUTE)
}

fn ratio(section: &mut Section<'_, '_>) -> (f64, Duration, u32) {
    let threshold = section.need(
        "threshold",
        "rate, slow: share of failed, or slow, calls that opens",
    );
    let window = window(section);
    let min_calls = section.need(
        "min_calls",
        "rate, slow: calls in the window before the share means anything",
    );
    (threshold.unwrap_or(1.0), window, min_calls.unwrap_or(1))
}

fn cusum(section: &mut Section<'_, '_>) -> TripRule {
    let well = "cusum: share of calls that fail on a good day";
    let ill = "cusum: share of failed calls that is trouble, above `well`";
    let calls =
        "cusum: on a good day it opens for nothing no more often than once in so many calls";
    TripRule::Cusum {
        well: section.get("well", TripRule::WELL, well),
        ill: section.get("ill", TripRule::ILL, ill),
        calls_per_false_alarm: section.get(
            "calls_per_false_alarm",
            TripRule::CALLS_PER_FALSE_ALARM,
            calls,
        ),
    }
}

fn kinds_row(kinds: &mut Section<'_, '_>, kind: Kind) -> Option<KindSpec> {
    let written = kinds.has(kind.as_str());
    let row = kinds.table(kind.as_str(), |row| KindSpec {
        count: row.opt("count", None, "whether such failures count at all"),
        threshold: row.opt("threshold", None, "open at this many of the kind"),
        immediate_open: row.get("immediate_open", false, "open at the first"),
        cooldown: row.opt(
            "cooldown",
            None,
            "time in open after such a failure; else the breaker's",
        ),
    });
    written.then_some(row)
}
