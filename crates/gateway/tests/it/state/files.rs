//! Files that cannot be used: each is reported, and service goes on.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use fuseline_mock::{Mock, Reply};

use super::program::Serving;
use super::{TOUCHY, history};
use crate::support::{CHAT, chat, get, openai, post, route, send, until};

/// A folder with a configuration, for programs to run in.
async fn folder(state: &str) -> (tempfile::TempDir, Mock) {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "state = \"{state}\"\n{}{}{TOUCHY}",
        openai("a", &mock.url()),
        route(&["a"])
    );
    fs::write(folder.path().join("fuseline.toml"), text).unwrap();
    (folder, mock)
}

/// It serves, its breakers open and refuse; gives back the one thing that it told before.
async fn serves(folder: &Path, mock: &Mock) -> String {
    goes_on(&Serving::start(folder), mock).await
}

async fn metrics(serving: &Serving) -> String {
    let page = send(serving.admin, get("/metrics")).await;
    String::from_utf8(page.body.to_vec()).unwrap()
}

async fn goes_on(serving: &Serving, mock: &Mock) -> String {
    let told = serving.told();
    assert_eq!(told.len(), 1, "{told:?}");
    mock.set(Reply::ok()).await.unwrap();
    assert_eq!(send(serving.addr, chat()).await.status, 200);
    mock.set(Reply::status(500)).await.unwrap();
    for expected in [500, 500, 503] {
        assert_eq!(send(serving.addr, chat()).await.status, expected);
    }
    assert_eq!(send(serving.admin, get("/readyz")).await.status, 200);
    told.concat()
}

#[tokio::test]
async fn a_damaged_file_is_moved_aside_and_a_new_one_keeps_the_state() {
    let (folder, mock) = folder("fuseline.db").await;
    let state = folder.path().join("fuseline.db");
    let garbage: Vec<u8> = (0..9_000_u32).map(|at| (at * 7 % 251) as u8).collect();
    fs::write(&state, &garbage).unwrap();
    let told = serves(folder.path(), &mock).await;
    assert!(
        told.contains("the state file is damaged and was moved aside"),
        "{told}"
    );
    assert!(told.contains("fuseline.db.damaged"), "{told}");
    assert_eq!(
        fs::read(folder.path().join("fuseline.db.damaged")).unwrap(),
        garbage
    );
    let serving = Serving::start(folder.path());
    assert_eq!(serving.told(), [""; 0], "the new one is sound");
}

#[tokio::test]
async fn a_file_of_somebody_else_is_left_alone() {
    let (folder, mock) = folder("fuseline.toml").await;
    let before = fs::read(folder.path().join("fuseline.toml")).unwrap();
    let told = serves(folder.path(), &mock).await;
    assert!(
        told.contains("fuseline.toml is no state of Fuseline"),
        "{told}"
    );
    assert!(told.contains("breaker states are not kept"), "{told}");
    assert_eq!(
        fs::read(folder.path().join("fuseline.toml")).unwrap(),
        before
    );
}

#[tokio::test]
async fn a_place_that_cannot_be_written_to_is_told() {
    for state in ["/proc/fuseline.db", "no/such/folder/fuseline.db", "."] {
        let (folder, mock) = folder(state).await;
        let told = serves(folder.path(), &mock).await;
        assert!(told.contains(&format!("{state} cannot be ")), "{told}");
    }
}

#[tokio::test]
async fn a_file_without_leave_to_write_is_told() {
    const NOBODY: u32 = 65_534;
    let (folder, mock) = folder("fuseline.db").await;
    drop(Serving::start(folder.path()));
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    let state = folder.path().join("fuseline.db");
    for file in [state.clone(), folder.path().join("fuseline.db.lock")] {
        mode(&file, 0o444).unwrap();
    }
    mode(folder.path(), 0o555).unwrap();
    // Permissions are no hindrance to root, who can be somebody else, though.
    let is_root = fs::OpenOptions::new().write(true).open(&state).is_ok();
    let serving = if is_root {
        match Serving::start_as(NOBODY, folder.path()) {
            Ok(serving) => serving,
            Err(error) => return assert_eq!(error.kind(), ErrorKind::PermissionDenied),
        }
    } else {
        Serving::start(folder.path())
    };
    let told = goes_on(&serving, &mock).await;
    assert!(told.contains("fuseline.db cannot be written to"), "{told}");
    mode(folder.path(), 0o755).unwrap();
}

#[tokio::test]
async fn a_second_process_on_one_file_warns_and_runs_without_it() {
    let (folder, mock) = folder("fuseline.db").await;
    let first = Serving::start(folder.path());
    assert_eq!(first.told(), [""; 0]);
    let told = serves(folder.path(), &mock).await;
    assert!(
        told.contains("fuseline.db is in use by another process"),
        "{told}"
    );
    for expected in [500, 500, 503] {
        assert_eq!(send(first.addr, chat()).await.status, expected);
    }
    // Only the first one's changes are there, once.
    let state = folder.path().join("fuseline.db");
    until(async || history(&state).len() == 1).await;
    until(async || metrics(&first).await.contains("\nstate_stored_total 1\n")).await;
    assert!(metrics(&first).await.contains("\nstate_failing 0\n"));
}

#[tokio::test]
async fn report_94_a_state_that_is_deleted_under_a_running_gateway_harms_no_call_and_is_written_afresh()
 {
    let (folder, mock) = folder("fuseline.db").await;
    mock.set(Reply::status(500)).await.unwrap();
    let serving = Serving::start(folder.path());
    for expected in [500, 500, 503] {
        assert_eq!(send(serving.addr, chat()).await.status, expected);
    }
    let state = folder.path().join("fuseline.db");
    until(async || history(&state).len() == 1).await;
    fs::remove_file(&state).unwrap();
    assert_eq!(send(serving.addr, chat()).await.status, 503);
    for expected in [500, 500, 503] {
        let other = post(CHAT, r#"{"model":"other","messages":[]}"#);
        assert_eq!(send(serving.addr, other).await.status, expected);
    }
    // The file is written afresh, with all that the gateway knows.
    let is_begun = || fs::metadata(&state).is_ok_and(|file| file.len() > 0);
    until(async || is_begun() && history(&state).len() == 2).await;
    drop(serving);
    let serving = Serving::start(folder.path());
    let list = send(serving.admin, get("/breakers")).await.json();
    let open = list.as_array().unwrap().iter();
    let open: Vec<_> = open.filter(|breaker| breaker["state"] == "open").collect();
    assert_eq!(open.len(), 3, "both models, and so their provider: {list}");
}
