//! `fuseline serve`: runs the gateway until it is told to stop.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use super::source::Source;
use crate::config::{Config, Severity};
use crate::log;
use crate::{Crew, Gateway};

/// Run the gateway
///
/// Without a configuration file every provider that Fuseline knows is served under its name, with the caller's own
/// key: point an OpenAI SDK's base_url at http://127.0.0.1:8080/openai/v1, an Anthropic SDK's at
/// http://127.0.0.1:8080/anthropic. Logs go to standard output: for people at a
/// terminal, else as JSON lines. Ctrl-C drains; a second one stops at once. SIGHUP reads the configuration anew.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let report = self.source.load();
        let Some(config) = report.config else {
            let mut err = io::stderr().lock();
            for finding in &report.findings {
                writeln!(err, "{finding}")?;
            }
            return Ok(ExitCode::FAILURE);
        };
        let _written = log::to_stdout(config.log, config.log_format)?;
        for note in report
            .findings
            .iter()
            .filter(|finding| finding.severity == Severity::Note)
        {
            tracing::warn!("{note}");
        }
        let crew = Crew::start()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(serve(crew, config, self.source))?;
        Ok(ExitCode::SUCCESS)
    }
}

async fn serve(crew: Crew, config: Config, source: Source) -> anyhow::Result<()> {
    let (mut interrupt, mut terminate, mut hang_up) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
        signal(SignalKind::hangup())?,
    );
    let pass_through = config.pass_through;
    let source = source.pinned();
    let read = move |in_force: &Config| source.load_after(in_force);
    let gateway = Gateway::start_with(crew, config, read).await?;
    greet(&gateway, pass_through);
    let mut stop = async || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    let reload = async {
        while hang_up.recv().await.is_some() {
            // What came of it is in the log.
            drop(gateway.reload().await);
        }
    };
    tokio::select! {
        () = stop() => {}
        // No more signals of the kind: the others may still come.
        () = reload => stop().await,
    }
    tokio::select! {
        () = gateway.shutdown() => {}
        () = stop() => tracing::warn!("stopped before the drain was over"),
    }
    Ok(())
}

/// Tells a person at a terminal where to point an SDK.
fn greet(gateway: &Gateway, pass_through: bool) {
    let mut err = io::stderr().lock();
    if !err.is_terminal() {
        return;
    }
    let (addr, admin) = (gateway.addr(), gateway.admin_addr());
    let (openai, anthropic) = if pass_through {
        ("/openai/v1", "/anthropic")
    } else {
        ("/v1", "")
    };
    // Whoever closed the terminal does not want to know.
    let _told = writeln!(
        err,
        "OpenAI SDK:    base_url = http://{addr}{openai}\nAnthropic SDK: base_url = http://{addr}{anthropic}\n\
         breakers:      http://{admin}/breakers"
    );
}
