//! What is stored, and what is not; restarts; files that cannot be used.

use std::fs;
use std::path::Path;

use fuseline_mock::{Mock, Reply};

use super::{DEAD, TOUCHY, answer, asked, call, fetch, gateway, metric, one, outage, queue};
use crate::support::{send, within};

/// Every byte of every file in a folder.
fn stored(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read(entry.path()).unwrap())
    };
    entries.map(read).collect()
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn calls_and_results_survive_a_restart() {
    let (folder, mock, gateway_before) = outage(TOUCHY).await;
    let done = queue(&gateway_before, "me", "done").await;
    mock.set(Reply::ok()).await.unwrap();
    let before = answer(&gateway_before, "me", &done).await;
    mock.set(Reply::status(503)).await.unwrap();
    let mut places = Vec::new();
    for name in ["one", "two", "three"] {
        places.push(queue(&gateway_before, "me", name).await);
    }
    within(gateway_before.shutdown()).await;

    mock.set(Reply::ok()).await.unwrap();
    let sent = mock.hits();
    let gateway = gateway(folder.path(), &format!("{}{TOUCHY}", one(&mock))).await;
    let after = fetch(&gateway, "me", &done).await;
    assert_eq!((after.status, &after.body), (before.status, &before.body));
    assert_eq!(fetch(&gateway, "another", &done).await.status, 404);
    for place in &places {
        assert_eq!(answer(&gateway, "me", place).await.status, 200);
    }
    let sent = usize::try_from(sent).unwrap();
    assert_eq!(asked(&mock)[sent..], ["one", "two", "three"]);
}

#[tokio::test]
async fn no_credential_is_stored_and_nobody_else_may_read_the_file() {
    let (folder, mock, gateway) = outage(TOUCHY).await;
    let mut request = call("sk-canary-of-the-caller", "a secret of mine");
    for (name, value) in [
        ("x-api-key", "canary-in-a-header"),
        ("cookie", "session=canary-in-a-cookie"),
        ("helicone-auth", "Bearer canary-of-somebody-else"),
        ("idempotency-key", "named-by-me"),
    ] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    *request.uri_mut() = "/v1/chat/completions?key=canary-in-the-query"
        .parse()
        .unwrap();
    let queued = send(gateway.addr(), request).await;
    assert_eq!(queued.status, 202);
    let look = |what: &str| {
        let files = stored(folder.path());
        assert!(files.iter().any(|(name, _)| name == "fuseline.db.queue"));
        for (name, bytes) in &files {
            for secret in ["canary", "key-of-a"] {
                assert!(!holds(bytes, secret), "{secret} stands in {name}");
            }
        }
        files.iter().any(|(_, bytes)| holds(bytes, what))
    };
    assert!(look("a secret of mine"), "the request itself is there");
    mock.set(Reply::ok().text("the answer to it"))
        .await
        .unwrap();
    let place = queued.header("location");
    let shown = |name: &str| super::get(name);
    assert_eq!(send(gateway.addr(), shown(place)).await.status, 404);
    within(async {
        while metric(&gateway, "queue_sent_total").await == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(look("the answer to it"));
    let names = mock.requests();
    let last = names.last().unwrap();
    assert_eq!(last.header("idempotency-key"), Some("named-by-me"));
    assert_eq!(last.header("helicone-auth"), None);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        for end in ["", "-wal", "-shm"] {
            let path = folder.path().join(format!("fuseline.db.queue{end}"));
            let mode = fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{mode:o}");
        }
    }
}

#[tokio::test]
async fn a_queue_that_cannot_be_used_costs_nothing_but_itself() {
    let (folder, mock, first) = outage(DEAD).await;
    let place = queue(&first, "me", "one").await;
    // A second gateway on the same file.
    let second = gateway(folder.path(), &format!("{}{DEAD}", one(&mock))).await;
    assert_eq!(send(second.addr(), call("me", "two")).await.status, 503);
    let refused = send(second.addr(), call("me", "three")).await;
    let why = refused.header("x-fuseline-why");
    assert!(
        why.contains("not queued, the queue cannot be used"),
        "{why}"
    );
    let away = fetch(&second, "me", &place).await;
    assert_eq!(
        (away.status.as_u16(), &away.json()["error"]["code"]),
        (503, &"queue_unavailable".into())
    );
    assert_eq!(fetch(&first, "me", &place).await.status, 202);
    mock.set(Reply::ok()).await.unwrap();
    for breaker in second.registry().breakers() {
        breaker.reset(second.registry().now());
    }
    assert_eq!(send(second.addr(), call("me", "four")).await.status, 200);
}

#[tokio::test]
async fn a_damaged_queue_is_moved_aside_and_the_state_of_breakers_is_kept() {
    let (folder, mock, before) = outage(DEAD).await;
    queue(&before, "me", "one").await;
    within(before.shutdown()).await;
    let file = folder.path().join("fuseline.db.queue");
    let garbage: Vec<u8> = (0..9_000_u32).map(|at| (at * 7 % 251) as u8).collect();
    fs::write(&file, &garbage).unwrap();
    let gateway = gateway(folder.path(), &format!("{}{DEAD}", one(&mock))).await;
    assert_eq!(
        fs::read(folder.path().join("fuseline.db.queue.damaged")).unwrap(),
        garbage
    );
    let hits = mock.hits();
    queue(&gateway, "me", "two").await;
    assert_eq!(mock.hits(), hits, "the circuit is still open");
}

#[tokio::test]
async fn whoever_leaves_while_a_target_is_asked_is_not_queued() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(Reply::stall()).await.unwrap();
    let gateway = gateway(folder.path(), &format!("{}{DEAD}", one(&mock))).await;
    let caller = crate::support::spawn(send(gateway.addr(), call("me", "one")));
    mock.wait_for_hits(1, crate::support::SOON).await.unwrap();
    caller.abort();
    crate::support::until(async || mock.in_flight() == 0).await;
    assert_eq!(metric(&gateway, "queue_queued_total").await, 0);
}
