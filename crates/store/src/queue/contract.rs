//! The suite that every queue passes: what `Queue` promises, asked of each in turn; and all of them beside one another.

mod servers;

use std::cell::Cell;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::*;
use crate::fleet::FleetConfig;
use crate::redis_server::Redis;
use crate::sqlite::SqliteQueue;

/// The time of day at which tests begin.
const NOW: u64 = 1_800_000_000_000;
const ME: Digest = [1; 32];
const OTHER: Digest = [2; 32];

/// A queue, and how the next process comes to it once this one is gone.
trait Place {
    type Kept: Queue;

    fn open_with(&self, config: QueueConfig) -> Self::Kept;

    fn open(&self) -> Self::Kept {
        self.open_with(config())
    }
}

struct File(tempfile::TempDir);

impl File {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

impl Place for File {
    type Kept = SqliteQueue;

    fn open_with(&self, config: QueueConfig) -> SqliteQueue {
        SqliteQueue::beside(&self.0.path().join("state.db"), config).unwrap()
    }
}

impl Place for Redis {
    type Kept = RedisQueue;

    fn open_with(&self, config: QueueConfig) -> RedisQueue {
        let queue = RedisQueue::new(&fleet(&self.url(), "test"), config).unwrap();
        queue.by_given_time()
    }
}

fn fleet(url: &str, prefix: &str) -> FleetConfig {
    FleetConfig {
        url: url.to_owned(),
        authorities: None,
        prefix: prefix.to_owned(),
        replica: 1,
    }
}

fn config() -> QueueConfig {
    QueueConfig {
        max_calls: 10,
        max_bytes: 100_000,
        expires: Duration::from_secs(1_000),
        ttl: Duration::from_secs(500),
        lease: Duration::from_secs(60),
        lane_places: 1,
    }
}

const EXPIRES: u64 = 1_000_000;
const TTL: u64 = 500_000;
const LEASE: u64 = 60_000;

fn call(id: &str, lane: &str) -> NewCall {
    NewCall {
        id: id.to_owned(),
        lane: lane.to_owned(),
        tenant: ME,
        name: None,
        request: format!("request of {id}").into_bytes(),
    }
}

fn submit(queue: &mut impl Queue, id: &str, lane: &str) {
    let submitted = queue.submit(&call(id, lane), NOW).unwrap();
    assert_eq!(submitted, Submitted::Kept);
}

/// The lane's next call.
fn take(queue: &mut impl Queue, lane: &str, now: u64) -> Option<Taken> {
    queue.take(lane, now).unwrap()
}

fn taken(queue: &mut impl Queue, lane: &str) -> Lease {
    take(queue, lane, NOW).expect("a call is there").lease
}

fn stage(queue: &mut impl Queue, id: &str, now: u64) -> Option<Stage> {
    let found = queue.find(id, &ME, now).unwrap();
    found.map(|found| found.stage)
}

fn done(result: &[u8]) -> Option<Stage> {
    let result = result.to_vec();
    Some(Stage::Done { result })
}

fn takes_in_order_one_after_the_other(place: &impl Place) {
    let mut queue = place.open();
    for (id, lane) in [("1", "x"), ("2", "y"), ("3", "x"), ("4", "x")] {
        submit(&mut queue, id, lane);
    }
    assert_eq!(queue.look(NOW).unwrap().lanes, ["x", "y"]);
    assert_eq!(
        stage(&mut queue, "4", NOW),
        Some(Stage::Waiting { ahead: 2 })
    );
    let first = take(&mut queue, "x", NOW).unwrap();
    assert_eq!(
        (first.lease.id.as_str(), first.request.as_slice()),
        ("1", &b"request of 1"[..])
    );
    assert_eq!((first.sends, first.strikes), (1, 0));
    assert_eq!(take(&mut queue, "x", NOW), None, "one at a time");
    assert_eq!(take(&mut queue, "z", NOW), None);
    assert_eq!(stage(&mut queue, "1", NOW), Some(Stage::Sending));
    assert_eq!(queue.look(NOW).unwrap().lanes, ["y"]);
    assert_eq!(taken(&mut queue, "y").id, "2", "lanes wait for themselves");
    for next in ["3", "4"] {
        let lease = match next {
            "3" => first.lease.clone(),
            _ => Lease {
                id: "3".to_owned(),
                token: 1,
            },
        };
        assert!(queue.finish(&lease.id, b"answer", NOW).unwrap());
        assert_eq!(taken(&mut queue, "x").id, next);
    }
    let seen = queue.look(NOW).unwrap();
    assert_eq!((seen.waiting, seen.lanes.len()), (2, 0));
}

fn gives_as_many_as_there_are_places(place: &impl Place) {
    let mut queue = place.open_with(QueueConfig {
        lane_places: 2,
        ..config()
    });
    for id in ["1", "2", "3"] {
        submit(&mut queue, id, "x");
    }
    assert_eq!(taken(&mut queue, "x").id, "1");
    assert_eq!(queue.look(NOW).unwrap().lanes, ["x"]);
    assert_eq!(taken(&mut queue, "x").id, "2");
    assert_eq!(take(&mut queue, "x", NOW), None);
    assert!(queue.finish("2", b"", NOW).unwrap());
    assert_eq!(taken(&mut queue, "x").id, "3");
}

fn sends_again_what_a_dead_holder_has_taken(place: &impl Place) {
    let mut queue = place.open();
    submit(&mut queue, "1", "x");
    let dead = taken(&mut queue, "x");
    assert_eq!(take(&mut queue, "x", NOW + LEASE - 1), None);
    let again = take(&mut queue, "x", NOW + LEASE).unwrap();
    assert_eq!((again.lease.id.as_str(), again.sends), ("1", 2));
    assert_ne!(again.lease, dead);
    assert!(!queue.keep(&dead, NOW + LEASE).unwrap());
    let back = queue.give_back(&dead, Sent::InVain, NOW + LEASE);
    assert!(!back.unwrap(), "it is another's");
    let end = NOW + 3 * LEASE;
    assert!(queue.keep(&again.lease, end - 1).unwrap());
    assert_eq!(take(&mut queue, "x", end), None, "kept in time");
    assert!(queue.finish("1", b"of the first", end).unwrap());
    assert!(!queue.finish("1", b"of the second", end).unwrap());
    assert!(!queue.keep(&again.lease, end).unwrap());
    assert_eq!(stage(&mut queue, "1", end), done(b"of the first"));
}

fn takes_calls_back_to_their_place(place: &impl Place) {
    let mut queue = place.open();
    submit(&mut queue, "1", "x");
    submit(&mut queue, "2", "x");
    let mut counts = Vec::new();
    for how in [Sent::NotAtAll, Sent::AsProbe, Sent::InVain, Sent::InVain] {
        let taken = take(&mut queue, "x", NOW).unwrap();
        assert_eq!(taken.lease.id, "1", "its place is the first");
        counts.push((taken.sends, taken.strikes));
        assert!(queue.give_back(&taken.lease, how, NOW).unwrap());
        assert!(!queue.give_back(&taken.lease, how, NOW).unwrap());
    }
    assert_eq!(counts, [(1, 0), (1, 0), (2, 0), (3, 1)]);
    assert_eq!(
        stage(&mut queue, "1", NOW),
        Some(Stage::Waiting { ahead: 0 })
    );
    for sends in 4..=5 {
        let taken = take(&mut queue, "x", NOW).unwrap();
        assert_eq!((taken.lease.id.as_str(), taken.sends), ("1", sends));
        assert!(queue.give_back(&taken.lease, Sent::AsProbe, NOW).unwrap());
    }
    assert_eq!(taken(&mut queue, "x").id, "2", "five times is enough");
    assert!(queue.finish("2", b"", NOW).unwrap());
    assert_eq!(taken(&mut queue, "x").id, "1");
}

fn keeps_results_for_their_tenant_and_for_a_while(place: &impl Place) {
    let mut queue = place.open();
    submit(&mut queue, "1", "x");
    let later = NOW + 700_000;
    let result = [0, 255, 13, 10, b'{'];
    assert_eq!(queue.find("1", &OTHER, NOW).unwrap(), None);
    assert!(queue.finish("1", &result, later).unwrap());
    assert_eq!(queue.find("1", &OTHER, later).unwrap(), None);
    assert_eq!(queue.find("2", &ME, later).unwrap(), None);
    for _ in 0..2 {
        let found = queue.find("1", &ME, later + TTL - 1).unwrap().unwrap();
        let result = result.to_vec();
        assert_eq!(
            found,
            Found {
                stage: Stage::Done { result },
                sends: 0,
                ends_ms: later + TTL
            }
        );
    }
    assert_eq!(queue.look(later).unwrap().bytes, 5 + ROW);
    assert_eq!(queue.find("1", &ME, later + TTL).unwrap(), None);
    assert_eq!(queue.look(later + TTL).unwrap(), Outlook::default());
}

fn is_bounded(place: &impl Place) {
    let mut queue = place.open();
    for at in 0..10 {
        submit(&mut queue, &at.to_string(), "x");
    }
    let eleventh = call("11", "x");
    assert_eq!(queue.submit(&eleventh, NOW).unwrap(), Submitted::Full);
    assert!(queue.finish("0", b"", NOW).unwrap());
    assert_eq!(queue.submit(&eleventh, NOW).unwrap(), Submitted::Kept);
    drop(queue);

    let mut queue = place.open_with(QueueConfig {
        max_calls: 100,
        ..config()
    });
    let bytes = queue.look(NOW).unwrap().bytes;
    let long = |id: &str, length: u64| NewCall {
        request: vec![7; usize::try_from(length).unwrap()],
        ..call(id, "x")
    };
    let room = 100_000 - bytes - ROW;
    let refused = queue.submit(&long("a", room + 1), NOW).unwrap();
    assert_eq!(refused, Submitted::Full);
    let kept = queue.submit(&long("a", room), NOW).unwrap();
    assert_eq!(kept, Submitted::Kept);
    assert_eq!(queue.look(NOW).unwrap().bytes, 100_000);
    let refused = queue.submit(&long("b", 0), NOW).unwrap();
    assert_eq!(refused, Submitted::Full);
    assert!(queue.remove("a", &ME, NOW).unwrap());
    assert_eq!(queue.look(NOW).unwrap().bytes, bytes);
    let kept = queue.submit(&long("b", 0), NOW).unwrap();
    assert_eq!(kept, Submitted::Kept);
}

fn knows_a_call_by_its_name(place: &impl Place) {
    let mut queue = place.open();
    let named = |id: &str, name| NewCall {
        name: Some([name; 32]),
        ..call(id, "x")
    };
    assert_eq!(queue.submit(&named("1", 1), NOW).unwrap(), Submitted::Kept);
    let known = Submitted::Known("1".to_owned());
    assert_eq!(queue.submit(&named("2", 1), NOW).unwrap(), known);
    assert_eq!(queue.submit(&named("3", 2), NOW).unwrap(), Submitted::Kept);
    assert!(queue.finish("1", b"answer", NOW).unwrap());
    assert_eq!(queue.submit(&named("4", 1), NOW).unwrap(), known);
    let later = NOW + TTL;
    assert_eq!(
        queue.submit(&named("5", 1), later).unwrap(),
        Submitted::Kept,
        "the first one is forgotten"
    );
    assert_eq!(stage(&mut queue, "2", NOW), None);
}

fn lets_calls_expire_that_nobody_sends(place: &impl Place) {
    let mut queue = place.open();
    submit(&mut queue, "1", "x");
    submit(&mut queue, "2", "x");
    let end = NOW + EXPIRES;
    let last = take(&mut queue, "x", end - 1).unwrap();
    let seen = queue.look(end).unwrap();
    assert_eq!((seen.expired, seen.waiting), (1, 1), "1 is being sent");
    assert_eq!(stage(&mut queue, "2", end), Some(Stage::Expired));
    assert_eq!(stage(&mut queue, "1", end), Some(Stage::Sending));
    assert!(!queue.finish("2", b"too late", end).unwrap());
    assert!(queue.give_back(&last.lease, Sent::InVain, end).unwrap());
    assert_eq!(take(&mut queue, "x", end), None);
    let seen = queue.look(end).unwrap();
    assert_eq!((seen.expired, seen.waiting, seen.bytes), (1, 0, 2 * ROW));
    assert_eq!(queue.look(end + TTL).unwrap(), Outlook::default());
    assert_eq!(stage(&mut queue, "2", end + TTL), None);
}

fn takes_a_name_for_a_new_one_once_its_call_has_expired(place: &impl Place) {
    let mut queue = place.open();
    let named = |id: &str| NewCall {
        name: Some([1; 32]),
        ..call(id, "x")
    };
    assert_eq!(queue.submit(&named("1"), NOW).unwrap(), Submitted::Kept);
    let end = NOW + EXPIRES;
    assert_eq!(queue.submit(&named("2"), end).unwrap(), Submitted::Kept);
    assert_eq!(queue.look(end + TTL).unwrap().expired, 1);
    let known = Submitted::Known("2".to_owned());
    assert_eq!(queue.submit(&named("3"), end + TTL).unwrap(), known);
}

fn removes_what_its_tenant_does_not_want(place: &impl Place) {
    let mut queue = place.open();
    submit(&mut queue, "1", "x");
    assert!(!queue.remove("1", &OTHER, NOW).unwrap());
    let lease = taken(&mut queue, "x");
    assert!(queue.remove("1", &ME, NOW).unwrap());
    assert!(!queue.remove("1", &ME, NOW).unwrap());
    assert!(!queue.finish("1", b"nobody wants it", NOW).unwrap());
    assert!(!queue.keep(&lease, NOW).unwrap());
    assert_eq!(queue.look(NOW).unwrap(), Outlook::default());
}

fn is_there_for_the_next_process(place: &impl Place) {
    let lane = "[\"日本'; --\", \"a\\\"b\"]\u{0}";
    let mut queue = place.open_with(QueueConfig {
        max_bytes: 4 << 20,
        ..config()
    });
    let long = NewCall {
        request: (0..2_000_000_u32).map(|at| (at % 251) as u8).collect(),
        ..call("long", lane)
    };
    assert_eq!(queue.submit(&long, NOW).unwrap(), Submitted::Kept);
    submit(&mut queue, "2", lane);
    submit(&mut queue, "done", "y");
    assert!(queue.finish("done", b"answer", NOW).unwrap());
    drop(queue);

    let mut queue = place.open();
    assert_eq!(queue.look(NOW).unwrap().lanes, [lane]);
    let first = take(&mut queue, lane, NOW).unwrap();
    assert_eq!((first.lease.id.as_str(), first.sends), ("long", 1));
    assert!(first.request == long.request);
    drop(queue);

    // However this one ends, the call it was sending is sent again in the end.
    let mut queue = place.open();
    let again = take(&mut queue, lane, NOW + LEASE).unwrap();
    assert_eq!((again.lease.id.as_str(), again.sends), ("long", 2));
    assert_eq!(stage(&mut queue, "done", NOW), done(b"answer"));
    assert_eq!(
        stage(&mut queue, "2", NOW),
        Some(Stage::Waiting { ahead: 1 })
    );
}

/// One test of each promise for each queue.
macro_rules! suite {
    ($($promise:ident),* $(,)?) => {
        mod sqlite {
            $(#[test] fn $promise() { super::$promise(&super::File::new()); })*
        }
        #[test]
        fn redis_keeps_every_promise() {
            let redis = Redis::start(&[]);
            $(
                $promise(&redis);
                assert_eq!(redis.ask(&["FLUSHDB"]), "OK\n");
            )*
        }
    };
}

suite![
    takes_in_order_one_after_the_other,
    gives_as_many_as_there_are_places,
    sends_again_what_a_dead_holder_has_taken,
    takes_calls_back_to_their_place,
    keeps_results_for_their_tenant_and_for_a_while,
    is_bounded,
    knows_a_call_by_its_name,
    lets_calls_expire_that_nobody_sends,
    takes_a_name_for_a_new_one_once_its_call_has_expired,
    removes_what_its_tenant_does_not_want,
    is_there_for_the_next_process,
];

/// Something that can be asked of a queue.
#[derive(Clone, Debug)]
enum Op {
    Submit(u8, u8, u8, u16),
    Look,
    Take(u8),
    Keep(u8, u8),
    GiveBack(u8, u8, u8),
    Finish(u8, u16),
    Find(u8, bool),
    Remove(u8, bool),
    Pass(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let (id, lane, token) = (0_u8..6, 0_u8..2, 0_u8..4);
    prop_oneof![
        4 => (id.clone(), lane.clone(), 0_u8..4, 0_u16..400).prop_map(|(a, b, c, d)| Op::Submit(a, b, c, d)),
        1 => Just(Op::Look),
        4 => lane.prop_map(Op::Take),
        1 => (id.clone(), token.clone()).prop_map(|(a, b)| Op::Keep(a, b)),
        3 => (id.clone(), token, 0_u8..3).prop_map(|(a, b, c)| Op::GiveBack(a, b, c)),
        2 => (id.clone(), 0_u16..400).prop_map(|(a, b)| Op::Finish(a, b)),
        2 => (id.clone(), any::<bool>()).prop_map(|(a, b)| Op::Find(a, b)),
        1 => (id, prop::bool::weighted(0.8)).prop_map(|(a, b)| Op::Remove(a, b)),
        3 => prop::sample::select(vec![1, LEASE / 2, LEASE, TTL, EXPIRES]).prop_map(Op::Pass),
    ]
}

fn lease(id: u8, token: u8) -> Lease {
    Lease {
        id: id.to_string(),
        token: token.into(),
    }
}

/// What it says, as a text.
fn answer(queue: &mut dyn Queue, op: &Op, now: u64) -> String {
    let who = |mine| if mine { ME } else { OTHER };
    let lane = |at: u8| format!("lane {at}");
    match *op {
        Op::Submit(id, at, name, length) => {
            let new = NewCall {
                name: (name > 1).then_some([name; 32]),
                request: vec![name; length.into()],
                ..call(&id.to_string(), &lane(at))
            };
            // Ids are unique: one that is there is not given out again.
            if queue.find(&new.id, &ME, now).unwrap().is_some() {
                return String::new();
            }
            format!("{:?}", queue.submit(&new, now).unwrap())
        }
        Op::Look => format!("{:?}", queue.look(now).unwrap()),
        Op::Take(at) => format!("{:?}", queue.take(&lane(at), now).unwrap()),
        Op::Keep(id, token) => queue.keep(&lease(id, token), now).unwrap().to_string(),
        Op::GiveBack(id, token, how) => {
            let how = [Sent::NotAtAll, Sent::AsProbe, Sent::InVain][usize::from(how)];
            let given = queue.give_back(&lease(id, token), how, now);
            given.unwrap().to_string()
        }
        Op::Finish(id, length) => {
            let result = vec![1; length.into()];
            let finished = queue.finish(&id.to_string(), &result, now);
            finished.unwrap().to_string()
        }
        Op::Find(id, mine) => {
            format!(
                "{:?}",
                queue.find(&id.to_string(), &who(mine), now).unwrap()
            )
        }
        Op::Remove(id, mine) => {
            let removed = queue.remove(&id.to_string(), &who(mine), now);
            removed.unwrap().to_string()
        }
        Op::Pass(_) => String::new(),
    }
}

#[test]
fn all_queues_say_the_same_whatever_is_asked_of_them() {
    let redis = Redis::start(&[]);
    let config = || QueueConfig {
        max_calls: 4,
        max_bytes: 3_000,
        lane_places: 2,
        ..config()
    };
    let ops = prop::collection::vec(op(), 1..60);
    let mut runner = proptest::test_runner::Config::default();
    runner.cases /= 4;
    let case = Cell::new(0_u32);
    let result = TestRunner::new(runner).run(&ops, |ops| {
        let file = File::new();
        let mut one = file.open_with(config()).unsynced();
        case.set(case.get() + 1);
        let prefix = format!("case {}", case.get());
        let two = RedisQueue::new(&fleet(&redis.url(), &prefix), config()).unwrap();
        let mut two = two.by_given_time();
        let mut now = NOW;
        for op in ops {
            if let Op::Pass(time) = op {
                now += time;
            }
            let (first, second) = (answer(&mut one, &op, now), answer(&mut two, &op, now));
            prop_assert_eq!(first, second, "{:?}", op);
        }
        let (first, second) = (one.look(now), two.look(now));
        prop_assert_eq!(first.unwrap(), second.unwrap());
        Ok(())
    });
    result.unwrap();
}
