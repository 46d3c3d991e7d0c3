//! Chains: who is asked, in which order, and what comes back.

use std::sync::Mutex;
use std::time::Duration;

use fuseline::{Breaker, Chain, Clock, Error, Kind, Outcome, State};

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
        Chain::new(first, "first").then(second, "second")
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
