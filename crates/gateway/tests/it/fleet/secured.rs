//! A Redis behind TLS, known by an authority of one's own.

use std::fs;
use std::io::Write as _;

use fuseline_mock::{Mock, Reply};
use rcgen::CertifiedKey;

use super::redis::{Redis, free_port};
use super::{all_are, call, metric, replica, together};
use crate::state::program::Serving;
use crate::support::{gateway, until};

/// A Redis that speaks TLS only, and a file with the certificate that vouches for it.
pub(crate) fn secured(folder: &tempfile::TempDir) -> (Redis, String) {
    let hosts = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(hosts).unwrap();
    let write = |name: &str, text: String| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let ca = write("ca.pem", cert.pem());
    let key = write("key.pem", signing_key.serialize_pem());
    let port = free_port();
    let redis = Redis::start_with(&[
        "--tls-port",
        &port.to_string(),
        "--tls-cert-file",
        &ca,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &ca,
        "--tls-auth-clients",
        "no",
    ]);
    redis.ask(&["ACL", "SETUSER", "fleet", "on", ">sk-canary", "~*", "+@all"]);
    (
        redis,
        format!("rediss://fleet:sk-canary@127.0.0.1:{port}/2"),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_meet_over_tls_with_an_authority_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let (redis, url) = secured(&folder);
    let mock = Mock::start(Reply::status(500)).await.unwrap();
    let ca = folder.path().join("ca.pem");
    let text = format!("ca_file = {ca:?}\n{}", replica(&url, &mock.url()));
    let fleet = [gateway(&text).await, gateway(&text).await];
    together(&fleet).await;
    for at in [0, 1, 0, 1] {
        call(&fleet[at]).await;
    }
    all_are(&fleet, "open").await;
    assert!(
        redis
            .ask(&["-n", "2", "DBSIZE"])
            .trim()
            .parse::<u32>()
            .unwrap()
            >= 3
    );
}

/// Nothing that is said about it repeats the password.
#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_nobody_vouches_for_is_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let (_redis, url) = secured(&folder);
    let mock = Mock::start(Reply::ok()).await.unwrap();
    let text = replica(&url, &mock.url());
    let alone = gateway(&text).await;
    until(async || metric(&alone, "fleet_failures_total").await >= 3.0).await;
    assert_eq!(metric(&alone, "fleet_degraded").await, 1.0);
    assert_eq!(call(&alone).await.status, 200);

    let mut file = fs::File::create(folder.path().join("fuseline.toml")).unwrap();
    write!(file, "state = \"off\"\n{text}").unwrap();
    let program = Serving::start(folder.path());
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let log = program.kill();
    let of_fleet = |line: &&serde_json::Value| line.to_string().contains("fleet's Redis");
    assert_eq!(log.iter().filter(of_fleet).count(), 1, "{log:?}");
    assert!(!format!("{log:?}").contains("canary"), "{log:?}");
}
