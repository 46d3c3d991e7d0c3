//! `kill -9` at random moments: what was reported as stored is there, and each open breaker is open with the same end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuseline_mock::{Mock, Reply};
use serde_json::Value;

use super::history;
use super::program::Serving;
use crate::support::{CHAT, get, post, provider, send, spawn};

const PROVIDERS: usize = 6;
/// Open for so long, a breaker must have been stored: twenty looks of the pump, on a busy machine.
const SURELY: u64 = 500;

/// Providers with a model each, whose breakers open, fail their probes and open again all the time.
fn config(mock: &Mock) -> String {
    let mut text = String::new();
    for at in 0..PROVIDERS {
        text.push_str(&provider(&format!("p{at}"), "openai", &mock.url()));
    }
    for at in 0..PROVIDERS {
        let route = format!(
            "[[routes]]\nmodel = \"m{at}\"\nretries = 0\ntargets = [{{ provider = \"p{at}\" }}]\n"
        );
        text.push_str(&route);
    }
    let _ = write!(
        text,
        "[breaker]\ntrip = [{{ rule = \"consecutive\", failures = 2 }}]\ncooldown = \"300ms\"\nbackoff = 3.0\nmax_cooldown = \"5s\"\n"
    );
    text
}

#[expect(clippy::disallowed_methods, reason = "ends are kept as dates")]
fn wall_ms() -> u64 {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(wall.as_millis()).unwrap()
}

/// When each open breaker ends by the admin listener, in ms since 1970, and for how long it has been open.
async fn open_until(serving: &Serving) -> BTreeMap<String, (u64, u64)> {
    let list = send(serving.admin, get("/breakers")).await.json();
    let now = wall_ms();
    let open = list.as_array().unwrap().iter();
    let open = open.filter(|breaker| breaker["state"] == "open");
    let end = |breaker: &Value| {
        let name = breaker["name"].as_str().unwrap().to_owned();
        let left = breaker["retry_after_ms"].as_u64().unwrap();
        (
            name,
            (now + left, breaker["since_ms_ago"].as_u64().unwrap()),
        )
    };
    open.map(end).collect()
}

/// Calls that fail, from several callers at once, until the program dies.
fn storm(serving: &Serving, seed: u64) -> Vec<tokio::task::JoinHandle<()>> {
    let addr = serving.addr;
    let caller = |caller| {
        let mut random = fastrand::Rng::with_seed(seed + caller);
        spawn(async move {
            loop {
                let model = random.usize(..PROVIDERS);
                let body = format!(r#"{{"model":"m{model}","messages":[]}}"#);
                send(addr, post(CHAT, body)).await;
            }
        })
    };
    (0..3).map(caller).collect()
}

/// Which transition: the process's run, the breaker, the number.
type Id = (u64, String, u64);

fn id(line: &Value) -> Id {
    let number = |key: &str| line[key].as_u64().unwrap();
    let breaker = line["breaker"].as_str().unwrap().to_owned();
    (number("run"), breaker, number("number"))
}

/// The last word of the history on each breaker that is open then, with the end it gives.
fn open_by_history(state: &Path) -> BTreeMap<String, u64> {
    let mut last = BTreeMap::new();
    for entry in history(state) {
        let name = entry["breaker"].as_str().unwrap().to_owned();
        let end = entry["until_ms"].as_u64().filter(|_| entry["to"] == "open");
        last.insert(name, end);
    }
    last.into_iter()
        .filter_map(|(name, end)| Some((name, end?)))
        .collect()
}

async fn rounds(rounds: u32) {
    let seed = fastrand::u64(..1 << 40);
    let mut random = fastrand::Rng::with_seed(seed);
    let mock = Mock::start(Reply::status(500)).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("fuseline.db");
    std::fs::write(folder.path().join("fuseline.toml"), config(&mock)).unwrap();
    let (mut expected, mut stored) = (BTreeMap::<String, u64>::new(), BTreeSet::new());
    let mut found_open = 0;
    for round in 0..rounds {
        let told = format!("round {round}, seed {seed}");
        let serving = Serving::start(folder.path());
        assert_eq!(serving.told(), [""; 0], "{told}");
        let found = open_until(&serving).await;
        let now = wall_ms();
        for (name, end) in &expected {
            let still = found
                .get(name)
                .unwrap_or_else(|| panic!("{told}: {name} is not open: {found:?}"));
            // One whose cooldown was over is open with nothing left, from now.
            let end = (*end).max(now);
            assert!(
                still.0.abs_diff(end) <= 1_000,
                "{told}: {name} ends at {}, not at {end}",
                still.0
            );
            found_open += 1;
        }
        let callers = storm(&serving, random.u64(..1 << 40));
        tokio::time::sleep(Duration::from_millis(random.u64(..900))).await;
        let seen = if random.bool() {
            open_until(&serving).await
        } else {
            BTreeMap::new()
        };
        let log = serving.kill();
        for caller in &callers {
            caller.abort();
        }
        let reported = log
            .iter()
            .filter(|line| line["message"] == "transition stored");
        stored.extend(reported.map(id));
        let kept: BTreeSet<Id> = history(&state).iter().map(id).collect();
        let missing: Vec<_> = stored.difference(&kept).collect();
        assert!(
            missing.is_empty(),
            "{told}: reported as stored, and gone: {missing:?}"
        );
        expected = open_by_history(&state);
        for (name, (end, since)) in seen {
            let is_over = end <= wall_ms();
            if since > SURELY && !is_over {
                assert!(
                    expected.contains_key(&name),
                    "{told}: {name} was open for {since} ms"
                );
            }
        }
    }
    assert!(
        !stored.is_empty() && found_open > 0,
        "{} stored, {found_open} found open",
        stored.len()
    );
}

#[tokio::test]
async fn killed_at_random_moments_it_forgets_nothing_that_it_reported_ten_times() {
    rounds(10).await;
}

#[tokio::test]
#[ignore = "200 kills: part of the long run"]
async fn killed_at_random_moments_it_forgets_nothing_that_it_reported_two_hundred_times() {
    rounds(200).await;
}
