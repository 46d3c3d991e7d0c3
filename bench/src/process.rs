//! Child processes: started, found, weighed and stopped.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::shipped::program;

const SILENT: &str = "log = \"off\"\n";

/// How often a program is looked for, 5 s each time: there are some that read much before they listen.
const ATTEMPTS: usize = 24;

/// The cores that a server may run on.
#[derive(Clone, Copy)]
pub(crate) enum Cores {
    All,
    Only(&'static str),
}

impl Cores {
    /// This program, there: what counts the cores counts these.
    pub(crate) fn command(self, program: impl AsRef<OsStr>) -> Command {
        match self {
            Self::All => Command::new(program),
            Self::Only(core) => {
                let mut command = Command::new("taskset");
                command.args(["-c", core]).arg(program);
                command
            }
        }
    }

    const fn workers(self) -> u8 {
        match self {
            Self::All => 2,
            Self::Only(_) => 1,
        }
    }
}

/// One server in its own process (nginx: several). Dropping it ends it.
pub(crate) struct Server {
    pub(crate) address: String,
    /// Of a gateway: where its metrics are.
    pub(crate) admin: String,
    child: Child,
    directory: Option<PathBuf>,
    is_nginx: bool,
}

impl Server {
    /// This program as `serve NAME`.
    pub(crate) async fn own(name: &str, upstream: &str) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["serve", name])
            .env("UPSTREAM", upstream)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = child.stdout.take().context("the child has no stdout")?;
        let address = BufReader::new(stdout)
            .lines()
            .next_line()
            .await?
            .context("the child ended early")?;
        Ok(Self {
            address,
            admin: String::new(),
            child,
            directory: None,
            is_nginx: false,
        })
    }

    /// nginx with these contents of its `server` block, under a directory of its own.
    pub(crate) async fn nginx(server: &str, upstream: &str) -> Result<Self> {
        Self::nginx_on(Cores::All, server, upstream).await
    }

    /// The same with a worker for each of these cores.
    pub(crate) async fn nginx_on(cores: Cores, server: &str, upstream: &str) -> Result<Self> {
        let port = free_port()?;
        let directory = std::env::temp_dir().join(format!("fuseline-bench-nginx-{port}"));
        fs::create_dir_all(&directory)?;
        let config = directory.join("nginx.conf");
        fs::write(
            &config,
            nginx_config(cores.workers(), port, server, upstream),
        )?;
        let child = cores
            .command("nginx")
            .arg("-p")
            .arg(&directory)
            .arg("-c")
            .arg(&config)
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("nginx does not start; is the package installed?")?;
        let address = format!("127.0.0.1:{port}");
        wait_for(&address).await?;
        Ok(Self {
            address,
            admin: String::new(),
            child,
            directory: Some(directory),
            is_nginx: true,
        })
    }

    /// The gateway's program under this configuration. What it logs goes to a file in a directory of its own.
    pub(crate) async fn gateway(config: &str) -> Result<Self> {
        Self::gateway_on(Cores::All, config).await
    }

    /// The same on these cores.
    pub(crate) async fn gateway_on(cores: Cores, config: &str) -> Result<Self> {
        let gateway = Self::start_gateway(cores, config)?;
        wait_for(&gateway.address).await?;
        Ok(gateway)
    }

    fn start_gateway(cores: Cores, config: &str) -> Result<Self> {
        let (listen, admin) = (free_port()?, free_port()?);
        let (address, admin) = (format!("127.0.0.1:{listen}"), format!("127.0.0.1:{admin}"));
        let directory = std::env::temp_dir().join(format!("fuseline-bench-program-{listen}"));
        fs::create_dir_all(&directory)?;
        fs::write(directory.join("fuseline.toml"), config)?;
        let child = cores
            .command(program()?)
            .args(["serve", "--listen", &address, "--admin-listen", &admin])
            .args(["--log-format", "json"])
            .current_dir(&directory)
            .stdout(fs::File::create(directory.join("log"))?)
            .kill_on_drop(true)
            .spawn()
            .context("fuseline does not start; bench/run builds it")?;
        Ok(Self {
            address,
            admin,
            child,
            directory: Some(directory),
            is_nginx: false,
        })
    }

    /// The gateway in front of this provider, under its defaults, without state and without a line for each call.
    pub(crate) async fn plain_gateway(provider: &str) -> Result<Self> {
        Self::gateway(&config(SILENT, provider)).await
    }

    /// The same, not yet listening.
    pub(crate) fn starting_gateway(provider: &str) -> Result<Self> {
        Self::start_gateway(Cores::All, &config(SILENT, provider))
    }

    /// Any other program that is to listen there. What it says goes to the file `log` in its directory.
    pub(crate) async fn other(
        mut command: Command,
        address: String,
        directory: PathBuf,
    ) -> Result<Self> {
        let path = directory.join("log");
        let log = fs::File::create(&path)?;
        let mut child = command
            .current_dir(&directory)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        for _ in 0..ATTEMPTS {
            if wait_for(&address).await.is_ok() {
                return Ok(Self {
                    address,
                    admin: String::new(),
                    child,
                    directory: Some(directory),
                    is_nginx: false,
                });
            }
            if let Some(status) = child.try_wait()? {
                bail!("it ended with {status}, see {}", path.display());
            }
        }
        bail!("it does not listen, see {}", path.display())
    }

    /// How much it has logged, in bytes.
    pub(crate) fn logged(&self) -> Result<u64> {
        let directory = self.directory.as_ref().context("it logs nowhere")?;
        Ok(fs::metadata(directory.join("log"))?.len())
    }

    /// Seconds of CPU used so far, user and system, workers included.
    pub(crate) fn cpu_seconds(&self) -> Result<f64> {
        let mut ticks = 0;
        for pid in self.pids() {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
            let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
            ticks += fields
                .split(' ')
                .skip(11)
                .take(2)
                .filter_map(|field| field.parse::<u64>().ok())
                .sum::<u64>();
        }
        Ok(ticks as f64 / 100.0)
    }

    /// Resident memory in bytes, workers included.
    pub(crate) fn resident(&self) -> Result<u64> {
        let mut kilobytes = 0;
        for pid in self.pids() {
            let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("VmRSS:"))
                .unwrap_or("0 kB");
            kilobytes += line
                .trim()
                .trim_end_matches(" kB")
                .parse::<u64>()
                .unwrap_or(0);
        }
        Ok(kilobytes * 1024)
    }

    fn pids(&self) -> Vec<u32> {
        let Some(pid) = self.child.id() else {
            return Vec::new();
        };
        let children =
            fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        std::iter::once(pid)
            .chain(
                children
                    .split_whitespace()
                    .filter_map(|child| child.parse().ok()),
            )
            .collect()
    }

    /// Ends the process and waits for it, so that the next measurement has the machine to itself.
    pub(crate) async fn stop(mut self) -> Result<()> {
        let directory = self.directory.take();
        if let (Some(directory), true) = (&directory, self.is_nginx) {
            // Asked to, the master ends its workers; killed, it would orphan them.
            Command::new("nginx")
                .args(["-s", "stop"])
                .args(paths(directory))
                .stderr(Stdio::null())
                .status()
                .await?;
            self.child.wait().await?;
        } else {
            self.child.kill().await?;
        }
        if let Some(directory) = directory {
            fs::remove_dir_all(directory)?;
        }
        Ok(())
    }
}

