//! `gateways`: the program beside what else stands before providers, each on one core, in one run.
//!
//! All take turns in each round, so that a noisy minute hits them alike; the tables show medians over the rounds. What a call
//! takes longer than one without a proxy is told from a turn of both right after each other, at the same fixed rate.

mod peers;
mod table;

use anyhow::{Context as _, Result, ensure};
use tokio::time::{Duration, sleep};

use crate::load::{Load, Post, wrk_of};
use crate::pace::{Waited, ask, first_event, idle, pace};
use crate::process::Server;
use peers::{EVENTS, Peer, Providers, Shape};

const CONNECTIONS: u32 = 64;
/// Calls a second of the open loop; whoever cannot carry twice as many has a rate of his own.
const RATE: u32 = 2_000;
const IDLE: usize = 1_000;
/// How long whoever answers little is loaded, for enough answers.
const SLOW_SECONDS: u32 = 8;

/// How long it all takes.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    rounds: usize,
    seconds: u32,
}

impl Effort {
    /// Some seven minutes.
    pub(crate) const FULL: Self = Self {
        rounds: 3,
        seconds: 3,
    };
    /// For a first impression.
    pub(crate) const QUICK: Self = Self {
        rounds: 1,
        seconds: 1,
    };
}

/// Prints the tables.
pub(crate) async fn measure(effort: Effort) -> Result<()> {
    let providers = Providers::start().await?;
    let mut rows = vec![Row::new(None, "no proxy".into())];
    for peer in Peer::ALL {
        let mut row = Row::new(Some(peer), peer.name().await);
        match row.start(peer, &providers).await {
            Ok(server) => row.server = Some(server),
            Err(error) => row.out = Some(format!("{error:#}")),
        }
        rows.push(row);
    }
    for _ in 0..effort.rounds {
        for shape in [Shape::Plain, Shape::Stream] {
            for row in &mut rows {
                row.take_turn(shape, &providers, effort.seconds).await?;
            }
        }
    }
    table::print(&rows);
    for row in rows {
        row.stop().await?;
    }
    providers.stop().await
}

/// What is measured of one proxy, or of none.
struct Row {
    peer: Option<Peer>,
    name: String,
    server: Option<Server>,
    /// Why it is not measured.
    out: Option<String>,
    idle_bytes: Option<u64>,
    plain: Taken,
    stream: Taken,
}

/// By round.
#[derive(Default)]
struct Taken {
    loads: Vec<Load>,
    cpu_ms_per_1000: Vec<f64>,
    /// The share of its core that it had.
    busy: Vec<f64>,
    resident: Vec<f64>,
    rate: Option<u32>,
    /// Beyond those without a proxy; without a proxy the times themselves.
    added_p50_us: Vec<f64>,
    added_p99_us: Vec<f64>,
}

impl Row {
    fn new(peer: Option<Peer>, name: String) -> Self {
        Self {
            peer,
            name,
            server: None,
            out: None,
            idle_bytes: None,
            plain: Taken::default(),
            stream: Taken::default(),
        }
    }

    /// A server that is known to do what is measured.
    async fn start(&mut self, peer: Peer, providers: &Providers) -> Result<Server> {
        let server = peer.start(providers).await?;
        let post = |shape| Peer::post(self.peer, shape, providers);
        if let Err(error) = check(&server, &post).await {
            server.stop().await?;
            return Err(error);
        }
        if peer.keeps_idle_ones() {
            let connections = idle(&server.address, &post(Shape::Plain), IDLE).await?;
            sleep(Duration::from_secs(1)).await;
            self.idle_bytes = Some(server.resident()?);
            drop(connections);
        }
        Ok(server)
    }

    /// Whoever fails in it is out, and the others go on.
    async fn take_turn(&mut self, shape: Shape, providers: &Providers, seconds: u32) -> Result<()> {
        let post = Peer::post(self.peer, shape, providers);
        let taken = match shape {
            Shape::Plain => &mut self.plain,
            Shape::Stream | Shape::Open => &mut self.stream,
        };
        let turn = match (&self.server, self.peer) {
            (Some(server), _) => taken.turn(server, &post, shape, providers, seconds).await,
            (None, None) => taken.turn_of_none(&post, providers, seconds).await,
            (None, Some(_)) => return Ok(()),
        };
        if let Err(error) = turn {
            self.out = Some(format!("{error:#}"));
            if let Some(server) = self.server.take() {
                server.stop().await?;
            }
        }
        Ok(())
    }

