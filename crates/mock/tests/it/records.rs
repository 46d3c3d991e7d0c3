//! What the mock remembers of requests.

use fuseline_mock::{Mock, Reply};

use crate::client::{Client, post, request};

#[tokio::test]
async fn a_request_is_recorded_as_it_came() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let mut client = Client::connect(&mock).await.unwrap();
    let headers =
        "X-Many: one\r\nauthorization: Bearer sk-secret\r\nx-many: Two \r\nx-last: \u{e9}\r\n";
    client
        .send(&request(
            "/v1/messages?beta=true&x=%20",
            r#"{"model": "m"}"#,
            headers,
        ))
        .await;
    client.read().await;
    let request = &mock.requests()[0];
    assert_eq!((request.number, request.method.as_str()), (1, "POST"));
    assert_eq!(request.target, "/v1/messages?beta=true&x=%20");
    assert_eq!(
        (&request.body[..], request.body_len),
        (&br#"{"model": "m"}"#[..], Some(14))
    );
    assert_eq!(request.header("X-Many"), Some("one"));
    let many: Vec<_> = request
        .headers
        .iter()
        .filter(|(name, _)| name == "x-many")
        .map(|(_, value)| value)
        .collect();
    assert_eq!(many, ["one", "Two"]);
    assert_eq!(request.headers[0].0, "host");
    let last = request
        .headers
        .iter()
        .find(|(name, _)| name == "x-last")
        .unwrap();
    assert_eq!(last.1, "\u{e9}".as_bytes());
    let shown = format!("{request:?}");
    assert!(
        shown.contains("authorization") && !shown.contains("sk-secret"),
        "{shown}"
    );
}

#[tokio::test]
async fn hits_are_counted_by_path_and_model() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    post(&mock, "/v1/messages?a=b", r#"{"model": "m"}"#).await;
    post(&mock, "/v1/messages", r#"{"model": "n"}"#).await;
    post(&mock, "/v1/responses", "no json").await;
    assert_eq!(
        (
            mock.hits(),
            mock.hits_at("/v1/messages"),
            mock.hits_at("/v1/other")
        ),
        (3, 2, 0)
    );
    assert_eq!(
        (mock.hits_for("m"), mock.hits_for("n"), mock.hits_for("x")),
        (1, 1, 0)
    );
}

#[tokio::test]
async fn memory_is_bounded() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let large = format!(r#"{{"pad": "{}", "model": "m"}}"#, "x".repeat(2 << 20));
    post(&mock, "/v1/messages", &large).await;
    let request = &mock.requests()[0];
    assert_eq!(
        (request.body.len(), request.body_len),
        (1 << 20, Some(large.len() as u64))
    );
    assert_eq!(mock.hits_for("m"), 1);

    let mut client = Client::connect(&mock).await.unwrap();
    for number in 0..1001 {
        client.send(&request_kept(number)).await;
        client.read_until("has_more").await;
    }
    let requests = mock.requests();
    assert_eq!(
        (requests.len(), requests[0].number, requests[999].number),
        (1000, 3, 1002)
    );
}

#[tokio::test]
async fn the_oldest_bodies_are_let_go() {
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let large = "x".repeat(1 << 20);
    for _ in 0..66 {
        post(&mock, "/", &large).await;
    }
    let kept: Vec<_> = mock
        .requests()
        .iter()
        .map(|request| request.body.len())
        .collect();
    assert_eq!((&kept[..2], &kept[2..]), (&[0; 2][..], &[1 << 20; 64][..]));
}

fn request_kept(number: usize) -> String {
    request(&format!("/{number}"), "", "").replace("connection: close\r\n", "")
}

#[tokio::test]
async fn what_a_request_gets_is_recorded_in_words() {
    let delay = std::time::Duration::from_millis(1);
    let replies = [
        Reply::status(503).delay(delay),
        Reply::ok().cut_after(2),
        Reply::ok(),
    ];
    let mock = Mock::start(fuseline_mock::Script::sequence(replies))
        .await
        .unwrap();
    for _ in 0..3 {
        post(&mock, "/v1/messages", r#"{"model": "m"}"#).await;
    }
    let recorded = mock.requests();
    let replies: Vec<_> = recorded
        .iter()
        .map(|request| request.reply.as_deref().unwrap())
        .collect();
    assert_eq!(replies, ["503 after 1ms", "200, cut after 2 events", "200"]);
    assert_eq!(recorded[0].model.as_deref(), Some("m"));
}
