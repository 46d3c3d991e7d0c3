//! A `redis-server` that can be frozen, killed and started again on its port, and a relay that makes it slow.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::spawn;

pub(crate) struct Redis {
    child: Child,
    port: u16,
    more: Vec<String>,
    folder: tempfile::TempDir,
}

impl Redis {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// With these arguments beside the usual ones.
    pub(super) fn start_with(more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let more: Vec<_> = more.iter().map(|word| (*word).to_owned()).collect();
        Self {
            child: run(port, &more, &folder),
            port,
            more,
            folder,
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
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
        self.child = run(self.port, &self.more, &self.folder);
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

    pub(crate) fn ask(&self, words: &[&str]) -> String {
        let mut command = Command::new("redis-cli");
        command.args(["-p", &self.port.to_string()]).args(words);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

pub(super) fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().port()
}

fn run(port: u16, more: &[String], folder: &tempfile::TempDir) -> Child {
    let mut child = Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .args(["--save", "", "--appendonly", "no"])
        .args(more)
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("redis-server is installed by scripts/setup.sh");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines
        .by_ref()
        .map_while(Result::ok)
        .any(|line| line.contains("Ready to accept connections"));
    assert!(ready, "redis-server does not start");
    // Whoever writes to a pipe that nobody reads stands still, or ends.
    std::thread::spawn(move || lines.for_each(drop));
    child
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Stands before a Redis, and lets its answers wait.
pub(super) struct Relay {
    port: u16,
    delay_ms: Arc<AtomicU64>,
}

impl Relay {
    pub(super) async fn before(redis: &Redis) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let delay_ms = Arc::<AtomicU64>::default();
        let (delay, to) = (Arc::clone(&delay_ms), redis.port);
        spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let far = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
                let (near_from, near_to) = near.into_split();
                let (far_from, far_to) = far.into_split();
                spawn(pass_on(near_from, far_to, Arc::default()));
                spawn(pass_on(far_from, near_to, Arc::clone(&delay)));
            }
        });
        Self { port, delay_ms }
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(super) fn delay(&self, by: Duration) {
        let ms = u64::try_from(by.as_millis()).unwrap();
        self.delay_ms.store(ms, Ordering::Relaxed);
    }
}

async fn pass_on(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    delay_ms: Arc<AtomicU64>,
) {
    let mut bytes = Vec::with_capacity(16 << 10);
    while from.read_buf(&mut bytes).await.is_ok_and(|read| read > 0) {
        tokio::time::sleep(Duration::from_millis(delay_ms.load(Ordering::Relaxed))).await;
        if to.write_all(&bytes).await.is_err() {
            return;
        }
        bytes.clear();
    }
}
