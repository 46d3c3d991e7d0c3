//! `fuseline demo`: an outage and its end in one process, told on the terminal.

mod callers;
mod event;
mod plan;
mod stage;
mod tally;
mod teller;
mod watch;

use std::io;
use std::process::ExitCode;

use plan::Pace;
use teller::{Form, Teller};

/// What a shell expects of a program that was interrupted.
const INTERRUPTED: u8 = 130;

/// Show an outage, and what becomes of it behind Fuseline
///
/// Starts a gateway and two scripted providers on free ports of this machine, sends them steady traffic, breaks the
/// primary and mends it again. Needs no key and no network, and ends by itself. Exits with 0 if every call was
/// answered, nothing reached the primary while its circuit was open, probes came one at a time and it closed again;
/// with 1 if not.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// Seeds the traffic: when calls come, and which of them are streamed
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// The same in 6 seconds instead of 21
    #[arg(long)]
    fast: bool,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let form = if self.json {
            Form::Json
        } else {
            Form::of_stdout()
        };
        let pace = if self.fast { Pace::FAST } else { Pace::SLOW };
        let mut teller = Teller::new(io::stdout(), form);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            tokio::select! {
                interrupted = tokio::signal::ctrl_c() => {
                    interrupted?;
                    Ok(ExitCode::from(INTERRUPTED))
                }
                held = stage::play(pace, self.seed, &mut teller) => {
                    Ok(if held? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
                }
            }
        })
    }
}
