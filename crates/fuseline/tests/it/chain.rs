//! Chains: who is asked, in which order, and what comes back.

use std::sync::Mutex;
use std::time::Duration;

use fuseline::classify::LastGood;
use fuseline::{Breaker, Cache, CachedChain, Chain, Clock, Error, Kind, Outcome, State};

use crate::support::{breaker, by_kind, open, patient};

struct Fixture {
    breakers: [Breaker; 2],
    clock: Clock,
    asked: Mutex<Vec<&'static str>>,
}

impl Fixture {
    fn new() -> Self {
        let (first, clock) = breaker(&patient());
        let second = Breaker::with_clock("anthropic", first.policy(), clock.clone());
        Self {
            breakers: [first, second],
            clock,
            asked: Mutex::default(),
        }
    }

    fn chain(&self) -> Chain<&'static str> {
        let [first, second] = self.breakers.clone();
        Chain::builder()
            .target(first, "first")
            .target(second, "second")
    }

    /// Fails where the kind is said.
    async fn ask(
        &self,
        target: &'static str,
        fails: &[(&str, Kind)],
    ) -> Result<&'static str, Kind> {
        self.asked.lock().unwrap().push(target);
        let failure = fails.iter().find(|(name, _)| *name == target);
        failure.map_or(Ok(target), |(_, kind)| Err(*kind))
    }

    async fn through(&self, fails: &[(&str, Kind)]) -> Result<&'static str, Error<Kind>> {
        let chain = self.chain().with_classifier(by_kind::<&'static str>);
        chain.call(|target| self.ask(target, fails)).await
    }

    fn asked(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

#[tokio::test]
async fn the_first_that_comes_through_answers() {
    let fixture = Fixture::new();
    assert_eq!(fixture.through(&[]).await, Ok("first"));
    assert_eq!(fixture.asked(), ["first"]);
    assert_eq!(
        fixture.through(&[("first", Kind::Timeout)]).await,
        Ok("second")
    );
    assert_eq!(fixture.asked(), ["first", "second"]);
    assert_eq!(fixture.breakers[0].snapshot().run, 1);
}

#[tokio::test]
async fn an_open_target_is_passed_by_without_a_call() {
    let fixture = Fixture::new();
    open(&fixture.breakers[0]);
    assert_eq!(fixture.through(&[]).await, Ok("second"));
    assert_eq!(fixture.asked(), ["second"]);
}

#[tokio::test]
async fn the_last_error_comes_back_and_so_does_a_request_at_fault() {
    let fixture = Fixture::new();
    let both = [("first", Kind::Timeout), ("second", Kind::Overloaded)];
    assert_eq!(
        fixture.through(&both).await,
        Err(Error::Inner(Kind::Overloaded))
    );
    fixture.asked();
    let wrong = [("first", Kind::BadRequest)];
    assert_eq!(
        fixture.through(&wrong).await,
        Err(Error::Inner(Kind::BadRequest))
    );
    assert_eq!(fixture.asked(), ["first"]);
}

#[tokio::test]
async fn a_soft_failure_goes_on_and_comes_back_where_it_is_the_last() {
    let fixture = Fixture::new();
    let chain = fixture
        .chain()
        .with_classifier(|_: &Result<&str, Kind>, _: Duration| {
            Outcome::failure(Kind::EmptyResponse)
        });
    let answer = chain.call(|target| fixture.ask(target, &[])).await;
    assert_eq!(answer, Ok("second"));
    assert_eq!(fixture.asked(), ["first", "second"]);
}

#[tokio::test]
async fn all_refuse_with_the_shortest_wait() {
    let fixture = Fixture::new();
    open(&fixture.breakers[0]);
    fixture.clock.advance(Duration::from_secs(5));
    open(&fixture.breakers[1]);
    assert!(!fixture.chain().is_available());
    let Err(Error::Open(refused)) = fixture.through(&[]).await else {
        panic!("all are open");
    };
    assert_eq!(refused.name.to_string(), "openai");
    assert_eq!(refused.retry_after, Duration::from_secs(10));
    assert_eq!(fixture.asked(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn it_waits_as_long_as_it_may_for_the_first_to_come_back() {
    let fixture = Fixture::new();
    fixture.breakers.iter().for_each(open);
    let ask = |target| fixture.ask(target, &[]);
    let short = fixture.chain().max_wait(Duration::from_secs(14));
    assert!(short.call(ask).await.unwrap_err().is_open());

    // A second more than the cooldown: both clocks turn at the same instant, and either may be asked first.
    let chain = fixture.chain().max_wait(Duration::from_secs(16));
    let time = async {
        for _ in 0..16 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            fixture.clock.advance(Duration::from_secs(1));
        }
    };
    let (answer, ()) = tokio::join!(chain.call(ask), time);
    assert_eq!(answer, Ok("first"));
    assert_eq!(fixture.asked(), ["first"]);
}

#[tokio::test]
async fn a_dropped_call_says_nothing_about_its_target() {
    let fixture = Fixture::new();
    let chain = fixture.chain();
    let call = chain.call(|_| std::future::pending::<Result<(), Kind>>());
    tokio::select! { biased; _ = call => {}, () = async {} => {} }
    let seen = fixture.breakers[0].snapshot();
    assert_eq!(
        (seen.in_flight, seen.run, seen.state),
        (0, 0, State::Closed)
    );
}

#[tokio::test]
async fn a_call_that_panics_says_nothing_about_its_target() {
    let fixture = Fixture::new();
    let chain = fixture.chain();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        let panics = async |_| -> Result<(), Kind> { panic!("the call's own") };
        let _ = chain.call(panics).await;
    });
    assert!(tasks.join_next().await.unwrap().unwrap_err().is_panic());
    for breaker in &fixture.breakers {
        let seen = breaker.snapshot();
        assert_eq!((seen.in_flight, seen.run, seen.late), (0, 0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn report_157_a_chain_that_waits_can_be_left_at_once_and_holds_nothing() {
    let fixture = Fixture::new();
    fixture.breakers.iter().for_each(open);
    let chain = fixture.chain().max_wait(Duration::from_secs(60));
    let call = chain.call(|target| fixture.ask(target, &[]));
    let left = tokio::time::timeout(Duration::from_secs(2), call).await;
    assert!(left.is_err());
    assert_eq!(fixture.asked(), [""; 0]);
    for breaker in &fixture.breakers {
        assert_eq!(breaker.snapshot().in_flight, 0);
    }
    fixture.clock.advance(Duration::from_secs(15));
    assert!(
        chain.is_available(),
        "no probe's slot was taken by who left"
    );
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_would_be_too_long_is_not_begun() {
    let fixture = Fixture::new();
    fixture.breakers.iter().for_each(open);
    let chain = fixture.chain().max_wait(Duration::from_millis(14_999));
    let start = tokio::time::Instant::now();
    let refused = chain.call(|target| fixture.ask(target, &[])).await;
    assert_eq!(
        refused.unwrap_err().retry_after(),
        Some(Duration::from_secs(15))
    );
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn a_target_that_failed_and_others_that_refuse_give_the_failure_back() {
    let fixture = Fixture::new();
    open(&fixture.breakers[1]);
    let chain = fixture.chain().max_wait(Duration::from_secs(60));
    let failed = chain.call(async |_| Err::<(), _>(Kind::Timeout)).await;
    assert_eq!(failed, Err(Error::Inner(Kind::Timeout)));
}

#[tokio::test]
async fn a_probe_goes_to_the_target_that_was_out_and_a_bad_one_falls_over() {
    let fixture = Fixture::new();
    open(&fixture.breakers[0]);
    fixture.clock.advance(Duration::from_secs(15));
    let fails = [("first", Kind::ServerError)];
    assert_eq!(fixture.through(&fails).await, Ok("second"));
    assert_eq!(fixture.asked(), ["first", "second"]);
    assert_eq!(fixture.through(&fails).await, Ok("second"));
    assert_eq!(fixture.asked(), ["second"], "the first is open again");
}

type Judge = fn(&Result<String, Kind>, Duration) -> Outcome;

/// Texts by a number and a question; a key and its text count as many bytes as the text.
fn cached(fixture: &Fixture, max_bytes: u64) -> CachedChain<&'static str, Judge, u32, String> {
    let size = |_: &u32, text: &String| text.len();
    let cache = Cache::new(max_bytes, Duration::from_secs(600), size);
    fixture
        .chain()
        .with_classifier(by_kind::<String> as Judge)
        .cache(cache)
}

async fn text(target: &'static str) -> Result<String, Kind> {
    Ok(format!("from {target}"))
}

async fn overloaded(_: &'static str) -> Result<String, Kind> {
    Err(Kind::Overloaded)
}

#[tokio::test]
async fn the_last_good_result_stands_in_for_a_failure_of_all_and_tells_its_age() {
    let fixture = Fixture::new();
    let chain = cached(&fixture, 1_000);
    let fresh = chain.call(1, text).await.unwrap();
    assert_eq!((fresh.value.as_str(), fresh.age), ("from first", None));
    fixture.clock.advance(Duration::from_secs(7));
    let old = chain.call(1, overloaded).await.unwrap();
    assert_eq!(old.value, "from first");
    assert_eq!(old.age, Some(Duration::from_secs(7)));
    let other = chain.call(2, overloaded).await;
    assert_eq!(other, Err(Error::Inner(Kind::Overloaded)), "another key");

    fixture.breakers.iter().for_each(open);
    let refused = chain.call(1, text).await.unwrap();
    assert_eq!(
        refused.age,
        Some(Duration::from_secs(7)),
        "nobody was asked"
    );
    assert!(chain.call(2, text).await.unwrap_err().is_open());
    assert!(!chain.chain().is_available());
}

#[tokio::test]
async fn an_old_result_is_not_given_out_and_a_new_one_renews_it() {
    let fixture = Fixture::new();
    let chain = cached(&fixture, 1_000);
    let age = async || chain.call(1, overloaded).await.map(|answer| answer.age);
    chain.call(1, text).await.unwrap();
    fixture.clock.advance(Duration::from_secs(600));
    assert_eq!(age().await, Ok(Some(Duration::from_secs(600))));
    chain.call(1, text).await.unwrap();
    fixture.clock.advance(Duration::from_secs(600));
    assert_eq!(age().await, Ok(Some(Duration::from_secs(600))));
    fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(age().await, Err(Error::Inner(Kind::Overloaded)));
}

#[tokio::test]
async fn only_what_is_good_is_kept_and_only_failures_of_all_are_stood_in_for() {
    let fixture = Fixture::new();
    let size = |_: &u32, text: &String| text.len();
    let judge = |result: &Result<String, Kind>, took: Duration| match result {
        Ok(text) if text.is_empty() => Outcome::failure(Kind::EmptyResponse),
        Ok(text) if text == "neutral" => Outcome::Neutral,
        other => by_kind(other, took),
    };
    let chain = fixture.chain().with_classifier(judge).cache(Cache::new(
        1_000,
        Duration::from_secs(600),
        size,
    ));
    let says =
        async |said: &'static str| chain.call(1, async |_| Ok(said.to_owned())).await.unwrap();
    assert_eq!(says("neutral").await.age, None);
    assert_eq!(says("").await.value, "", "nothing better is there");
    assert_eq!(
        chain.call(1, overloaded).await,
        Err(Error::Inner(Kind::Overloaded))
    );
    says("good").await;
    assert_eq!(says("neutral").await.value, "neutral");
    assert_eq!(says("").await.value, "good", "better than an empty one");
    let at_fault = chain.call(1, async |_| Err(Kind::BadRequest)).await;
    assert_eq!(
        at_fault,
        Err(Error::Inner(Kind::BadRequest)),
        "the caller's to mend"
    );
}

#[tokio::test]
async fn results_beyond_the_bytes_leave_the_oldest_first_and_clones_share() {
    let fixture = Fixture::new();
    let each = LastGood::<u32, String>::OVERHEAD + "from first".len() as u64;
    let chain = cached(&fixture, 2 * each);
    let clone = chain.clone();
    for key in 0..3 {
        chain.call(key, text).await.unwrap();
    }
    assert_eq!(
        clone.call(0, overloaded).await,
        Err(Error::Inner(Kind::Overloaded))
    );
    for key in 1..3 {
        assert!(clone.call(key, overloaded).await.unwrap().age.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_comes_before_the_cache() {
    let fixture = Fixture::new();
    let cache = Cache::new(1_000, Duration::from_secs(600), |_: &u32, text: &String| {
        text.len()
    });
    let waits = |max_wait| {
        let chain = fixture.chain().max_wait(Duration::from_secs(max_wait));
        chain
            .with_classifier(by_kind::<String>)
            .cache(cache.clone())
    };
    waits(0).call(1, text).await.unwrap();
    fixture.breakers.iter().for_each(open);
    let start = tokio::time::Instant::now();
    let answer = waits(14).call(1, text).await.unwrap();
    assert!(answer.age.is_some(), "the wait would be too long");
    assert_eq!(start.elapsed(), Duration::ZERO);
    let time = async {
        for _ in 0..16 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            fixture.clock.advance(Duration::from_secs(1));
        }
    };
    let chain = waits(16);
    let (answer, ()) = tokio::join!(chain.call(1, text), time);
    assert_eq!(answer.unwrap().age, None);
}

#[test]
fn a_cache_shows_neither_keys_nor_results() {
    let cache = Cache::new(
        1_000,
        Duration::from_secs(600),
        |_: &String, text: &String| text.len(),
    );
    let chain = Chain::builder()
        .target(breaker(&patient()).0, "large")
        .cache(cache);
    let call = chain.call("secret-key".to_owned(), async |_| {
        Ok::<_, Kind>("secret-text".to_owned())
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(call).unwrap();
    let shown = format!("{chain:?}");
    assert!(!shown.contains("secret"), "{shown}");
}
