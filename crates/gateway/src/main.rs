//! The `fuseline` program.

use std::process::ExitCode;

use clap::Parser as _;
use fuseline_gateway::cli::Cli;

fn main() -> ExitCode {
    Cli::parse().run()
}
