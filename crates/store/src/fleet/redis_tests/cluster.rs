//! A Redis Cluster of three nodes: every script on one slot, slots that move, scripts that one node forgets.

use std::collections::HashSet;

use fuseline_core::{ScopeName, State};

use super::{linked, record, turn};
use crate::fleet::message::{Ask, Offer, Reply, Request, Weight};
use crate::fleet::turn::{Server as _, Turn};
use crate::redis_server::Cluster;

/// The slot of this breaker's key.
fn slot(cluster: &Cluster, name: &str) -> String {
    cluster.slot(&format!(r#"test:{{["model","p","{name}"]}}"#))
}

fn offer(name: &str, version: u64, state: State, ask: Ask, now: u64) -> Request {
    Request {
        name: ScopeName::model("p", name),
        sent: now,
        counts: "{}".to_owned(),
        offer: Some(Offer {
            version,
            record: record(state, now, "a"),
            token: 0,
            weight: Weight::Command,
        }),
        ask,
    }
}

fn look(name: &str, now: u64) -> Turn {
    turn(vec![Request {
        name: ScopeName::model("p", name),
        sent: now,
        counts: "{}".to_owned(),
        offer: None,
        ask: Ask::Nothing,
    }])
}

#[test]
fn report_100_a_full_cycle_of_twenty_targets_on_a_cluster_of_three() {
    let cluster = Cluster::start();
    let node = |at: usize| format!("redis://{}", cluster.node(at));
    let mut a = linked(&node(0), "test", 1).unwrap();
    let mut b = linked(&format!("{},127.0.0.1:1", node(2)), "test", 2).unwrap();
    let names: Vec<String> = (0..20).map(|at| format!("m{at}")).collect();
    let nodes: HashSet<usize> = names
        .iter()
        .map(|name| cluster.node_of(&slot(&cluster, name)))
        .collect();
    assert_eq!(nodes.len(), 3, "they lie on all nodes");

    let now = a.turn(&turn(Vec::new())).unwrap().present.unwrap().now;
    let want = Ask::Want {
        seen: 0,
        length: 5_000,
    };
    let opens = names
        .iter()
        .map(|name| offer(name, 1, State::Open, want, now));
    let replies = a.turn(&turn(opens.collect())).unwrap().replies;
    let is_taken = |reply: &Reply| reply.taken && reply.version == 1;
    assert!(replies.iter().all(is_taken), "{replies:?}");

    let seen = names.iter().flat_map(|name| look(name, now).requests);
    let answers = b.turn(&turn(seen.collect())).unwrap();
    assert_eq!(answers.present.unwrap().alive, 2);
    for reply in &answers.replies {
        let record = reply.record.as_ref().unwrap();
        assert_eq!((reply.version, record.state), (1, State::Open));
    }

    let closes = names
        .iter()
        .map(|name| offer(name, 2, State::Closed, Ask::Nothing, now));
    let replies = b.turn(&turn(closes.collect())).unwrap().replies;
    assert!(replies.iter().all(|reply| reply.taken), "{replies:?}");
}

/// As a user who may do no more than the guide says.
#[test]
fn keys_that_move_to_another_node_are_followed_there() {
    let cluster = Cluster::start();
    let url = cluster.as_the_guide_says();
    let mut link = linked(&url, "test", 1).unwrap();
    let now = link.turn(&turn(Vec::new())).unwrap().present.unwrap().now;
    let slot = slot(&cluster, "moving");
    let from = cluster.node_of(&slot);
    let to = (from + 1) % 3;
    cluster.begin_to_move(&slot, from, to);
    // While it moves: a key that is no longer here is asked for there (ASK).
    let open = offer("moving", 1, State::Open, Ask::Nothing, now);
    let reply = link.turn(&turn(vec![open])).unwrap().replies.remove(0);
    assert!(reply.taken, "{reply:?}");
    assert!(cluster.ask(to, &["--scan"]).contains("moving"));
    // Once it has moved: everything of it is there (MOVED).
    cluster.end_to_move(&slot, to);
    for _ in 0..2 {
        let reply = link.turn(&look("moving", now)).unwrap().replies.remove(0);
        assert_eq!(reply.version, 1);
    }
}

#[test]
fn scripts_that_one_node_of_three_forgets_are_told_again() {
    let cluster = Cluster::start();
    let url = format!("redis://{}", cluster.node(0));
    let mut link = linked(&url, "test", 1).unwrap();
    let now = link.turn(&turn(Vec::new())).unwrap().present.unwrap().now;
    let all = || {
        let looks = (0..20).flat_map(|at| look(&format!("m{at}"), now).requests);
        turn(looks.collect())
    };
    link.turn(&all()).unwrap();
    for at in 0..3 {
        assert_eq!(cluster.ask(at, &["SCRIPT", "FLUSH"]), "OK");
        assert_eq!(link.turn(&all()).unwrap().replies.len(), 20);
    }
}
