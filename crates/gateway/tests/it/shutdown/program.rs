//! Signals to the program.

use std::time::Duration;

use fuseline_mock::{Mock, Reply};
use http_body_util::BodyExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::support::{Program, SOON, get, open, openai, route, send, spawn, stream, until, within};

/// The program, with what stands at the top of its file.
fn serve(top: &str, mock: &Mock) -> (Program, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fuseline.toml");
    let text = format!("{top}{}{}", openai("a", &mock.url()), route(&["a"]));
    std::fs::write(&file, text).unwrap();
    (Program::serve(file.to_str().unwrap()), folder)
}

#[tokio::test]
async fn report_127_a_deploy_lets_streams_finish_and_tells_the_endless_one() {
    let short = Reply::ok().events(8).gap(Duration::from_millis(200));
    let mock = Mock::start(short).await.unwrap();
    let (mut program, _folder) = serve("drain_delay = \"500ms\"\ndrain = \"3s\"\n", &mock);
    let (addr, admin) = (
        program.listen.parse().unwrap(),
        program.admin.parse().unwrap(),
    );
    let mut streams = Vec::new();
    for _ in 0..5 {
        streams.push(open(addr, stream()).await);
    }
    mock.set(Reply::ok().events(1_000).gap(Duration::from_millis(200)))
        .await
        .unwrap();
    let endless = open(addr, stream()).await;
    let mut idle = TcpStream::connect(addr).await.unwrap();
    idle.write_all(b"GET / HTTP/1.1\r\nhost: g\r\n\r\n")
        .await
        .unwrap();
    assert!(within(idle.read(&mut [0; 1024])).await.unwrap() > 0);

    let began = Instant::now();
    program.terminate();
    until(async || send(admin, get("/readyz")).await.status == 503).await;
    assert_eq!(send(admin, get("/healthz")).await.status, 200);
    assert!(
        began.elapsed() < Duration::from_millis(400),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(
        send(addr, get("/")).await.status,
        200,
        "the delay is not over"
    );
    until(async || TcpStream::connect(addr).await.is_err()).await;
    assert!(
        began.elapsed() >= Duration::from_millis(450),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(
        within(idle.read(&mut [0; 1024])).await.unwrap_or(0),
        0,
        "it is closed"
    );
    for whole in streams {
        let bytes = within(whole.into_body().collect())
            .await
            .unwrap()
            .to_bytes();
        assert!(bytes.ends_with(b"data: [DONE]\n\n"));
    }
    let told = within(endless.into_body().collect())
        .await
        .unwrap()
        .to_bytes();
    let told = String::from_utf8(told.to_vec()).unwrap();
    let took = began.elapsed();
    let (_, last) = told.trim_end().rsplit_once("\n\n").unwrap();
    assert!(last.contains("shutting_down"), "{told}");
    assert!(took >= Duration::from_millis(3_400), "{took:?}");
    assert!(program.ended().await, "it ends well");
    assert!(began.elapsed() - took < Duration::from_secs(1));
}

#[tokio::test]
async fn report_127_a_second_signal_ends_it_at_once() {
    let mock = Mock::start(Reply::stall()).await.unwrap();
    let (mut program, _folder) = serve("drain = \"1h\"\n", &mock);
    let (addr, admin) = (
        program.listen.parse().unwrap(),
        program.admin.parse().unwrap(),
    );
    let waiting = spawn(open(addr, stream()));
    mock.wait_for_hits(1, SOON).await.unwrap();
    program.terminate();
    until(async || send(admin, get("/readyz")).await.status == 503).await;
    let began = Instant::now();
    program.terminate();
    assert!(program.ended().await, "it ends well");
    assert!(began.elapsed() < Duration::from_secs(2));
    waiting.abort();
}
