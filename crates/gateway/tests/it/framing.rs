//! Requests that two readers could understand in two ways, and heads that cannot be read at all.

use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::raw::{answer, answers, read, rest};
use crate::support::{CHAT, gateway, openai, route};

async fn in_front_of(mock: &Mock) -> Gateway {
    gateway(&format!("{}{}", openai("a", &mock.url()), route(&["a"]))).await
}

const SMUGGLED: &str = "GET /admin HTTP/1.1\r\nhost: g\r\n\r\n";
const BODY: &str = r#"{"model":"m"}"#;

#[tokio::test]
async fn what_could_be_read_in_two_ways_is_refused_and_its_connection_closed() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let gateway = in_front_of(&mock).await;
    let chunk = format!("{:x}\r\n{BODY}\r\n0\r\n\r\n", BODY.len());
    for (lines, body) in [
        ("content-length: 13\r\ncontent-length: 14", BODY),
        ("content-length: 13, 14", BODY),
        ("content-length: 13, 13", BODY),
        ("content-length: +13", BODY),
        ("content-length: -1", BODY),
        ("content-length: 0x0d", BODY),
        ("content-length: 1 3", BODY),
        ("content-length: 99999999999999999999", BODY),
        ("content-length:", BODY),
        ("content-length : 13", BODY),
        (" content-length: 13", BODY),
        ("x: y\r\n content-length: 13", BODY),
        ("transfer-encoding: gzip, chunked", chunk.as_str()),
        ("transfer-encoding: chunked, chunked", &chunk),
        ("transfer-encoding: chunked, identity", &chunk),
        ("transfer-encoding: identity", BODY),
        ("transfer-encoding: xchunked", &chunk),
        ("transfer-encoding: \x0bchunked", &chunk),
        ("transfer-encoding: \"chunked\"", &chunk),
        ("transfer-encoding : chunked", &chunk),
        ("transfer-encoding:\r\n chunked", &chunk),
        (
            "transfer-encoding: gzip\r\ntransfer-encoding: chunked",
            &chunk,
        ),
        (
            "transfer-encoding: chunked\r\ntransfer-encoding: gzip",
            &chunk,
        ),
        ("host: other\r\ncontent-length: 13", BODY),
        ("x\0y: z\r\ncontent-length: 13", BODY),
        ("x: y\rz\r\ncontent-length: 13", BODY),
        ("no colon\r\ncontent-length: 13", BODY),
    ] {
        let request = format!("POST {CHAT} HTTP/1.1\r\nhost: g\r\n{lines}\r\n\r\n{body}{SMUGGLED}");
        let answer = answer(gateway.addr(), request).await;
        assert_eq!(answer.status, 400, "{lines}: {answer:?}");
        assert_eq!(answer.json()["error"]["code"], "bad_request", "{lines}");
        assert_eq!(answer.header("content-type"), "application/json", "{lines}");
    }
    let old = format!("POST {CHAT} HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n{chunk}");
    assert_eq!(answer(gateway.addr(), old).await.status, 400);
    assert_eq!(mock.hits(), 0);
}

#[tokio::test]
async fn chunks_that_are_none_are_no_body() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let gateway = in_front_of(&mock).await;
    for body in [
        "d;\n\r\n",
        "zz\r\n",
        "-1\r\n",
        "0x2\r\n{}\r\n0\r\n\r\n",
        "ffffffffffffffffff\r\n{}",
        "2\r\n{}0\r\n\r\n",
        "2\r\n{}\r\n0\r\nno trailer\r\n\r\n",
    ] {
        let request = format!(
            "POST {CHAT} HTTP/1.1\r\nhost: g\r\ntransfer-encoding: chunked\r\n\r\n{body}{SMUGGLED}"
        );
        let answers = answers(gateway.addr(), request).await;
        assert!(answers.len() <= 1, "{body}: {answers:?}");
        assert!(
            answers.iter().all(|answer| answer.status == 400),
            "{body}: {answers:?}"
        );
    }
    assert_eq!(mock.hits(), 0);
}

#[tokio::test]
async fn trailers_end_at_the_gateway() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let gateway = in_front_of(&mock).await;
    let request = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: g\r\nconnection: close\r\ntrailer: content-length, x-late\r\n\
         transfer-encoding: chunked\r\n\r\nd\r\n{BODY}\r\n0\r\ncontent-length: 99\r\nx-late: 1\r\n\r\n"
    );
    assert_eq!(answer(gateway.addr(), request).await.status, 200);
    let seen = mock.requests().remove(0);
    assert_eq!(seen.header("content-length"), Some("13"));
    for gone in ["x-late", "trailer", "transfer-encoding"] {
        assert_eq!(seen.header(gone), None, "{gone}");
    }
}

#[tokio::test]
async fn a_head_that_cannot_be_read_is_told_so_in_json() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let gateway = in_front_of(&mock).await;
    let many = "x: y\r\n".repeat(200);
    let long = "y".repeat(70 << 10);
    for (request, status, code) in [
        ("what?\r\n\r\n".to_owned(), 400, "bad_request"),
        ("GET / HTTP/3.0\r\n\r\n".to_owned(), 400, "bad_request"),
        ("G\0T / HTTP/1.1\r\n\r\n".to_owned(), 400, "bad_request"),
        (
            format!("GET / HTTP/1.1\r\n{many}\r\n"),
            431,
            "head_too_large",
        ),
        (
            format!("GET / HTTP/1.1\r\nx: {long}\r\n\r\n"),
            431,
            "head_too_large",
        ),
    ] {
        let answer = answer(gateway.addr(), &request).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(answer.json()["error"]["code"], code);
        assert_eq!(answer.header("connection"), "close");
    }
    // After an answer on the same connection, too.
    let mut caller = TcpStream::connect(gateway.addr()).await.unwrap();
    let good = format!("POST {CHAT} HTTP/1.1\r\nhost: g\r\ncontent-length: 13\r\n\r\n{BODY}");
    caller.write_all(good.as_bytes()).await.unwrap();
    mock.wait_for_hits(1, crate::support::SOON).await.unwrap();
    caller.write_all(b"what?\r\n\r\n").await.unwrap();
    let answers = read(&rest(&mut caller).await).unwrap();
    let statuses: Vec<u16> = answers
        .iter()
        .map(|answer| answer.status.as_u16())
        .collect();
    assert_eq!(statuses, [200, 400]);
    assert_eq!(answers[1].json()["error"]["code"], "bad_request");
}

#[tokio::test]
async fn an_answer_whose_bytes_look_like_a_refusal_arrives_as_it_came() {
    let refusal = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
    let reply = Reply::ok()
        .header("content-type", "text/plain")
        .body(refusal);
    let mock = Mock::start(reply).await.unwrap();
    let gateway = in_front_of(&mock).await;
    let request = "GET /v1/files/x HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n";
    assert_eq!(
        answer(gateway.addr(), request).await.body,
        refusal.as_bytes()
    );
}
