//! A Redis Cluster of three nodes: every script on one slot, slots that move, scripts that one node forgets.

use std::collections::HashSet;
use std::process::Command;

use fuseline_core::{ScopeName, State};

use super::{Redis, free_port, linked, record, turn};
use crate::fleet::message::{Ask, Offer, Reply, Request, Weight};
use crate::fleet::turn::{Server as _, Turn};

/// Three nodes with a third of the slots each.
struct Cluster(Vec<Redis>);

impl Cluster {
    fn start() -> Self {
        let start = || {
            let bus = free_port().to_string();
            Redis::start(&["--cluster-enabled", "yes", "--cluster-port", &bus])
        };
        let cluster = Self(vec![start(), start(), start()]);
        for (at, slots) in [["0", "5460"], ["5461", "10922"], ["10923", "16383"]]
            .iter()
            .enumerate()
        {
            cluster.ask(at, &["CLUSTER", "ADDSLOTSRANGE", slots[0], slots[1]]);
            cluster.ask(at, &["CLUSTER", "SET-CONFIG-EPOCH", &(at + 1).to_string()]);
        }
        for other in [1, 2] {
            let bus = cluster.ask(other, &["CONFIG", "GET", "cluster-port"]);
            let bus = bus.lines().nth(1).unwrap();
            let port = cluster.0[other].port.to_string();
            cluster.ask(0, &["CLUSTER", "MEET", "127.0.0.1", &port, bus]);
        }
        for at in 0..3 {
            while !cluster
                .ask(at, &["CLUSTER", "INFO"])
                .contains("cluster_state:ok")
                || !cluster.knows_all(at)
            {}
        }
        cluster
    }

    fn knows_all(&self, at: usize) -> bool {
        self.ask(at, &["CLUSTER", "INFO"])
            .contains("cluster_slots_ok:16384")
    }

    fn ask(&self, at: usize, words: &[&str]) -> String {
        let port = self.0[at].port.to_string();
        let mut command = Command::new("redis-cli");
        let output = command.args(["-p", &port]).args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn id(&self, at: usize) -> String {
        self.ask(at, &["CLUSTER", "MYID"])
    }

    /// The slot of this breaker's key.
    fn slot(&self, name: &str) -> String {
        let key = format!(r#"test:{{["model","p","{name}"]}}"#);
        self.ask(0, &["CLUSTER", "KEYSLOT", &key])
    }

    /// Whose slot it is.
    fn node_of(&self, slot: &str) -> usize {
        match slot.parse().unwrap() {
            0..5461 => 0,
            5461..10923 => 1,
            _ => 2,
        }
    }
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
    let node = |at: usize| format!("redis://127.0.0.1:{}", cluster.0[at].port);
    let mut a = linked(&node(0), "test", 1).unwrap();
    let mut b = linked(&format!("{},127.0.0.1:1", node(2)), "test", 2).unwrap();
    let names: Vec<String> = (0..20).map(|at| format!("m{at}")).collect();
    let nodes: HashSet<usize> = names
        .iter()
        .map(|name| cluster.node_of(&cluster.slot(name)))
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
    let guide = include_str!("../../../../../docs/guide/fleet.md");
    let (_, user) = guide.split_once("redis-cli ").unwrap();
    let (user, _) = user.split_once("```").unwrap();
    let user = user.replace(['\'', '\\'], " ").replace("fuseline", "test");
    let words: Vec<_> = user.split_whitespace().collect();
    for at in 0..3 {
        assert_eq!(cluster.ask(at, &words), "OK", "{words:?}");
    }
    let url = format!("redis://fleet:password@127.0.0.1:{}", cluster.0[0].port);
    let mut link = linked(&url, "test", 1).unwrap();
    let now = link.turn(&turn(Vec::new())).unwrap().present.unwrap().now;
    let slot = cluster.slot("moving");
    let from = cluster.node_of(&slot);
    let to = (from + 1) % 3;
    let set = |at: usize, what: &[&str]| {
        let words = [&["CLUSTER", "SETSLOT", slot.as_str()], what].concat();
        assert_eq!(cluster.ask(at, &words), "OK");
    };
    set(to, &["IMPORTING", &cluster.id(from)]);
    set(from, &["MIGRATING", &cluster.id(to)]);
    // While it moves: a key that is no longer here is asked for there (ASK).
    let open = offer("moving", 1, State::Open, Ask::Nothing, now);
    let reply = link.turn(&turn(vec![open])).unwrap().replies.remove(0);
    assert!(reply.taken, "{reply:?}");
    let port = cluster.0[to].port.to_string();
    let kept = Command::new("redis-cli")
        .args(["-p", &port, "--scan"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&kept.stdout).contains("moving"));
    // Once it has moved: everything of it is there (MOVED).
    for at in [to, from, (to + 1) % 3] {
        set(at, &["NODE", &cluster.id(to)]);
    }
    for _ in 0..2 {
        let reply = link.turn(&look("moving", now)).unwrap().replies.remove(0);
        assert_eq!(reply.version, 1);
    }
}

#[test]
fn scripts_that_one_node_of_three_forgets_are_told_again() {
    let cluster = Cluster::start();
    let url = format!("redis://127.0.0.1:{}", cluster.0[0].port);
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
