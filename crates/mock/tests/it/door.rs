//! Refused and reset connections, scripts over time, and the end.

use std::io::ErrorKind;
use std::time::Duration;

use fuseline_mock::{Conduct, Mock, Phase, Reply, Rule, Script};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

use crate::client::{Client, SOON, post, request};

async fn refused(mock: &Mock) -> bool {
    TcpStream::connect(mock.addr())
        .await
        .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

fn keep_alive(path: &str) -> String {
    request(path, "{}", "").replace("connection: close\r\n", "")
}

#[tokio::test]
async fn refuse_and_back_on_the_same_port() {
    let mock = Mock::start(Script::refuse()).await.unwrap();
    let addr = mock.addr();
    for _ in 0..3 {
        assert!(refused(&mock).await);
        mock.set(Reply::ok()).await.unwrap();
        assert_eq!(post(&mock, "/v1/messages", "{}").await.status, 200);
        mock.set(Script::refuse()).await.unwrap();
    }
    assert_eq!((mock.addr(), mock.hits(), mock.connections()), (addr, 3, 3));
}

#[tokio::test]
async fn refusing_closes_idle_connections_and_lets_answers_end() {
    let mock = Mock::start(Reply::ok().text("one two").gap(Duration::from_millis(80)))
        .await
        .unwrap();
    let mut unused = Client::connect(&mock).await.unwrap();
    let mut busy = Client::connect(&mock).await.unwrap();
    busy.send(
        &request("/v1/messages", r#"{"stream": true}"#, "").replace("connection: close\r\n", ""),
    )
    .await;
    busy.read_until("one").await;
    mock.set(Script::refuse()).await.unwrap();
    assert_eq!(unused.read_raw().await.0, "");
    let (rest, error) = busy.read_raw().await;
    assert!(
        rest.ends_with("0\r\n\r\n") && error.is_none(),
        "{rest} {error:?}"
    );

    mock.set(Reply::ok()).await.unwrap();
    let mut idle = Client::connect(&mock).await.unwrap();
    idle.send(&keep_alive("/v1/messages")).await;
    idle.read_until("end_turn").await;
    mock.set(Script::refuse()).await.unwrap();
    idle.read_raw().await;
    assert_eq!(mock.left(), 0);
}

#[tokio::test]
async fn reset_on_accept() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let mut kept = Client::connect(&mock).await.unwrap();
    kept.send(&keep_alive("/v1/messages")).await;
    kept.read_until("end_turn").await;

    mock.set(Script::reset_on_accept()).await.unwrap();
    let mut client = Client::connect(&mock).await.unwrap();
    assert_eq!(
        client.read_raw().await,
        (String::new(), Some(ErrorKind::ConnectionReset))
    );
    assert_eq!((mock.connections(), mock.hits()), (2, 1));
    kept.send(&keep_alive("/v1/messages")).await;
    assert_eq!(kept.read_raw().await.1, Some(ErrorKind::ConnectionReset));
}

#[tokio::test]
async fn an_incident_runs_by_itself() {
    let ms = Duration::from_millis;
    let start = Instant::now();
    let mock = Mock::start(Script::phases([
        Phase::at(ms(0), Reply::ok()),
        Phase::at(ms(250), Reply::status(503)),
        Phase::at(ms(500), Conduct::refuse()),
        Phase::at(ms(750), Reply::ok()),
    ]))
    .await
    .unwrap();
    assert_eq!(post(&mock, "/v1/messages", "{}").await.status, 200);
    sleep_until(start + ms(350)).await;
    assert_eq!(post(&mock, "/v1/messages", "{}").await.status, 503);
    sleep_until(start + ms(600)).await;
    assert!(refused(&mock).await);
    sleep_until(start + ms(900)).await;
    assert_eq!(post(&mock, "/v1/messages", "{}").await.status, 200);
}

#[tokio::test]
async fn sequences_and_rules_answer_over_the_wire() {
    let script = Script::cycle([Reply::status(500), Reply::ok()])
        .rule(Rule::model("bad").reply(Reply::status(404)))
        .rule(Rule::key("sk-1").reply(Reply::status(401)));
    let mock = Mock::start(script).await.unwrap();
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(
            post(&mock, "/v1/messages", r#"{"model": "good"}"#)
                .await
                .status,
        );
        statuses.push(
            post(&mock, "/v1/messages", r#"{"model": "bad"}"#)
                .await
                .status,
        );
    }
    assert_eq!(statuses, [500, 404, 200, 404, 500, 404]);
    for header in [
        "authorization: Bearer sk-1\r\n",
        "x-api-key: sk-1\r\n",
        "api-key: sk-1\r\n",
    ] {
        let mut client = Client::connect(&mock).await.unwrap();
        client.send(&request("/v1/messages", "{}", header)).await;
        assert_eq!(client.read().await.status, 401, "{header}");
    }
}

#[tokio::test]
async fn a_wrong_script_changes_nothing() {
    let error = Mock::start(Reply::status(42)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "replies[0]: status is 42, must be 200 to 599"
    );
    let mock = Mock::start(Reply::status(500)).await.unwrap();
    mock.set(Script::sequence([])).await.unwrap_err();
    assert_eq!(post(&mock, "/", "").await.status, 500);
}

#[tokio::test]
async fn stopping_finishes_answers_and_frees_the_port() {
    let mock = Mock::start(Reply::ok().text("one two").gap(Duration::from_millis(60)))
        .await
        .unwrap();
    let addr = mock.addr();
    let mut client = Client::asking(&mock, "/v1/messages", r#"{"stream": true}"#).await;
    client.read_until("one").await;
    mock.stop().await;
    let (rest, _) = client.read_raw().await;
    assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
    let again = Mock::start_at(addr, Reply::ok()).await.unwrap();
    assert_eq!(again.addr(), addr);
    assert_eq!(
        Mock::start_at(addr, Reply::ok()).await.unwrap_err().kind(),
        ErrorKind::AddrInUse
    );
}

#[tokio::test]
async fn dropping_cuts_off_and_frees_the_port() {
    let mock = Mock::start(Reply::stall()).await.unwrap();
    let addr = mock.addr();
    let mut client = Client::asking(&mock, "/", "").await;
    mock.wait_for_hits(1, SOON).await.unwrap();
    drop(mock);
    assert_eq!(client.read_raw().await.0, "");
    Mock::start_at(addr, Reply::ok()).await.unwrap();
}
