//! Fuseline's measurements. `bench/run NAME` builds this program and runs one of them.

mod load;
mod process;
mod proxy;
mod replay;
mod servers;

use anyhow::{Result, bail};

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    match (args.next().as_deref(), args.next().as_deref()) {
        (Some("proxy"), None) => proxy::measure().await,
        (Some("replay"), None) => replay::measure(),
        // Started by the measurements themselves, each in its own process so that its CPU and memory can be told apart.
        (Some("serve"), Some("upstream")) => servers::upstream().await,
        (Some("serve"), Some(name)) => servers::bare_proxy(name).await,
        _ => bail!("usage: bench/run proxy|replay"),
    }
}
