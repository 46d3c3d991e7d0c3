//! A `redis-server` that can be frozen, killed and started again on its port.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

pub(crate) struct Redis {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Redis {
    pub(crate) fn start() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let folder = tempfile::tempdir().unwrap();
        Self {
            child: run(port, &folder),
            port,
            folder,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// `kill -9`, and everything is forgotten.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn start_again(&mut self) {
        self.child = run(self.port, &self.folder);
    }

    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let done = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(done.success());
    }

    pub(crate) fn ask(&self, words: &[&str]) {
        let mut command = Command::new("redis-cli");
        command.args(["-p", &self.port.to_string()]).args(words);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

fn run(port: u16, folder: &tempfile::TempDir) -> Child {
    let mut child = Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .args(["--save", "", "--appendonly", "no"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
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
