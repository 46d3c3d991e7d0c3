//! A `redis-server` for tests, alone or as a cluster.

mod cluster;

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub(crate) use cluster::Cluster;

/// A `redis-server` on a free port, ended with the test.
pub(crate) struct Redis {
    pub(crate) child: Child,
    pub(crate) port: u16,
    folder: tempfile::TempDir,
    more: Vec<String>,
}

impl Redis {
    pub(crate) fn start(more: &[&str]) -> Self {
        let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
        let more: Vec<String> = more.iter().map(|&word| word.to_owned()).collect();
        Self {
            child: run(Self::command(port, folder.path()).args(&more)),
            port,
            folder,
            more,
        }
    }

    /// `kill -9`, and once more with what it has written down.
    pub(crate) fn kill_and_start_again(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = run(Self::command(self.port, self.folder.path()).args(&self.more));
    }

    fn command(port: u16, folder: &Path) -> Command {
        let mut command = Command::new("redis-server");
        command
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .current_dir(folder)
            .stdout(Stdio::piped());
        command
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/3", self.port)
    }

    pub(crate) fn ask(&self, words: &[&str]) -> String {
        let mut command = Command::new("redis-cli");
        command.args(["-p", &self.port.to_string(), "-n", "3"]);
        let output = command.args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
}

fn run(command: &mut Command) -> Child {
    let mut child = command
        .spawn()
        .expect("redis-server is installed by scripts/setup.sh");
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines
        .map_while(Result::ok)
        .any(|line| line.contains("Ready to accept connections"));
    assert!(ready, "redis-server does not start");
    child
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nobody has.
fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().port()
}
