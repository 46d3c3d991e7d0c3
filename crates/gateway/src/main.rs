//! The `fuseline` program.

use std::process::ExitCode;

use clap::Parser as _;
use fuseline_gateway::cli::Cli;
use mimalloc::MiMalloc;

/// A call makes and frees some hundred small things, often on different threads: the system's allocator takes a tenth of
/// a call's time for that.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    Cli::parse().run()
}
