//! Callers who leave, who only say that they have nothing more to say, and who do not read.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply};
use http_body_util::BodyExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::support::{
    CHAT, Program, SOON, breaker, gateway, get, open, openai, provider, route, send, spawn, stream,
    until, within,
};

const AT_ONCE: Duration = Duration::from_millis(500);
const STREAM: &str = r#"{"model":"m","stream":true}"#;
const PLAIN: &str = r#"{"model":"m"}"#;

async fn in_front_of(mock: &Mock) -> Gateway {
    gateway(&format!("{}{}", openai("a", &mock.url()), route(&["a"]))).await
}

fn request(path: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: g\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A caller who has sent this.
async fn caller(gateway: &Gateway, sent: &str) -> TcpStream {
    let mut caller = TcpStream::connect(gateway.addr()).await.unwrap();
    caller.write_all(sent.as_bytes()).await.unwrap();
    caller
}

/// Reads until this many events have come.
async fn read_events(caller: &mut TcpStream, events: usize) {
    let mut seen = String::new();
    while seen.matches("data: ").count() < events {
        let mut bytes = [0; 4096];
        let read = within(caller.read(&mut bytes)).await.unwrap();
        assert!(read > 0, "an early end after {seen}");
        seen.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
    }
}

/// How long after `since` the provider saw its caller leave.
async fn noticed(mock: &Mock, since: Instant) -> Duration {
    mock.wait_for_left(1, SOON).await.unwrap();
    mock.departures()[0].at.saturating_duration_since(since)
}

#[derive(Clone, Copy, Debug)]
enum Leave {
    Close,
    Reset,
}

impl Leave {
    fn with(self, caller: TcpStream) -> Instant {
        match self {
            Self::Close => {}
            Self::Reset => caller.set_zero_linger().unwrap(),
        }
        drop(caller);
        Instant::now()
    }
}

#[tokio::test]
async fn report_122_who_leaves_mid_stream_closes_the_upstream_at_once() {
    let silent = Reply::ok().events(100).stall_after(5);
    // The worst rhythms for the rule: an event just before the silence is long enough, and hardly any silence at all.
    let slow = Reply::ok().events(100).gap(Duration::from_millis(300));
    let quick = Reply::ok().events(10_000).gap(Duration::from_millis(5));
    for reply in [silent, slow, quick] {
        for leave in [Leave::Close, Leave::Reset] {
            let mock = Mock::start(reply.clone()).await.unwrap();
            let gateway = in_front_of(&mock).await;
            let mut caller = caller(&gateway, &request(CHAT, STREAM)).await;
            read_events(&mut caller, 3).await;
            let left = leave.with(caller);
            let after = noticed(&mock, left).await;
            assert!(after < AT_ONCE, "{leave:?} from {reply}: {after:?}");
            assert!(breaker(&gateway, "a/m").await.is_null(), "{leave:?}");
        }
    }
}

#[tokio::test]
async fn report_122_who_only_half_closes_gets_every_event() {
    let steady = Reply::ok().events(12).gap(Duration::from_millis(100));
    let mock = Mock::start(steady).await.unwrap();
    let gateway = in_front_of(&mock).await;
    let whole = {
        let answer = open(gateway.addr(), stream()).await;
        within(answer.into_body().collect())
            .await
            .unwrap()
            .to_bytes()
    };
    let whole = str::from_utf8(&whole).unwrap();
    let mut caller = caller(&gateway, &request(CHAT, STREAM)).await;
    let mut seen = vec![0; 400];
    within(caller.read_exact(&mut seen)).await.unwrap();
    caller.shutdown().await.unwrap();
    within(caller.read_to_end(&mut seen)).await.unwrap();
    let seen = String::from_utf8(seen).unwrap();
    assert!(seen.ends_with("\r\n0\r\n\r\n"), "{seen}");
    assert_eq!(
        seen.matches("data: ").count(),
        whole.matches("data: ").count()
    );
    assert_eq!(mock.left(), 0);
    until(async || breaker(&gateway, "a/m").await["rules"][1]["calls"] == 2).await;
}

#[tokio::test]
async fn report_124_who_leaves_before_the_answer_closes_the_upstream_at_once() {
    let long = Duration::from_secs(60);
    for (path, body) in [
        (CHAT, PLAIN),
        (CHAT, STREAM),
        ("/v1/embeddings", r#"{"model":"m","input":"x"}"#),
        ("/v1/responses", PLAIN),
        ("/v1/messages", r#"{"model":"claude","max_tokens":1}"#),
        ("/v1/unheard/of", "{}"),
    ] {
        let mock = Mock::start(Reply::ok().delay(long)).await.unwrap();
        let text = format!(
            "{}{}[[routes]]\nmodel = \"claude\"\ntargets = [{{ provider = \"b\" }}]\n{}",
            openai("a", &mock.url()),
            provider("b", "anthropic", &mock.url()),
            route(&["a"]),
        );
        let gateway = gateway(&text).await;
        for times in 1..=5 {
            let caller = caller(&gateway, &request(path, body)).await;
            mock.wait_for_hits(times, SOON).await.unwrap();
            let leave = if times % 2 == 0 {
                Leave::Reset
            } else {
                Leave::Close
            };
            leave.with(caller);
            assert!(
                mock.wait_for_left(times, AT_ONCE).await.is_ok(),
                "{leave:?} from {path}"
            );
        }
        assert_eq!(mock.in_flight(), 0, "{path}");
        for name in ["a/m", "a/-", "a", "b/claude"] {
            assert!(breaker(&gateway, name).await["run"].as_u64().unwrap_or(0) == 0);
        }
    }
}

#[tokio::test]
async fn what_a_caller_sent_too_much_does_not_hide_that_he_left() {
    for more in ["\r\n".to_owned(), request(CHAT, PLAIN)] {
        let mock = Mock::start(Reply::stall()).await.unwrap();
        let gateway = in_front_of(&mock).await;
        let caller = caller(&gateway, &(request(CHAT, PLAIN) + &more)).await;
        mock.wait_for_hits(1, SOON).await.unwrap();
        drop(caller);
        mock.wait_for_left(1, AT_ONCE).await.unwrap();
        assert_eq!(mock.hits(), 1);
    }
}

#[tokio::test]
async fn requests_that_are_sent_ahead_are_answered_in_turn() {
    let gap = Duration::from_millis(20);
    let mock = Mock::start(Reply::ok().events(5).gap(gap).delay(gap))
        .await
        .unwrap();
    let gateway = in_front_of(&mock).await;
    let two = request(CHAT, STREAM) + &request(CHAT, r#"{"model":"second"}"#);
    let mut caller = caller(&gateway, &two).await;
    mock.wait_for_hits(1, SOON).await.unwrap();
    // While the first is waited for: one in two pieces, and one longer than is read ahead.
    let third = request(CHAT, r#"{"model":"third"}"#);
    let (head, tail) = third.split_at(40);
    caller.write_all(head.as_bytes()).await.unwrap();
    mock.wait_for_hits(2, SOON).await.unwrap();
    let long = format!(r#"{{"model":"fourth","user":"{}"}}"#, "x".repeat(100_000));
    caller
        .write_all((tail.to_owned() + &request(CHAT, &long)).as_bytes())
        .await
        .unwrap();
    mock.wait_for_hits(4, SOON).await.unwrap();
    caller
        .write_all(b"GET / HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut answers = String::new();
    within(caller.read_to_string(&mut answers)).await.unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 5, "{answers}");
    let models: Vec<_> = mock.requests().into_iter().map(|seen| seen.model).collect();
    let expected = ["m", "second", "third", "fourth"].map(|model| Some(model.to_owned()));
    assert_eq!(models, expected);
}

/// A provider whose stream is written by the test, event by event.
async fn by_hand(head: &'static str) -> (String, mpsc::Sender<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (events, mut written) = mpsc::channel::<String>(1);
    spawn(async move {
        let (mut caller, _) = listener.accept().await.unwrap();
        caller.set_nodelay(true).unwrap();
        read_request(&mut caller).await;
        caller.write_all(head.as_bytes()).await.unwrap();
        while let Some(event) = written.recv().await {
            caller.write_all(event.as_bytes()).await.unwrap();
        }
    });
    (url, events)
}

async fn read_request(stream: &mut TcpStream) {
    let mut seen = Vec::new();
    while !seen.ends_with(b"}") && stream.read_buf(&mut seen).await.unwrap() > 0 {}
}

fn event(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

#[tokio::test]
async fn report_117_each_event_is_there_before_the_next_and_in_one_read() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/Event-Stream; charset=utf-8\r\nconnection: close\r\n\r\n";
    let (url, provider) = by_hand(head).await;
    let gateway = gateway(&format!("{}{}", openai("a", &url), route(&["a"]))).await;
    let mut caller = caller(&gateway, &request(CHAT, STREAM)).await;
    let mut bytes = [0; 64 << 10];
    provider.send(event("first")).await.unwrap();
    let mut begun = String::new();
    while !begun.contains("first") {
        let read = within(caller.read(&mut bytes)).await.unwrap();
        begun.push_str(str::from_utf8(&bytes[..read]).unwrap());
    }
    let begun = begun.to_ascii_lowercase();
    assert!(begun.contains("\r\nx-accel-buffering: no\r\n"), "{begun}");
    assert!(begun.contains("\r\ncache-control: no-cache\r\n"), "{begun}");
    let begun = Instant::now();
    for number in 1..60 {
        // With acknowledgements that come late, a sender without TCP_NODELAY would keep each event back for 40 ms.
        #[cfg(target_os = "linux")]
        caller.set_quickack(false).unwrap();
        let event = event(&format!("{number:0>180}"));
        provider.send(event.clone()).await.unwrap();
        let read = within(caller.read(&mut bytes)).await.unwrap();
        let chunk = format!("{:X}\r\n{event}\r\n", event.len());
        assert_eq!(str::from_utf8(&bytes[..read]).unwrap(), chunk);
    }
    let took = begun.elapsed();
    assert!(took < 59 * Duration::from_millis(20), "{took:?}");
}

#[tokio::test]
async fn report_117_what_the_upstream_says_of_caching_stands_and_plain_answers_stay_as_they_are() {
    let reply = Reply::ok()
        .header("cache-control", "no-store")
        .header("x-accel-buffering", "yes");
    let mock = Mock::start(reply).await.unwrap();
    let gateway = in_front_of(&mock).await;
    let answer = send(gateway.addr(), stream()).await;
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(answer.header("x-accel-buffering"), "no");
    mock.set(Reply::ok()).await.unwrap();
    let answer = send(gateway.addr(), crate::support::chat()).await;
    assert_eq!(answer.header("cache-control"), "");
    assert_eq!(answer.header("x-accel-buffering"), "");
}

/// A provider that writes events as fast as anybody takes them, up to 200 MB each time, and counts.
#[derive(Clone, Default)]
struct Flood {
    sent: Arc<AtomicU64>,
    closed: Arc<AtomicUsize>,
}

impl Flood {
    const MOST: u64 = 200 << 20;

    async fn start(&self) -> String {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_send_buffer_size(64 << 10).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(64).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let flood = self.clone();
        spawn(async move {
            while let Ok((caller, _)) = listener.accept().await {
                let flood = flood.clone();
                spawn(async move { flood.serve(caller).await });
            }
        });
        url
    }

    async fn serve(&self, mut caller: TcpStream) {
        read_request(&mut caller).await;
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        caller.write_all(head.as_bytes()).await.unwrap();
        let events = event(&"x".repeat(1000)).repeat(16);
        let mut sent = 0;
        while sent < Self::MOST {
            match caller.write(events.as_bytes()).await {
                Ok(written @ 1..) => {
                    sent += written as u64;
                    self.sent.fetch_add(written as u64, Ordering::Relaxed);
                }
                _ => break,
            }
        }
        self.closed.fetch_add(1, Ordering::Relaxed);
    }

    /// What was sent until nothing more was taken.
    async fn until_stalled(&self) -> u64 {
        let mut before = u64::MAX;
        within(async {
            loop {
                let sent = self.sent.load(Ordering::Relaxed);
                if sent == before && sent > 0 {
                    return sent;
                }
                before = sent;
                tokio::time::sleep(Duration::from_millis(150)).await;
            }
        })
        .await
    }
}

/// A caller whose system keeps little for him, so that he is soon seen not to read.
async fn narrow(addr: std::net::SocketAddr, sent: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 << 10).unwrap();
    let mut caller = socket.connect(addr).await.unwrap();
    caller.write_all(sent.as_bytes()).await.unwrap();
    caller
}

#[tokio::test]
async fn report_67_callers_who_never_read_cost_little_and_are_dropped() {
    const CALLERS: usize = 50;
    let flood = Flood::default();
    let url = flood.start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fuseline.toml");
    let text = format!(
        "{}{}[timeouts]\nwrite_idle = \"3s\"\n",
        openai("a", &url),
        route(&["a"])
    );
    std::fs::write(&file, text).unwrap();
    let program = Program::serve(file.to_str().unwrap());
    let addr = program.listen.parse().unwrap();
    send(addr, get("/")).await;
    let before = program.resident_kib();
    let mut callers = Vec::new();
    for _ in 0..CALLERS {
        callers.push(narrow(addr, &request(CHAT, STREAM)).await);
    }
    let sent = flood.until_stalled().await / CALLERS as u64;
    let grown = program.resident_kib().saturating_sub(before) / CALLERS as u64;
    println!("{sent} bytes sent and {grown} KiB kept for each caller");
    assert_eq!(flood.closed.load(Ordering::Relaxed), 0);
    assert!(sent < 1 << 20, "{sent} bytes for each caller");
    assert!(grown < 256, "{grown} KiB for each caller");
    until(async || flood.closed.load(Ordering::Relaxed) == CALLERS).await;
    for mut caller in callers {
        let cut = within(caller.read_to_end(&mut Vec::new())).await;
        assert_eq!(cut.unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    let admin = program.admin.parse().unwrap();
    let list = send(admin, get("/breakers")).await.json();
    let blamed = list.as_array().unwrap().iter();
    assert_eq!(blamed.filter(|breaker| breaker["run"] != 0).count(), 0);
}

#[tokio::test]
async fn who_reads_slowly_is_not_dropped() {
    let flood = Flood::default();
    let url = flood.start().await;
    let text = format!(
        "{}{}[timeouts]\nwrite_idle = \"1s\"\n",
        openai("a", &url),
        route(&["a"])
    );
    let gateway = gateway(&text).await;
    let mut caller = narrow(gateway.addr(), &request(CHAT, STREAM)).await;
    let mut bytes = [0; 12 << 10];
    let begun = Instant::now();
    // To this limit what 2 kB a second are to the default.
    while begun.elapsed() < Duration::from_secs(3) {
        within(caller.read_exact(&mut bytes)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(flood.closed.load(Ordering::Relaxed), 0);
    until(async || flood.closed.load(Ordering::Relaxed) == 1).await;
}
