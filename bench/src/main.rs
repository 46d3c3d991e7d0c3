//! Fuseline's measurements. `bench/run NAME` builds this program and runs one of them.

mod classify;
mod count;
#[cfg(feature = "serving")]
mod gateways;
#[cfg(feature = "serving")]
mod load;
#[cfg(feature = "serving")]
mod observe;
#[cfg(feature = "serving")]
mod pace;
#[cfg(feature = "serving")]
mod process;
#[cfg(feature = "serving")]
mod proxy;
mod quickest;
mod replay;
mod scan;
#[cfg(feature = "serving")]
mod servers;
mod shipped;
#[cfg(feature = "serving")]
mod start;
#[cfg(feature = "serving")]
mod state;
#[cfg(feature = "serving")]
mod stream;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["classify"] => classify::measure(),
        ["count"] => count::check(),
        ["count", "--save"] => count::save(),
        ["count-path", name, times] => count::run(name, times),
        ["replay"] => replay::measure(),
        ["scan"] => scan::measure(),
        #[cfg(feature = "serving")]
        _ => serving(&args),
        #[cfg(not(feature = "serving"))]
        _ => bail!("this measurement needs the feature `serving`"),
    }
}

#[cfg(feature = "serving")]
#[tokio::main(worker_threads = 2)]
async fn serving(args: &[&str]) -> Result<()> {
    match args {
        ["gateways"] => gateways::measure(gateways::Effort::FULL).await,
        ["gateways", "quick"] => gateways::measure(gateways::Effort::QUICK).await,
        ["observe"] => observe::measure(false).await,
        ["observe", "quick"] => observe::measure(true).await,
        ["proxy"] => proxy::measure().await,
        ["start"] => start::measure().await,
        ["state"] => state::measure(state::Effort::FULL).await,
        ["state", "quick"] => state::measure(state::Effort::QUICK).await,
        ["stream"] => stream::measure().await,
        // Started by the measurements themselves, each in its own process so that its CPU and memory can be told apart.
        ["serve", "upstream"] => servers::upstream().await,
        ["serve", name] => servers::bare_proxy(name).await,
        _ => bail!(
            "usage: bench/run classify|count|gateways|hot|observe|proxy|replay|scan|start|state|stream, count --save, or gateways|observe|state quick"
        ),
    }
}
