//! Connections to providers: how long they are kept, and what happens as they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fuseline_mock::{Mock, Reply};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::support::{
    Program, SOON, breaker, chat, gateway, get, has_own_mounts, openai, route, send, spawn, stream,
    until,
};
use crate::tls::{Secured, secured_under};

#[tokio::test]
async fn a_connection_of_age_is_left_for_a_new_one_and_a_young_one_is_kept() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let before = |pool: &str| format!("{pool}{}{}", openai("a", &mock.url()), route(&["a"]));
    let keeping = gateway(&before("")).await;
    for _ in 0..10 {
        for request in [chat(), stream(), get("/v1/files/x")] {
            assert_eq!(send(keeping.addr(), request).await.status, 200);
        }
    }
    assert_eq!(mock.connections(), 1);
    let ageing = gateway(&before("[pool]\nmax_age = \"30ms\"\n")).await;
    until(async || {
        assert_eq!(send(ageing.addr(), chat()).await.status, 200);
        mock.connections() >= 4
    })
    .await;
    assert!(mock.hits() > 33, "it was used until then");
    assert_eq!(breaker(&ageing, "a").await["run"], 0);
}

#[tokio::test]
async fn a_connection_without_calls_is_closed_after_a_while() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let text = format!(
        "[pool]\nidle_timeout = \"50ms\"\n{}{}",
        openai("a", &mock.url()),
        route(&["a"])
    );
    let gateway = gateway(&text).await;
    assert_eq!(send(gateway.addr(), chat()).await.status, 200);
    let mut pause = tokio::time::interval(Duration::from_millis(120));
    pause.tick().await;
    pause.tick().await;
    assert_eq!(send(gateway.addr(), chat()).await.status, 200);
    assert_eq!(mock.connections(), 2);
}

#[tokio::test]
async fn a_peer_by_http2_that_gives_no_sign_of_life_is_given_up_before_any_other_limit() {
    let frozen = |connection: Secured| async move {
        let handshake = h2::server::handshake(connection).await;
        let mut connection: h2::server::Connection<_, bytes::Bytes> = handshake.unwrap();
        let request = connection.accept().await;
        // It has the request, and reads nothing more.
        std::future::pending::<()>().await;
        drop(request);
    };
    let pool = "[pool]\nkeepalive = \"200ms\"\n";
    let (gateway, _) = secured_under(pool, "h2", frozen).await;
    let began = Instant::now();
    let answer = send(gateway.addr(), stream()).await;
    assert!(began.elapsed() < SOON / 2, "{:?}", began.elapsed());
    assert_eq!(answer.status, 504);
    let why = answer.header("x-fuseline-why");
    assert!(why.contains("network"), "{why}");
}

