//! How commands reach a running gateway: one request to its admin listener, and the answer as JSON.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::net::TcpStream;

use super::source::ConfigFile;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest answer read, in bytes.
const MAX_ANSWER: usize = 64 << 20;

/// Which gateway is meant.
#[derive(Debug, clap::Args)]
pub(super) struct Listener {
    /// The gateway's admin listener [default: the configuration file's admin_listen, else 127.0.0.1:8081]
    #[arg(long, env = "FUSELINE_ADMIN_LISTEN", value_name = "ADDRESS")]
    admin_listen: Option<SocketAddr>,
    /// What that listener asks for [default: the configuration file's admin_token]
    #[arg(
        long,
        env = "FUSELINE_ADMIN_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    admin_token: Option<SecretString>,
    #[command(flatten)]
    file: ConfigFile,
}

/// A gateway that can be asked.
pub(super) struct Admin {
    address: SocketAddr,
    token: Option<SecretString>,
    runtime: tokio::runtime::Runtime,
}

impl Listener {
    /// The gateway meant. Nothing is sent yet.
    pub(super) fn find(self) -> anyhow::Result<Admin> {
        let of_file = match (&self.admin_listen, &self.admin_token) {
            (Some(_), Some(_)) => None,
            _ => self.file.admin(),
        };
        let (listen, token) = of_file.unzip();
        let listen = self.admin_listen.or(listen);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(Admin {
            address: reachable(
                listen.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 8081))),
            ),
            token: self.admin_token.or_else(|| token.flatten()),
            runtime,
        })
    }
}

/// Who listens everywhere is reached from here by loopback.
fn reachable(mut listen: SocketAddr) -> SocketAddr {
    if listen.ip().is_unspecified() {
        listen.set_ip(match listen {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    listen
}

/// A breaker's own path; its name is one segment of it.
pub(super) fn path_of(breaker: &str, action: &str) -> String {
    let mut path = "/breakers/".to_owned();
    for byte in breaker.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                path.push(char::from(byte));
            }
            _ => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path.push_str(action);
    path
}

impl Admin {
    /// Reads something.
    ///
    /// # Errors
    /// The gateway cannot be reached, or refuses; the error says what it said.
    pub(super) fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.ask("GET", path, None)
    }

    /// Commands something.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(super) fn post(&self, path: &str, command: &Value) -> anyhow::Result<Value> {
        self.ask("POST", path, Some(command))
    }

    /// Lets this much time pass.
    pub(super) fn pause(&self, time: Duration) {
        self.runtime
            .block_on(async { tokio::time::sleep(time).await });
    }

    fn ask(&self, method: &str, path: &str, command: Option<&Value>) -> anyhow::Result<Value> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.address.to_string());
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {}", token.expose_secret()));
        }
        let body = command.map(Value::to_string).unwrap_or_default();
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .context("the token cannot be sent as a header")?;
        let exchange = async { tokio::time::timeout(PATIENCE, self.exchange(request)).await };
        let (status, body) = self.runtime.block_on(exchange).with_context(|| {
            format!(
                "the gateway's admin listener at {} says nothing for {PATIENCE:?}",
                self.address
            )
        })??;
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        match (status.is_success(), answer) {
            (true, answer) if !answer.is_null() => Ok(answer),
            (_, answer) => match answer.get("error").and_then(Value::as_str) {
                Some(why) => bail!("{why}"),
                None => bail!(
                    "{} answered {status}, and not as an admin listener does; give its address with --admin-listen",
                    self.address
                ),
            },
        }
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> anyhow::Result<(StatusCode, Bytes)> {
        let stream = TcpStream::connect(self.address).await.with_context(|| {
            format!(
                "no gateway can be reached at {}; start `fuseline serve`, or give its admin listener with --admin-listen",
                self.address
            )
        })?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let answer = async {
            let (head, body) = sender.send_request(request).await?.into_parts();
            let body = Limited::new(body, MAX_ANSWER).collect().await;
            let body = body.map_err(|error| anyhow::anyhow!("the answer broke off: {error}"))?;
            Ok((head.status, body.to_bytes()))
        };
        tokio::pin!(connection);
        tokio::pin!(answer);
        tokio::select! {
            answer = &mut answer => answer,
            _ = &mut connection => answer.await,
        }
    }
}

/// A text as a terminal can show it: what callers put into names must not move its cursor.
pub(super) fn plain(text: &str) -> String {
    text.chars()
        .map(|sign| if sign.is_control() { '\u{fffd}' } else { sign })
        .collect()
}

/// The text at a key; empty where there is none.
pub(super) fn text(value: &Value, key: &str) -> String {
    plain(value.get(key).and_then(Value::as_str).unwrap_or_default())
}

/// A time in milliseconds at a key, as people write it.
pub(super) fn time(value: &Value, key: &str) -> Option<String> {
    let millis = value.get(key).and_then(Value::as_u64)?;
    let seconds = millis / 1_000;
    Some(match seconds {
        0 => format!("{millis}ms"),
        1..60 => format!("{}.{}s", seconds, millis % 1_000 / 100),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3_600),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_one_segment_and_texts_hold_no_control_signs() {
        assert_eq!(
            path_of("a/gpt-5 ü#?", "/reset"),
            "/breakers/a%2Fgpt-5%20%C3%BC%23%3F/reset"
        );
        assert_eq!(plain("a\x1b[2J\n"), "a\u{fffd}[2J\u{fffd}");
    }

    #[test]
    fn times_are_short() {
        for (millis, shown) in [
            (7, "7ms"),
            (12_340, "12.3s"),
            (61_000, "1m01s"),
            (3_720_000, "1h02m"),
            (90_000_000, "1d01h"),
        ] {
            assert_eq!(time(&json!({ "t": millis }), "t").unwrap(), shown);
        }
        assert_eq!(time(&json!({ "t": null }), "t"), None);
    }
}
