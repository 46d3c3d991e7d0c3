//! No byte of one caller's answer or error ever reaches another: a crowd, each with a canary of his own, over the cache,
//! fallback, errors and streams, on connections that stay open.

use std::net::SocketAddr;

use bytes::Bytes;
use fuseline_mock::{Mock, Reply, Rule, Script};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::support::{CHAT, gateway, post, spawn, within};

const CALLERS: usize = 24;
const ROUNDS: usize = 24;

fn canary(caller: usize) -> String {
    format!("canary-{caller:03}-of-its-own")
}

/// What a caller's own key gets there: answers, plain and streamed, and errors, all with his canary.
fn singing(replies: impl Fn(&str) -> Vec<Reply>) -> Script {
    (0..CALLERS).fold(Script::from(Reply::status(500)), |script, caller| {
        let canary = canary(caller);
        let rule = Rule::key(format!("sk-{canary}"));
        script.rule(rule.cycle(replies(&canary)))
    })
}

/// Half of the requests are the same of every caller, and nothing but the key tells them apart; the others hold his
/// canary.
fn request(caller: usize, round: usize) -> Request<Full<Bytes>> {
    let said = if round / 6 % 2 == 1 {
        canary(caller)
    } else {
        "Why?".to_owned()
    };
    let stream = !round.is_multiple_of(2);
    let body = format!("{{\"model\":\"m\",\"messages\":[\"{said}\"],\"stream\":{stream}}}");
    let mut request = post(CHAT, body);
    let key = format!("Bearer sk-{}", canary(caller)).parse().unwrap();
    request.headers_mut().insert("authorization", key);
    request
}

async fn connect(addr: SocketAddr) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(addr).await.unwrap();
    let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
    spawn(async move { drop(connection.await) });
    sender
}

/// How a caller's calls went: well, from the cache, badly.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    good: usize,
    cached: usize,
    bad: usize,
}

/// Calls again and again on one connection as long as it lasts, and looks for birds of others.
async fn listens(addr: SocketAddr, caller: usize) -> Count {
    let own = canary(caller);
    let mut count = Count::default();
    let mut connection = connect(addr).await;
    for round in 0..ROUNDS {
        if within(connection.ready()).await.is_err() {
            connection = connect(addr).await;
        }
        let sent = connection.send_request(request(caller, round));
        let (head, mut body) = within(sent).await.unwrap().into_parts();
        let mut seen = format!("{:?}", head.headers).into_bytes();
        while let Some(Ok(frame)) = within(body.frame()).await {
            seen.extend_from_slice(&frame.into_data().unwrap_or_default());
        }
        let seen = String::from_utf8(seen).unwrap();
        for (at, _) in seen.match_indices("canary-") {
            assert_eq!(
                &seen[at..at + own.len()],
                own,
                "caller {caller}, round {round}"
            );
        }
        match (
            head.status.as_u16(),
            head.headers.get("x-fuseline-degraded"),
        ) {
            (200, Some(_)) => count.cached += 1,
            (200, None) => count.good += 1,
            _ => count.bad += 1,
        }
        if head.status == 200 {
            assert!(
                seen.contains(&own),
                "caller {caller}, round {round}: {seen}"
            );
        }
    }
    count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_byte_of_one_callers_answer_or_error_ever_reaches_another() {
    let first = singing(|canary| {
        vec![
            Reply::ok().text(canary),
            Reply::ok().text(canary).events(4),
            Reply::status(503).error_message(canary),
            Reply::ok().text(canary).events(6).cut_after(3),
            Reply::status(400).error_message(canary),
            Reply::reset(),
        ]
    });
    let second = singing(|canary| {
        vec![
            Reply::status(503).error_message(canary),
            Reply::ok().text(canary).events(3),
            Reply::status(529).error_message(canary),
        ]
    });
    let (first, second) = (
        Mock::start(first).await.unwrap(),
        Mock::start(second).await.unwrap(),
    );
    let provider = |name: &str, url: String| {
        format!(
            "[providers.{name}]\nprotocol = \"openai\"\nbase_url = \"{url}\"\nauth = \"caller\"\n"
        )
    };
    let text = format!(
        "{}{}[[routes]]\nmodel = \"*\"\nretries = 0\ntargets = [{{ provider = \"a\" }}, {{ provider = \"b\" }}]\non_exhausted = [\"cache\"]\n\
         [breaker]\ntrip = [{{ rule = \"consecutive\", failures = 100000 }}]\n",
        provider("a", first.url()),
        provider("b", second.url())
    );
    let gateway = gateway(&text).await;
    let addr = gateway.addr();
    let crowd: Vec<_> = (0..CALLERS)
        .map(|caller| spawn(listens(addr, caller)))
        .collect();
    let mut sum = Count::default();
    for caller in crowd {
        let count = caller.await.unwrap();
        sum.good += count.good;
        sum.cached += count.cached;
        sum.bad += count.bad;
    }
    assert_eq!(sum.good + sum.cached + sum.bad, CALLERS * ROUNDS);
    let least = sum.good.min(sum.cached).min(sum.bad);
    assert!(least >= CALLERS, "each happened to many: {sum:?}");
    for request in first.requests().iter().chain(&second.requests()) {
        let key = request.header("authorization").unwrap();
        let own = key.strip_prefix("Bearer sk-").unwrap();
        let body = String::from_utf8(request.body.to_vec()).unwrap();
        for (at, _) in body.match_indices("canary-") {
            assert_eq!(&body[at..at + own.len()], own);
        }
    }
    let used = first.connections() + second.connections();
    assert!(
        used < first.hits() + second.hits(),
        "connections were shared: {used}"
    );
}
