//! A `fuseline serve` that keeps its state, and can be killed at any moment.

use std::io::{self, BufRead as _, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use serde_json::Value;

use crate::support::signal;

/// A running program, and what it logs.
pub(crate) struct Serving {
    child: Child,
    pub(crate) addr: SocketAddr,
    pub(crate) admin: SocketAddr,
    /// What it logged before it served.
    pub(crate) first: Vec<Value>,
    log: Option<JoinHandle<Vec<Value>>>,
}

impl Serving {
    /// Starts it in this folder, where `fuseline.toml` stands.
    pub(crate) fn start(folder: &Path) -> Self {
        Self::spawn(folder, &mut Command::new(env!("CARGO_BIN_EXE_fuseline"))).unwrap()
    }

    /// Starts it as another user; fails where it is installed so that he cannot run it.
    pub(crate) fn start_as(user: u32, folder: &Path) -> io::Result<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fuseline"));
        Self::spawn(folder, command.uid(user))
    }

    fn spawn(folder: &Path, command: &mut Command) -> io::Result<Self> {
        let mut child = command
            .current_dir(folder)
            .env_clear()
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--admin-listen",
                "127.0.0.1:0",
            ])
            .args(["--log", "debug"])
            .stdout(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut first = Vec::new();
        let serving = loop {
            let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            if line["message"] == "serving" {
                break line;
            }
            first.push(line);
        };
        // A line that the end cuts short is no line.
        let rest = move || {
            let lines = lines.map_while(Result::ok);
            lines
                .filter_map(|line| serde_json::from_str(&line).ok())
                .collect()
        };
        let addr = |key: &str| serving[key].as_str().unwrap().parse().unwrap();
        Ok(Self {
            child,
            addr: addr("listen"),
            admin: addr("admin_listen"),
            first,
            log: Some(std::thread::spawn(rest)),
        })
    }

    /// `kill -9`. Gives back what it logged until then, maybe without the last few milliseconds.
    pub(crate) fn kill(mut self) -> Vec<Value> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.log.take().unwrap().join().unwrap()
    }

    /// SIGTERM, as an operator ends it. Gives back all that it logged.
    pub(crate) fn stop(mut self) -> Vec<Value> {
        signal(self.child.id(), "TERM");
        assert!(self.child.wait().unwrap().success());
        self.log.take().unwrap().join().unwrap()
    }

    /// SIGHUP.
    pub(crate) fn hang_up(&self) {
        signal(self.child.id(), "HUP");
    }

    /// What it logged of its state before it served.
    pub(crate) fn told(&self) -> Vec<String> {
        let about = self.first.iter().filter(|line| line["level"] == "WARN");
        about.map(Value::to_string).collect()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