    async fn stop(self) -> Result<()> {
        match self.server {
            Some(server) => server.stop().await,
            None => Ok(()),
        }
    }
}

impl Taken {
    async fn turn(
        &mut self,
        server: &Server,
        post: &Post,
        shape: Shape,
        providers: &Providers,
        seconds: u32,
    ) -> Result<()> {
        let warm = wrk_of(post, &server.address, CONNECTIONS, 1).await?;
        let seconds = if warm.requests < 4.0 * f64::from(CONNECTIONS) {
            SLOW_SECONDS
        } else {
            seconds
        };
        settle(server).await?;
        let before = server.cpu_seconds()?;
        let load = wrk_of(post, &server.address, CONNECTIONS, seconds).await?;
        let cpu = server.cpu_seconds()? - before;
        self.resident.push(server.resident()? as f64);
        self.loads.push(load);
        self.cpu_ms_per_1000.push(cpu * 1e6 / load.requests);
        self.busy.push(cpu * load.per_second / load.requests);
        let rate = *self.rate.get_or_insert_with(|| rate_for(load.per_second));
        settle(server).await?;
        let direct = Peer::post(None, shape, providers);
        let direct = pace(providers.address(), &direct, rate, seconds).await?;
        let own = pace(&server.address, post, rate, seconds).await?;
        self.waited(own, direct);
        Ok(())
    }

    async fn turn_of_none(
        &mut self,
        post: &Post,
        providers: &Providers,
        seconds: u32,
    ) -> Result<()> {
        let address = providers.address();
        let load = wrk_of(post, address, CONNECTIONS, seconds).await?;
        self.loads.push(load);
        self.rate = Some(RATE);
        let own = pace(address, post, RATE, seconds).await?;
        self.waited(
            own,
            Waited {
                p50_us: 0.0,
                p99_us: 0.0,
            },
        );
        Ok(())
    }

    fn waited(&mut self, own: Waited, direct: Waited) {
        self.added_p50_us.push(own.p50_us - direct.p50_us);
        self.added_p99_us.push(own.p99_us - direct.p99_us);
    }
}

/// Until it has done with what its callers no longer wait for, or for 10 s.
async fn settle(server: &Server) -> Result<()> {
    let tenth = Duration::from_millis(100);
    for _ in 0..100 {
        let before = server.cpu_seconds()?;
        sleep(tenth).await;
        if server.cpu_seconds()? - before < tenth.as_secs_f64() / 4.0 {
            break;
        }
    }
    Ok(())
}

/// That answers come whole, and events at once.
async fn check(server: &Server, post: &impl Fn(Shape) -> Post) -> Result<()> {
    let address = &server.address;
    let (media, body) = ask(address, &post(Shape::Plain))
        .await
        .context("a plain call")?;
    ensure!(
        media.starts_with("application/json") && body.contains("chat.completion"),
        "a plain call is answered in {media} with {body}"
    );
    let (media, body) = ask(address, &post(Shape::Stream))
        .await
        .context("a stream")?;
    let words = body.matches("word ").count();
    ensure!(
        media.starts_with("text/event-stream") && words == EVENTS - 1 && body.contains("[DONE]"),
        "a stream is answered in {media} with {body}"
    );
    first_event(address, &post(Shape::Open))
        .await
        .context("a stream that stays open")
}

/// The rate for all, or half of what it carries, as a round number.
fn rate_for(carried: f64) -> u32 {
    let half = carried / 2.0;
    if half >= f64::from(RATE) {
        return RATE;
    }
    let step = 10_f64.powf(half.log10().floor());
    ((half / step).floor() * step).max(1.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_carry_twice_the_rate_has_a_round_one_of_half_of_what_it_carries() {
        let rates = [40_000.0, 4_000.0, 3_999.0, 250.0, 19.0, 0.5].map(rate_for);
        assert_eq!(rates, [RATE, RATE, 1_000, 100, 9, 1]);
    }
}