#[tokio::test]
async fn a_name_is_resolved_anew_once_its_connection_is_of_age() {
    if !has_own_mounts() {
        return println!("passed over: this system gives nobody a list of hosts of his own");
    }
    let before = Mock::start(Reply::ok()).await.unwrap();
    let port = before.addr().port();
    let elsewhere = format!("127.0.0.2:{port}").parse().unwrap();
    let after = Mock::start_at(elsewhere, Reply::ok()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (hosts, file) = (
        folder.path().join("hosts"),
        folder.path().join("fuseline.toml"),
    );
    let points_to = |address: &str| {
        std::fs::write(&hosts, format!("{address} provider.example\n")).unwrap();
    };
    points_to("127.0.0.1");
    let url = format!("http://provider.example:{port}");
    let pool = "[pool]\nmax_age = \"100ms\"\n";
    let text = format!("{pool}{}{}", openai("a", &url), route(&["a"]));
    std::fs::write(&file, text).unwrap();
    let program = Program::among_hosts(&hosts, file.to_str().unwrap());
    let addr = program.listen.parse().unwrap();
    assert_eq!(send(addr, chat()).await.status, 200);
    assert_eq!((before.hits(), after.hits()), (1, 0));
    points_to("127.0.0.2");
    until(async || {
        assert_eq!(send(addr, chat()).await.status, 200);
        after.hits() > 0
    })
    .await;
    // Each of the program's threads has connections of its own, and all are of age by now.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let hits = before.hits();
    for _ in 0..8 {
        assert_eq!(send(addr, chat()).await.status, 200);
    }
    assert_eq!(before.hits(), hits, "nobody goes back");
}

/// The timer that the system has set for a connection from this process to an address, as `/proc` shows it; 2 is that of
/// keep-alive probes.
#[cfg(target_os = "linux")]
fn timers_towards(addr: std::net::SocketAddr) -> Vec<String> {
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let port = format!(":{:04X}", addr.port());
    let rows = table.lines().skip(1).map(|line| line.split_whitespace());
    let rows = rows.map(|row| row.collect::<Vec<_>>());
    let is_towards = |row: &Vec<&str>| row[2].ends_with(&port) && row[3] == "01";
    rows.filter(is_towards)
        .map(|row| row[5].split(':').next().unwrap().to_owned())
        .collect()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_connection_that_is_kept_is_probed_by_tcp() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let gateway = gateway(&format!("{}{}", openai("a", &mock.url()), route(&["a"]))).await;
    assert_eq!(send(gateway.addr(), chat()).await.status, 200);
    // Another timer may run for a moment: the one of what was sent and not yet acknowledged.
    until(async || timers_towards(mock.addr()) == ["02"]).await;
}

/// A provider that answers and closes each connection that was idle for so long.
async fn closing(idle: Duration) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let count = Arc::clone(&count);
            spawn(async move {
                let mut seen = Vec::new();
                while let Ok(Ok(1..)) = tokio::time::timeout(idle, stream.read_buf(&mut seen)).await
                {
                    if seen.ends_with(b"}") {
                        seen.clear();
                        count.fetch_add(1, Ordering::Relaxed);
                        let head =
                            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2";
                        stream
                            .write_all(format!("{head}\r\n\r\nok").as_bytes())
                            .await
                            .unwrap();
                    }
                }
            });
        }
    });
    (url, asked)
}

/// Two hundred calls at each of three intervals around the time at which the provider closes idle connections.
async fn around(idle: Duration, off: Duration) {
    let (url, asked) = closing(idle).await;
    let text = format!("{}{}", openai("a", &url), route(&["a"]));
    let gateway = gateway(&text).await;
    for interval in [idle - off, idle, idle + off] {
        // Twenty series side by side, so that it does not take ten times as long.
        let series: Vec<_> = (0..20_u32)
            .map(|number| {
                let addr = gateway.addr();
                spawn(async move {
                    let begin = Instant::now() + interval * number / 20;
                    let mut next = tokio::time::interval_at(begin, interval);
                    for call in 0..10 {
                        next.tick().await;
                        let answer = send(addr, chat()).await;
                        assert_eq!(answer.status, 200, "{interval:?}, {call}: {answer:?}");
                        assert_eq!(answer.header("x-fuseline-attempts"), "1");
                        assert_eq!(answer.header("x-fuseline-why"), "answered at first try");
                    }
                })
            })
            .collect();
        for one in series {
            one.await.unwrap();
        }
    }
    assert_eq!(
        asked.load(Ordering::Relaxed),
        600,
        "each reached the provider once"
    );
    let view = breaker(&gateway, "a").await;
    assert_eq!((&view["run"], &view["kinds"]), (&json!(0), &json!({})));
}

#[tokio::test(flavor = "multi_thread")]
async fn report_83_none_of_600_calls_fails_as_the_peer_closes_idle_connections() {
    around(Duration::from_millis(100), Duration::from_millis(1)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "600 calls a second apart: part of the long run"]
async fn report_83_none_of_600_calls_fails_as_the_peer_closes_idle_connections_after_a_second() {
    around(Duration::from_secs(1), Duration::from_millis(10)).await;
}