/// A gateway's configuration: what it tells, and one provider for all models.
pub(crate) fn config(told: &str, provider: &str) -> String {
    format!(
        "state = \"off\"\n{told}[providers.a]\nprotocol = \"openai\"\nbase_url = \"http://{provider}\"\napi_key = \"key\"\n\
         [[routes]]\nmodel = \"*\"\ntargets = [{{ provider = \"a\" }}]\n"
    )
}

pub(crate) fn free_port() -> Result<u16> {
    let free = std::net::TcpListener::bind("127.0.0.1:0")?;
    Ok(free.local_addr()?.port())
}

/// Until somebody listens there.
pub(crate) async fn wait_for(address: &str) -> Result<()> {
    for _ in 0..250 {
        if tokio::net::TcpStream::connect(address).await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bail!("nobody listens on {address} after 5 s")
}

fn paths(directory: &Path) -> [std::ffi::OsString; 4] {
    [
        "-p".into(),
        directory.into(),
        "-c".into(),
        directory.join("nginx.conf").into(),
    ]
}

fn nginx_config(workers: u8, port: u16, server: &str, upstream: &str) -> String {
    let upstream = if upstream.is_empty() {
        String::new()
    } else {
        format!("upstream provider {{ server {upstream}; keepalive 256; }}")
    };
    format!(
        "user root; daemon off; worker_processes {workers}; worker_rlimit_nofile 16384; pid nginx.pid; error_log stderr crit;
         events {{ worker_connections 8192; }}
         http {{
           access_log off; keepalive_requests 100000000; {upstream}
           client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
           server {{ listen 127.0.0.1:{port} backlog=4096; {server} }}
         }}"
    )
}
