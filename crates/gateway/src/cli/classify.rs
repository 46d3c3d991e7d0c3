//! `fuseline classify`: what an answer means, and on what evidence.

mod exchange;
mod lines;
mod told;
mod transcript;

use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::Context as _;
use fuseline_llm::{Framing, Operation, Transcript};

use self::exchange::{Exchange, Format, Received, Transport};
use self::told::{Json, text};
use self::transcript::Listener;
use super::source::ConfigFile;
use crate::config::{Config, Severity};

/// Most of a body, and of a line, that is looked at: 16 MiB.
const MOST: usize = 16 << 20;
const CHUNK: usize = 64 << 10;
const UNREADABLE: u8 = 2;

const EXAMPLE: &str = "\
Examples:
  echo '{\"error\": {\"code\": \"insufficient_quota\"}}' |
    fuseline classify --provider openai --status 429 --header 'retry-after: 20'
  fuseline classify --provider groq --transport connect_timeout
  fuseline classify --jsonl < recorded.jsonl";

/// Tell what a provider's answer means: verdict, evidence, and what Fuseline would do
///
/// Reads the body from standard input, at most 16 MiB of it; a stream's events, of any length. The rules of the
/// configuration are asked first, then those that ship; a provider without rules of its own is judged by the common ones.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Args {
    /// Whose answer it is, such as openai, anthropic, gemini, bedrock, groq
    #[arg(long, short, default_value = "", hide_default_value = true)]
    provider: String,
    /// The HTTP status
    #[arg(
        long,
        short,
        required_unless_present_any = ["transport", "jsonl"],
        value_parser = clap::value_parser!(u16).range(100..=999)
    )]
    status: Option<u16>,
    /// A header of the answer; may be given several times
    #[arg(long, short = 'H', value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// How the exchange ended [default: eof]
    #[arg(long, value_enum, hide_default_value = true)]
    transport: Option<Transport>,
    /// What was asked for: `create` is an answer of a model, `other` all else
    #[arg(long, value_enum, default_value_t = Asked::Create)]
    operation: Asked,
    /// The body is a stream [default: as the content-type of a 2xx says; the format too]
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, value_name = "FORMAT")]
    stream: Option<Option<Format>>,
    /// What time it is, for hints that are dates, such as 2026-11-30T12:00:00Z [default: now]
    #[arg(long, value_parser = exchange::time, value_name = "TIME")]
    now: Option<SystemTime>,
    /// Read one recorded answer a line and print one JSON verdict a line
    ///
    /// Keys: id, provider, status, headers, body; stream (a list of chunks) and stream_format (sse, ndjson, json-array,
    /// aws-eventstream-decoded); transport; now. Others are ignored. A line that cannot be read is told on standard
    /// error, the others are judged, and the exit status is 2.
    #[arg(long, conflicts_with_all = ["provider", "status", "header", "transport", "stream", "json", "operation"])]
    jsonl: bool,
    /// Print one JSON object instead of lines
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    file: ConfigFile,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Asked {
    Create,
    Other,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let report = self.file.load_without_secrets();
        let Some(config) = report.config else {
            let mut err = io::stderr().lock();
            let findings = report.findings.iter();
            for mistake in findings.filter(|finding| finding.severity == Severity::Mistake) {
                writeln!(err, "{mistake}")?;
            }
            return Ok(ExitCode::FAILURE);
        };
        let now = self.now.unwrap_or_else(wall);
        let done = if self.jsonl {
            let (mut input, mut out) = (io::stdin().lock(), io::stdout().lock());
            lines::judge(&mut input, &mut out, &config.classifier(), now)
        } else {
            self.one(&config, now)
        };
        match done {
            Ok(code) => Ok(code),
            // Whoever reads the verdicts has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
            Err(error) => Err(error).context("cannot read the answer, or write the verdict"),
        }
    }

    fn one(self, config: &Config, now: SystemTime) -> io::Result<ExitCode> {
        let Some(headers) = headers(&self.header) else {
            writeln!(
                io::stderr().lock(),
                "fuseline: --header: is no header; write it as \"retry-after: 20\""
            )?;
            return Ok(ExitCode::from(UNREADABLE));
        };
        let exchange = Exchange {
            body: self.body(&headers)?,
            provider: self.provider.to_ascii_lowercase(),
            operation: match self.operation {
                Asked::Create => Operation::Create,
                Asked::Other => Operation::Other,
            },
            status: self.status,
            headers,
            transport: self.transport.unwrap_or(Transport::Eof),
        };
        if !exchange.is_told() {
            writeln!(
                io::stderr().lock(),
                "fuseline: --transport eof: is the end of an answer; give its --status"
            )?;
            return Ok(ExitCode::from(UNREADABLE));
        }
        let verdict = exchange.judge(&config.classifier(), now);
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer(&mut out, &Json::of_one(&verdict))?;
            writeln!(out)?;
        } else {
            let policy = config.policy(&exchange.provider, None);
            write!(out, "{}", text(&verdict, &policy))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn body(&self, headers: &[(String, String)]) -> io::Result<Received> {
        if self.status.is_none() {
            return Ok(Received::Whole(Vec::new()));
        }
        let input = io::stdin().lock();
        if input.is_terminal() {
            writeln!(io::stderr().lock(), "Type the body; Ctrl-D ends it.")?;
        }
        match self.framing(headers) {
            Some(framing) => Ok(Received::Stream(listen(input, framing)?)),
            None => whole(input),
        }
    }

    /// How the body's events are told apart; none where it is one body.
    fn framing(&self, headers: &[(String, String)]) -> Option<Framing> {
        let announced = || {
            let is_type = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("content-type");
            let (_, content_type) = headers.iter().find(is_type)?;
            Framing::of_content_type(content_type)
        };
        match self.stream {
            Some(Some(format)) => Some(format.framing()),
            Some(None) => Some(announced().unwrap_or(Framing::Sse)),
            // Without a word that it is a stream, JSON is one body, and so is what came with an error.
            None if self
                .status
                .is_some_and(|status| (200..300).contains(&status)) =>
            {
                announced().filter(|framing| *framing != Framing::JsonArray)
            }
            None => None,
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "an edge: hints that are dates are judged by the time of the command"
)]
fn wall() -> SystemTime {
    SystemTime::now()
}

/// None if one of them is no header. Its text is not repeated: it may be a secret.
fn headers(written: &[String]) -> Option<Vec<(String, String)>> {
    let header = |text: &String| {
        let (name, value) = text.split_once(':')?;
        let name = name.trim();
        (!name.is_empty()).then(|| (name.to_owned(), value.trim().to_owned()))
    };
    written.iter().map(header).collect()
}

fn whole(input: impl io::Read) -> io::Result<Received> {
    let mut body = Vec::new();
    input.take(MOST as u64 + 1).read_to_end(&mut body)?;
    if body.len() <= MOST {
        return Ok(Received::Whole(body));
    }
    body.truncate(MOST);
    Ok(Received::Cut(body))
}

fn listen(mut input: impl io::Read, framing: Framing) -> io::Result<Transcript> {
    let mut listener = Listener::new(framing);
    let mut chunk = vec![0; CHUNK];
    loop {
        match input.read(&mut chunk)? {
            0 => return Ok(listener.end()),
            read => listener.take(chunk.get(..read).unwrap_or_default()),
        }
    }
}
