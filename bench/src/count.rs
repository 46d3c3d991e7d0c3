//! How many instructions the hot path takes, by valgrind, against `bench/instructions.toml`: the same number on a busy
//! machine as on an idle one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::io::Write as _;
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail, ensure};
use fuseline::{Breaker, Kind, Policy, PolicySpec, TripRule};
use fuseline_core::{Outcome, Policies, Registry, ScopeName, Scopes};
use fuseline_llm::{Answer, Body, Classifier};

use crate::classify::{answer, error_body, not_inspected};

const BASELINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/instructions.toml");
/// What a path may take more than its baseline.
const TOLERANCE: f64 = 0.03;
/// Two lengths of the loop, whose difference is the path without the start of the program.
const SHORT: u32 = 1_000;
const LONG: u32 = 21_000;

type Path = (&'static str, fn(u32) -> Result<()>);

const PATHS: [Path; 9] = [
    ("permit, success", permit_success),
    ("permit, cancelled", permit_cancelled),
    ("permit, refusal", permit_refusal),
    ("permit, failure", permit_failure),
    ("owned permit, success", owned_success),
    ("call_blocking, success", call_blocking),
    ("three scopes, success", three_scopes),
    ("classify, 2 KiB error body", classify_error),
    ("classify, 2xx not inspected", classify_success),
];

/// Counts every path, and fails where one takes more than its baseline and the tolerance.
pub(crate) fn check() -> Result<()> {
    let text = fs::read_to_string(BASELINE).with_context(|| format!("cannot read {BASELINE}"))?;
    let baseline: BTreeMap<String, f64> =
        toml::from_str(&text).with_context(|| format!("{BASELINE} is no table of numbers"))?;
    let mut worse = String::new();
    let mut stdout = std::io::stdout().lock();
    writeln!(
        stdout,
        "| path | instructions | baseline |\n|---|---:|---:|"
    )?;
    for (name, _) in PATHS {
        let count = instructions(name)?;
        let base = baseline.get(name).with_context(|| {
            format!("{BASELINE} has no number for `{name}`: `bench/run count --save`")
        })?;
        writeln!(stdout, "| {name} | {count:.1} | {base:.1} |")?;
        if count > base * (1.0 + TOLERANCE) {
            write!(
                worse,
                "\n{name}: {count:.1} instructions, the baseline is {base:.1}"
            )?;
        }
    }
    ensure!(
        worse.is_empty(),
        "more than 3 % above the baseline:{worse}\nif that is worth it, `bench/run count --save` and say why"
    );
    let passed = PATHS.len();
    writeln!(stdout, "\n{passed} passed, 0 failed")?;
    Ok(())
}

/// Writes the baseline anew.
pub(crate) fn save() -> Result<()> {
    let mut text = String::from(
        "# Instructions a call, by `bench/run count`. Written by `bench/run count --save`.\n",
    );
    for (name, _) in PATHS {
        writeln!(text, "\"{name}\" = {:.1}", instructions(name)?)?;
    }
    fs::write(BASELINE, text).with_context(|| format!("cannot write {BASELINE}"))
}

/// Runs one path so many times: what valgrind looks at.
pub(crate) fn run(name: &str, times: &str) -> Result<()> {
    let Some((_, path)) = PATHS.iter().find(|(path, _)| *path == name) else {
        bail!("there is no path `{name}`");
    };
    path(times.parse()?)
}

fn instructions(name: &str) -> Result<f64> {
    let (short, long) = (total(name, SHORT)?, total(name, LONG)?);
    Ok((long - short) / f64::from(LONG - SHORT))
}

fn total(name: &str, times: u32) -> Result<f64> {
    let program = std::env::current_exe()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(&program)
        .args(["count-path", name, &times.to_string()])
        .output()
        .context("valgrind does not start: install the package `valgrind`")?;
    let report = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "valgrind failed:\n{report}");
    let collected = report
        .lines()
        .find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    collected.with_context(|| format!("valgrind reports no instructions:\n{report}"))
}

