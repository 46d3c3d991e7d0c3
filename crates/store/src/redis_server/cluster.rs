//! A Redis Cluster of three nodes, for tests.

use std::process::Command;

use super::{Redis, free_port};

/// Three nodes with a third of the slots each.
pub(crate) struct Cluster(Vec<Redis>);

impl Cluster {
    pub(crate) fn start() -> Self {
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
            while !cluster.knows_all(at) {}
        }
        cluster
    }

    fn knows_all(&self, at: usize) -> bool {
        let info = self.ask(at, &["CLUSTER", "INFO"]);
        info.contains("cluster_state:ok") && info.contains("cluster_slots_ok:16384")
    }

    /// The address of one of the nodes.
    pub(crate) fn node(&self, at: usize) -> String {
        format!("127.0.0.1:{}", self.0[at].port)
    }

    /// Its address, for a user who may do no more than the guide says.
    pub(crate) fn as_the_guide_says(&self) -> String {
        let guide = include_str!("../../../../docs/guide/fleet.md");
        let (_, user) = guide.split_once("redis-cli ").unwrap();
        let (user, _) = user.split_once("```").unwrap();
        let user = user.replace(['\'', '\\'], " ").replace("fuseline", "test");
        let words: Vec<_> = user.split_whitespace().collect();
        for at in 0..3 {
            assert_eq!(self.ask(at, &words), "OK", "{words:?}");
        }
        format!("redis://fleet:password@{}", self.node(0))
    }

    pub(crate) fn ask(&self, at: usize, words: &[&str]) -> String {
        let port = self.0[at].port.to_string();
        let mut command = Command::new("redis-cli");
        let output = command.args(["-p", &port]).args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn slot(&self, key: &str) -> String {
        self.ask(0, &["CLUSTER", "KEYSLOT", key])
    }

    /// Whose slot it is, as long as none has moved.
    pub(crate) fn node_of(&self, slot: &str) -> usize {
        match slot.parse().unwrap() {
            0..5461 => 0,
            5461..10923 => 1,
            _ => 2,
        }
    }

    /// Begins to move a slot from one node to another: keys that are not there any more are asked for here.
    pub(crate) fn begin_to_move(&self, slot: &str, from: usize, to: usize) {
        self.set_slot(to, slot, &["IMPORTING", &self.id(from)]);
        self.set_slot(from, slot, &["MIGRATING", &self.id(to)]);
    }

    /// Has moved a slot.
    pub(crate) fn end_to_move(&self, slot: &str, to: usize) {
        for at in [to, (to + 1) % 3, (to + 2) % 3] {
            self.set_slot(at, slot, &["NODE", &self.id(to)]);
        }
    }

    fn set_slot(&self, at: usize, slot: &str, what: &[&str]) {
        let words = [&["CLUSTER", "SETSLOT", slot], what].concat();
        assert_eq!(self.ask(at, &words), "OK");
    }

    fn id(&self, at: usize) -> String {
        self.ask(at, &["CLUSTER", "MYID"])
    }
}
