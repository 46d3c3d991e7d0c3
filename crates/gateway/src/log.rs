//! The log: lines as machines read them, and the way they take to standard output.

mod json;
mod sink;

use std::io::{self, IsTerminal as _};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::LogFormat;
pub use json::JsonLines;
pub use sink::{Sink, SinkGuard};

/// From here on this process logs to its standard output: our own lines at the level asked for, other libraries' only where
/// they warn, since theirs may quote headers. What is logged is written before the guard is gone.
pub(crate) fn to_stdout(level: LevelFilter, format: LogFormat) -> io::Result<SinkGuard> {
    let targets = Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_target("fuseline", level);
    let is_terminal = io::stdout().is_terminal();
    let (sink, guard) = Sink::over(io::stdout())?;
    let lines = tracing_subscriber::fmt::layer().with_writer(move || sink.clone());
    // The key `target` is ours: whom a call went to.
    let lines = match format {
        LogFormat::Human => lines
            .with_target(false)
            .with_ansi(is_terminal && wants_colours())
            .boxed(),
        LogFormat::Auto if is_terminal => {
            lines.with_target(false).with_ansi(wants_colours()).boxed()
        }
        LogFormat::Auto | LogFormat::Json => lines.event_format(JsonLines).boxed(),
    };
    tracing_subscriber::registry()
        .with(lines.with_filter(targets))
        .init();
    Ok(guard)
}

/// `NO_COLOR`, as all programs know it.
fn wants_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|said| said.is_empty())
}
