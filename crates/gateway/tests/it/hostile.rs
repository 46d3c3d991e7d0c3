//! Thousands of malformed requests and answers, drawn from a seed: no panic, no byte of another caller, memory bounded,
//! and every answer well-formed.

mod callers;
mod provider;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::raw::{self, Read, rest};
use crate::support::{Program, get, openai, route, send, spawn};

/// At once.
const CALLERS: usize = 24;
/// Another run draws other cases.
const SEED: u64 = 0x0f05_e11e;

/// What every case holds of its own, and what must come to nobody else.
fn canary(case: usize) -> String {
    let number = case as u64 & 0xff_ffff;
    let proof = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    format!("canary-{number:06x}-{proof:08x}-")
}

/// How long each is.
const CANARY: usize = 7 + 6 + 1 + 8 + 1;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_hostile_cases_break_nothing() {
    run(2_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "12,000 cases: part of the long run"]
async fn ten_thousand_more_hostile_cases_break_nothing() {
    run(12_000).await;
}

async fn run(cases: usize) {
    let url = provider::start().await;
    let folder = tempfile::tempdir().unwrap();
    let (file, errors) = (
        folder.path().join("fuseline.toml"),
        folder.path().join("errors"),
    );
    let text = format!(
        "[listener]\nhead_timeout = \"300ms\"\nupload_idle = \"300ms\"\n\
         [timeouts]\nfirst_token = \"1s\"\nanswer = \"1s\"\nstall = \"1s\"\nidle = \"1s\"\n\
         [breaker]\nmode = \"off\"\n{}{}",
        openai("a", &url),
        route(&["a"])
    );
    std::fs::write(&file, text).unwrap();
    let told = std::fs::File::create(&errors).unwrap();
    let program = Program::telling(file.to_str().unwrap(), told);
    let addr = program.listen.parse().unwrap();
    for case in 0..CALLERS {
        honest(addr, case).await;
    }
    let before = program.resident_kib();
    let next = Arc::new(AtomicUsize::new(CALLERS));
    let statuses = Arc::new(Mutex::new(BTreeMap::new()));
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (next, statuses) = (Arc::clone(&next), Arc::clone(&statuses));
            spawn(async move {
                loop {
                    let case = next.fetch_add(1, Ordering::Relaxed);
                    if case >= cases {
                        break;
                    }
                    for answer in hostile(addr, case).await {
                        *statuses.lock().unwrap().entry(answer.status).or_insert(0) += 1;
                    }
                    // Among them those who mean well.
                    if case.is_multiple_of(8) {
                        honest(addr, case).await;
                    }
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    let kinds = statuses.lock().unwrap().len();
    println!("{:?}", statuses.lock().unwrap());
    assert!(
        kinds > 12,
        "all sorts were tried, and {kinds} statuses came"
    );
    let grown = program.resident_kib().saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KiB more");
    let health = send(program.admin.parse().unwrap(), get("/healthz")).await;
    assert_eq!(health.status, 200);
    let told = std::fs::read_to_string(errors).unwrap();
    assert!(!told.contains("panicked"), "{told}");
}

/// A caller who means well gets his own answer, whole.
async fn honest(addr: SocketAddr, case: usize) {
    let is_stream = case.is_multiple_of(2);
    let bytes = callers::good(&canary(case), is_stream);
    let answers = exchange(addr, &bytes, false).await.unwrap();
    let [answer] = &answers[..] else {
        panic!("{case}: {answers:?}")
    };
    let said = String::from_utf8_lossy(&answer.body);
    assert_eq!(answer.status, 200, "{case}: {said}");
    assert!(
        !answer.is_cut && said.contains(&canary(case)),
        "{case}: {said}"
    );
    assert_own(case, answer);
}

async fn hostile(addr: SocketAddr, case: usize) -> Vec<Read> {
    let mut rng = Rng::with_seed(SEED ^ (case as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let (bytes, is_ended) = callers::draw(&canary(case), &mut rng);
    let shown = || String::from_utf8_lossy(&bytes[..bytes.len().min(600)]).into_owned();
    let answers = exchange(addr, &bytes, is_ended).await;
    let answers = answers.unwrap_or_else(|why| panic!("case {case}: {why}\nfor {}", shown()));
    for answer in &answers {
        assert_own(case, answer);
        let is_ours = answer.header("x-fuseline-attempts") == "0" || answer.headers.len() < 6;
        if is_ours && !answer.body.is_empty() {
            let is_json = serde_json::from_slice::<serde_json::Value>(&answer.body).is_ok();
            assert!(
                is_json && !answer.is_cut,
                "case {case}: {answer:?}\nfor {}",
                shown()
            );
        }
    }
    answers
}

/// Sends bytes, and reads answers until the connection is closed.
async fn exchange(addr: SocketAddr, bytes: &[u8], is_ended: bool) -> Result<Vec<Read>, String> {
    let mut caller = TcpStream::connect(addr)
        .await
        .map_err(|why| why.to_string())?;
    let (mut receive, mut send) = caller.split();
    let sending = async {
        // Who is refused may not be read to his end.
        let _ = send.write_all(bytes).await;
        if is_ended {
            let _ = send.shutdown().await;
        }
    };
    let (came, ()) = tokio::join!(rest(&mut receive), sending);
    raw::read(&came)
}

/// No canary but the case's own.
fn assert_own(case: usize, answer: &Read) {
    let text = format!(
        "{:?} {}",
        answer.headers,
        String::from_utf8_lossy(&answer.body)
    );
    for (at, _) in text.match_indices("canary-") {
        let number = text.get(at + 7..at + 13).unwrap_or_default();
        let Ok(other) = usize::from_str_radix(number, 16) else {
            continue;
        };
        // One that was damaged on its way proves nothing.
        let is_whole = text.get(at..at + CANARY) == Some(&canary(other));
        assert!(!is_whole || other == case, "{case} got {}", &text[at..]);
    }
}
