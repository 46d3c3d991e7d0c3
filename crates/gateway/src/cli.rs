//! The command line: which subcommands there are, and what they share.

mod admin;
mod check;
mod classify;
mod config;
mod demo;
mod drill;
mod history;
mod mock;
mod operate;
mod progress;
mod reload;
mod replay;
mod serve;
mod source;
mod status;
mod timed;
mod tune;
mod why;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A circuit breaker for LLM calls: stops calling a provider that fails, serves from another, and comes back with care.
#[derive(Debug, Parser)]
#[command(name = "fuseline", version, propagate_version = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Args),
    Check(check::Args),
    Status(status::Args),
    Why(why::Args),
    Force(operate::Force),
    Release(operate::Release),
    Reset(operate::Reset),
    Reload(reload::Args),
    Config(config::Args),
    Classify(classify::Args),
    History(history::Args),
    Replay(replay::Args),
    Tune(tune::Args),
    Drill(drill::Args),
    Mock(mock::Args),
    Demo(demo::Args),
}

impl Cli {
    /// Does what the command line says. 0 is success, 1 a failure that was told on standard error, 2 input that could
    /// not be read; wrong usage never comes here: clap tells it and exits with 2.
    pub fn run(self) -> ExitCode {
        let done = match self.command {
            Command::Serve(args) => args.run(),
            Command::Check(args) => args.run(),
            Command::Status(args) => args.run(),
            Command::Why(args) => args.run(),
            Command::Force(args) => args.run(),
            Command::Release(args) => args.run(),
            Command::Reset(args) => args.run(),
            Command::Reload(args) => args.run(),
            Command::Config(args) => args.run(),
            Command::Classify(args) => args.run(),
            Command::History(args) => args.run(),
            Command::Replay(args) => args.run(),
            Command::Tune(args) => args.run(),
            Command::Drill(args) => args.run(),
            Command::Mock(args) => args.run(),
            Command::Demo(args) => args.run(),
        };
        done.unwrap_or_else(|error| {
            // Whoever closed standard error does not want to know.
            let _told = writeln!(io::stderr().lock(), "fuseline: {error:#}");
            ExitCode::FAILURE
        })
    }
}

/// What was asked could not be answered.
fn unanswered(error: &anyhow::Error) -> anyhow::Result<ExitCode> {
    writeln!(io::stderr().lock(), "fuseline: {error:#}")?;
    Ok(ExitCode::from(2))
}