fn permit_success(times: u32) -> Result<()> {
    let breaker = closed()?;
    for _ in 0..times {
        black_box(
            breaker
                .try_acquire()
                .is_ok_and(|permit| permit.success().is_none()),
        );
    }
    still(breaker.is_available())
}

fn permit_cancelled(times: u32) -> Result<()> {
    let breaker = closed()?;
    for _ in 0..times {
        black_box(breaker.try_acquire().is_ok());
    }
    still(breaker.is_available())
}

fn permit_refusal(times: u32) -> Result<()> {
    let breaker = closed()?;
    for _ in 0..5 {
        let _ = breaker.call_blocking(|| Err::<(), _>(()));
    }
    for _ in 0..times {
        black_box(breaker.try_acquire().is_ok());
    }
    still(!breaker.is_available())
}

fn permit_failure(times: u32) -> Result<()> {
    let breaker = with_rules(u32::MAX, 1.0, u32::MAX)?;
    for _ in 0..times {
        let permit = breaker.try_acquire();
        black_box(permit.is_ok_and(|permit| permit.failure(Kind::ServerError).is_none()));
    }
    still(breaker.is_available())
}

fn owned_success(times: u32) -> Result<()> {
    let breaker = closed()?;
    for _ in 0..times {
        let permit = breaker.try_acquire_owned();
        black_box(permit.is_ok_and(|permit| permit.success().is_none()));
    }
    still(breaker.is_available())
}

fn call_blocking(times: u32) -> Result<()> {
    let breaker = closed()?;
    for _ in 0..times {
        black_box(breaker.call_blocking(|| Ok::<_, ()>(1)).is_ok());
    }
    still(breaker.is_available())
}

/// As the gateway asks: provider, model and key.
fn three_scopes(times: u32) -> Result<()> {
    let registry = Registry::default();
    let (model, key) = (
        ScopeName::model("openai", "large"),
        ScopeName::key("openai", "1f3a"),
    );
    let scopes = Scopes::new(
        &registry,
        ScopeName::provider("openai"),
        Some(model),
        Some(key),
        Policies::all(&Policy::default()),
        registry.now(),
    )?;
    for _ in 0..times {
        let permit = scopes.try_acquire(Duration::ZERO, registry.now());
        let outcome = Outcome::success(Duration::from_millis(1));
        black_box(
            permit.is_ok_and(|permit| permit.record(&outcome, None, registry.now()).is_empty()),
        );
    }
    still(scopes.check(registry.now()).is_ok())
}

fn classify_error(times: u32) -> Result<()> {
    let body = error_body();
    classify(&answer("openai", 400, Body::Whole(body.as_bytes())), times);
    Ok(())
}

fn classify_success(times: u32) -> Result<()> {
    classify(&not_inspected(), times);
    Ok(())
}

fn classify(answer: &Answer<'_>, times: u32) {
    let classifier = Classifier::builtin();
    for _ in 0..times {
        let _ = black_box(classifier.classify(black_box(answer), SystemTime::UNIX_EPOCH));
    }
}

/// A path that has come to another state is not the one that was meant.
fn still(holds: bool) -> Result<()> {
    ensure!(holds, "the breaker changed its state on the way");
    Ok(())
}

fn closed() -> Result<Breaker> {
    with_rules(5, 0.5, 10)
}

/// The consecutive rule, and a rate rule over 60 s.
fn with_rules(failures: u32, threshold: f64, min_calls: u32) -> Result<Breaker> {
    let rate = TripRule::Rate {
        threshold,
        window: Duration::from_secs(60),
        min_calls,
    };
    let spec = PolicySpec {
        trip: Some(vec![TripRule::Consecutive { failures }, rate]),
        ..PolicySpec::default()
    };
    Ok(Breaker::new("openai", Policy::new(&spec)?))
}
