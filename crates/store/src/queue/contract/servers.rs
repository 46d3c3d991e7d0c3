//! A queue on servers that die, stand by, or are a cluster.

use super::*;
use crate::redis_server::Cluster;

fn on(url: &str) -> RedisQueue {
    RedisQueue::new(&fleet(url, "test"), config()).unwrap()
}

#[test]
fn a_redis_that_was_killed_has_what_it_acknowledged() {
    let mut redis = Redis::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let mut queue = redis.open();
    assert!(queue.is_durable().unwrap());
    for id in ["1", "2", "3"] {
        submit(&mut queue, id, "x");
    }
    assert!(queue.finish("1", b"answer", NOW).unwrap());
    redis.kill_and_start_again();
    assert!(queue.look(NOW).is_err(), "its connection is dead");
    assert_eq!(queue.look(NOW).unwrap().waiting, 2);
    assert_eq!(stage(&mut queue, "1", NOW), done(b"answer"));
    assert_eq!(taken(&mut queue, "x").id, "2");
}

#[test]
fn every_key_in_redis_has_an_end() {
    let redis = Redis::start(&[]);
    let mut queue = on(&redis.url());
    assert!(!queue.is_durable().unwrap());
    let named = NewCall {
        name: Some([3; 32]),
        ..call("1", "x")
    };
    assert_eq!(queue.submit(&named, 0).unwrap(), Submitted::Kept);
    submit(&mut queue, "2", "x");
    assert!(queue.finish("2", b"answer", 0).unwrap());
    let keys = redis.ask(&["--scan"]);
    assert_eq!(keys.lines().count(), 7, "{keys}");
    for key in keys.lines() {
        assert!(key.starts_with("test:{queue}:"), "{key}");
        let left: u64 = redis.ask(&["PTTL", key]).trim().parse().unwrap();
        assert!(left > EXPIRES + TTL, "{key}: {left}");
    }
    let found = queue.find("1", &ME, 0).unwrap().unwrap();
    assert!(
        found.ends_ms > NOW - 200_000_000_000,
        "by the server's clock"
    );
}

#[test]
fn a_spare_is_passed_over_and_the_call_is_kept_all_the_same() {
    let primary = Redis::start(&["--appendonly", "yes"]);
    let of = primary.port.to_string();
    let spare = Redis::start(&["--replicaof", "127.0.0.1", &of]);
    while !spare
        .ask(&["INFO", "replication"])
        .contains("link_status:up")
    {}
    let url = format!("redis://127.0.0.1:{},127.0.0.1:{of}/3", spare.port);
    let mut queue = on(&url);
    submit(&mut queue, "1", "x");
    assert!(queue.is_durable().unwrap());
    assert_eq!(taken(&mut queue, "x").id, "1");
    // The roles change: what was acknowledged is there, if the new one had it.
    while spare.ask(&["HLEN", "test:{queue}:calls"]).trim() != "1" {}
    spare.ask(&["REPLICAOF", "NO", "ONE"]);
    primary.ask(&["REPLICAOF", "127.0.0.1", &spare.port.to_string()]);
    submit(&mut queue, "2", "x");
    assert_eq!(queue.look(0).unwrap().waiting, 2);
}

#[test]
fn a_call_whose_acknowledgement_was_lost_is_kept_once() {
    let redis = Redis::start(&[]);
    let mut queue = redis.open();
    submit(&mut queue, "1", "x");
    let seen = queue.look(NOW).unwrap();
    submit(&mut queue, "1", "x");
    assert_eq!(queue.look(NOW).unwrap(), seen);
    assert!(queue.finish("1", b"answer", NOW).unwrap());
    submit(&mut queue, "1", "x");
    assert_eq!(stage(&mut queue, "1", NOW), done(b"answer"));
}

/// As a user who may do no more than the guide says.
#[test]
fn a_queue_on_a_cluster_is_followed_to_another_node() {
    let cluster = Cluster::start();
    let mut queue = on(&cluster.as_the_guide_says());
    for id in ["1", "2"] {
        submit(&mut queue, id, "x");
    }
    assert!(!queue.is_durable().unwrap());
    let lease = taken(&mut queue, "x");
    let slot = cluster.slot("test:{queue}:calls");
    let from = cluster.node_of(&slot);
    let to = (from + 1) % 3;
    let keys = cluster.ask(from, &["--scan"]);
    assert_eq!(keys.lines().count(), 5, "all lie together: {keys}");

    cluster.begin_to_move(&slot, from, to);
    let (host, port) = cluster.node(to).split_once(':').map(own).unwrap();
    let mut words = vec!["MIGRATE", &host, &port, "", "0", "5000", "KEYS"];
    words.extend(keys.lines());
    assert_eq!(cluster.ask(from, &words), "OK");
    cluster.end_to_move(&slot, to);
    assert!(queue.keep(&lease, 0).unwrap());
    assert!(queue.finish("1", b"answer", 0).unwrap());
    assert_eq!(stage(&mut queue, "1", 0), done(b"answer"));

    cluster.ask(to, &["SCRIPT", "FLUSH"]);
    assert_eq!(taken(&mut queue, "x").id, "2");
}

fn own((host, port): (&str, &str)) -> (String, String) {
    (host.to_owned(), port.to_owned())
}
