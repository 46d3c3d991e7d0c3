//! `fuseline mock`: the scripted provider as a program.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use fuseline_mock::{Counts, Departure, Mock, Recorded, Reply, Script, Stage};
use serde::Serialize;
use tokio::time::{Instant, interval};

use super::timed::{clock, write_json};

/// How often the mock's memory is looked into.
const LOOK: Duration = Duration::from_millis(50);
/// Longer names are cut.
const NAME: usize = 60;

/// Run a scripted provider, to try out clients and gateways against
///
/// Answers calls in the dialects of OpenAI and Anthropic, plain or streamed, as its script says; without a script
/// always well. Prints a line for each request. Ctrl-C ends it with a summary.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where it listens
    #[arg(long, default_value = "127.0.0.1:8090", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// What it answers, and when [default: always a good answer]
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let script = match &self.script {
            Some(file) => Script::load(file)?,
            None => Reply::ok().into(),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        runtime.block_on(self.serve(script))?;
        Ok(ExitCode::SUCCESS)
    }

    async fn serve(self, script: Script) -> anyhow::Result<()> {
        let mock = Mock::start_at(self.listen, script).await.with_context(|| {
            let address = self.listen;
            format!("--listen {address}: stop who holds it, or choose another address")
        })?;
        let form = if self.json { Form::Json } else { Form::Text };
        let mut report = Report::new(form, io::stdout());
        report.begin(&mock)?;
        let mut look = interval(LOOK);
        // One for the whole loop: what comes between two of them would be lost.
        let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
        loop {
            tokio::select! {
                _ = look.tick() => report.look(&mock)?,
                interrupted = interrupt.as_mut() => {
                    interrupted?;
                    break;
                }
            }
        }
        report.look(&mock)?;
        report.end(mock.counts())?;
        mock.stop().await;
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Form {
    Text,
    Json,
}

/// What is told.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    Listening {
        url: String,
    },
    Request(Request<'a>),
    Left {
        number: u64,
        answer: &'static str,
    },
    Missed {
        requests: u64,
    },
    Summary {
        hits: u64,
        left: u64,
        replies: &'a BTreeMap<String, u64>,
    },
}

#[derive(Serialize)]
struct Request<'a> {
    number: u64,
    method: &'a str,
    path: &'a str,
    model: Option<String>,
    reply: &'a str,
    hits: u64,
    left: u64,
}

struct Report<W> {
    form: Form,
    out: W,
    started: Instant,
    counts: Counts,
    /// The latest request seen; up to it all are told but those that wait.
    latest: u64,
    waiting: BTreeSet<u64>,
    departed: Option<u64>,
    replies: BTreeMap<String, u64>,
}

impl<W: Write> Report<W> {
    fn new(form: Form, out: W) -> Self {
        Self {
            form,
            out,
            started: Instant::now(),
            counts: Counts::default(),
            latest: 0,
            waiting: BTreeSet::new(),
            departed: None,
            replies: BTreeMap::new(),
        }
    }

    fn begin(&mut self, mock: &Mock) -> io::Result<()> {
        self.tell(Instant::now(), &Event::Listening { url: mock.url() })
    }

    /// Tells what is new.
    fn look(&mut self, mock: &Mock) -> io::Result<()> {
        let counts = mock.counts();
        if counts == self.counts && self.waiting.is_empty() {
            return Ok(());
        }
        self.counts = counts;
        self.requests(&mock.requests())?;
        self.departures(&mock.departures())
    }

    fn requests(&mut self, kept: &[Recorded]) -> io::Result<()> {
        if let Some(first) = kept.first() {
            let requests = first.number.saturating_sub(self.latest + 1);
            if requests > 0 {
                self.tell(first.at, &Event::Missed { requests })?;
            }
            self.waiting.retain(|number| *number >= first.number);
        }
        for request in kept {
            let due = request.number > self.latest || self.waiting.remove(&request.number);
            self.latest = self.latest.max(request.number);
            match &request.reply {
                Some(reply) if due => self.request(request, reply)?,
                None if due => {
                    self.waiting.insert(request.number);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn request(&mut self, request: &Recorded, reply: &str) -> io::Result<()> {
        *self.replies.entry(reply.to_owned()).or_default() += 1;
        // A query may carry a key.
        let path = request.target.split('?').next().unwrap_or_default();
        let event = Event::Request(Request {
            number: request.number,
            method: &request.method,
            path: path.get(..NAME).unwrap_or(path),
            model: request.model.as_deref().map(readable),
            reply,
            hits: self.counts.hits,
            left: self.counts.left,
        });
        self.tell(request.at, &event)
    }

    fn departures(&mut self, kept: &[Departure]) -> io::Result<()> {
        let told = kept
            .iter()
            .rposition(|departure| Some(departure.number) == self.departed);
        for departure in kept.iter().skip(told.map_or(0, |at| at + 1)) {
            self.departed = Some(departure.number);
            self.waiting.remove(&departure.number);
            let answer = if departure.stage == Stage::BeforeHead {
                "not begun"
            } else {
                "under way"
            };
            self.tell(
                departure.at,
                &Event::Left {
                    number: departure.number,
                    answer,
                },
            )?;
        }
        Ok(())
    }

    fn end(&mut self, counts: Counts) -> io::Result<()> {
        let replies = std::mem::take(&mut self.replies);
        let Counts { hits, left, .. } = counts;
        self.tell(
            Instant::now(),
            &Event::Summary {
                hits,
                left,
                replies: &replies,
            },
        )
    }

    fn tell(&mut self, at: Instant, event: &Event<'_>) -> io::Result<()> {
        let at = at.saturating_duration_since(self.started);
        match self.form {
            Form::Json => write_json(&mut self.out, at, event)?,
            Form::Text => writeln!(self.out, "{}", text(&clock(at), event))?,
        }
        self.out.flush()
    }
}

fn text(time: &str, event: &Event<'_>) -> String {
    match event {
        Event::Listening { url } => format!(
            "A scripted provider listens at {url}\n  \
             OpenAI SDK:    base_url = {url}/v1\n  \
             Anthropic SDK: base_url = {url}\n  \
             fuseline.toml: base_url = \"{url}/v1\" with protocol = \"openai\", or \"{url}\" with \"anthropic\"\n\
             Any key will do. Ctrl-C ends it."
        ),
        Event::Request(request) => {
            let Request {
                number,
                method,
                path,
                reply,
                hits,
                left,
                ..
            } = request;
            let model = request.model.as_deref().unwrap_or("-");
            format!(
                "{time}  #{number} {method} {path} {model}: {reply}  [{hits} hits, {left} left]"
            )
        }
        Event::Left { number, answer } => {
            format!("{time}  #{number} the caller left, its answer was {answer}")
        }
        Event::Missed { requests } => {
            format!("{time}  {requests} requests came too fast to be shown")
        }
        Event::Summary {
            hits,
            left,
            replies,
        } => {
            let mut text = format!(
                "\n{hits} requests in {time}; callers who left before their answer was complete: {left}"
            );
            for (reply, count) in *replies {
                text.push_str(&format!("\n  {count:>6}  {reply}"));
            }
            text
        }
    }
}

/// A name that somebody else chose, on one line.
fn readable(name: &str) -> String {
    name.chars()
        .take(NAME)
        .flat_map(char::escape_debug)
        .collect()
}
