//! The ways to Redis: the addresses of a URL, each by the authorities that may vouch for it, one server or a cluster.

use std::time::Duration;

use redis::cluster::{ClusterClient, ClusterClientBuilder, ClusterConnection, ClusterPipeline};
use redis::{Client, Cmd, ConnectionInfo, ErrorKind, IntoConnectionInfo, Pipeline};
use redis::{RedisError, Script, ServerErrorKind, TlsCertificates, Value};

use crate::fleet::FleetError;

/// How long a connection may take, with TLS.
const CONNECT: Duration = Duration::from_millis(500);
/// How often a node of a cluster may send a command elsewhere, and how long it may be waited for in ms.
const REDIRECTS: u32 = 3;
const WAIT: u64 = 50;
/// Most addresses of one URL.
const MOST: usize = 16;

/// Where the servers are.
pub(crate) struct Ways {
    /// Each address, with the authorities of one's own and with the public ones.
    servers: Vec<Client>,
    /// The server that was there last, or comes next.
    at: usize,
    /// The same as the nodes of a cluster.
    clusters: Vec<ClusterClient>,
    is_cluster: bool,
    /// How long a server may take for an answer.
    answer: Duration,
}

/// A way that is open.
pub(crate) enum Connection {
    One(redis::Connection),
    Cluster(Box<ClusterConnection>),
}

impl Ways {
    /// `authorities` are certificates in PEM, trusted beside the public ones.
    pub(crate) fn new(
        url: &str,
        authorities: Option<&[u8]>,
        answer: Duration,
    ) -> Result<Self, FleetError> {
        let addresses = addresses(url).ok_or(FleetError::Address)?;
        let own = authorities.map(|pem| TlsCertificates {
            client_tls: None,
            root_cert: Some(pem.to_vec()),
        });
        let is_tls = url.starts_with("rediss://");
        let mut ways = Self {
            servers: Vec::new(),
            at: 0,
            clusters: Vec::new(),
            is_cluster: false,
            answer,
        };
        let own = own.filter(|_| is_tls);
        for certificates in own.iter().map(Some).chain([None]) {
            let servers = addresses
                .iter()
                .map(|address| match certificates {
                    Some(own) => Client::build_with_tls(address.clone(), own.clone()),
                    None => Client::open(address.clone()),
                })
                .collect::<Result<Vec<_>, _>>();
            ways.servers
                .extend(servers.map_err(|_| FleetError::Address)?);
            let nodes = ClusterClientBuilder::new(addresses.clone())
                .connection_timeout(CONNECT)
                .response_timeout(answer)
                .retries(REDIRECTS)
                .min_retry_wait(1)
                .max_retry_wait(WAIT);
            let cluster = match certificates {
                Some(own) => nodes.certs(own.clone()).build(),
                None => nodes.build(),
            };
            ways.clusters
                .push(cluster.map_err(|_| FleetError::Address)?);
        }
        Ok(ways)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.servers.len()
    }

    /// The first way that leads there.
    pub(crate) fn connect(&mut self) -> Result<Connection, RedisError> {
        let opened = match self.is_cluster {
            true => self.enter(),
            false => self.reach(),
        };
        // It may be none any more.
        self.is_cluster &= opened.is_ok();
        opened
    }

    /// What was reached is part of a cluster.
    pub(crate) fn enter_cluster(&mut self) {
        self.is_cluster = true;
    }

    /// What was reached is not to be used: a spare, for instance.
    pub(crate) fn turn_away(&mut self) {
        self.at += 1;
    }

    fn reach(&mut self) -> Result<Connection, RedisError> {
        let count = self.count();
        let mut last = None;
        for client in self
            .servers
            .iter()
            .cycle()
            .skip(self.at % count)
            .take(count)
        {
            match self.open(client) {
                Ok(connection) => return Ok(Connection::One(connection)),
                Err(error) => last = Some(error),
            }
            self.at += 1;
        }
        Err(last.unwrap_or_else(nowhere))
    }

    fn enter(&self) -> Result<Connection, RedisError> {
        let mut last = None;
        for client in &self.clusters {
            let opened = client.get_connection().and_then(|connection| {
                connection.set_write_timeout(Some(self.answer))?;
                Ok(connection)
            });
            match opened {
                Ok(connection) => return Ok(Connection::Cluster(Box::new(connection))),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(nowhere))
    }

    fn open(&self, client: &Client) -> Result<redis::Connection, RedisError> {
        let connection = client.get_connection_with_timeout(CONNECT)?;
        connection.set_read_timeout(Some(self.answer))?;
        connection.set_write_timeout(Some(self.answer))?;
        Ok(connection)
    }
}

fn nowhere() -> RedisError {
    RedisError::from((ErrorKind::InvalidClientConfig, "no address"))
}

impl Connection {
    /// All of them in one pipeline. Where that cannot be, one by one: scripts that the server has forgotten are told again,
    /// and keys that have moved to another node are followed there.
    pub(crate) fn carry_out(
        &mut self,
        calls: &[Cmd],
        scripts: &[&Script],
    ) -> Result<Vec<Value>, RedisError> {
        // A pipeline has copies of what it carries, and one call may be long.
        if let [call] = calls {
            return Ok(vec![self.carry_out_one(call, scripts)?]);
        }
        match self.pipeline(calls) {
            Err(error) if is_forgotten(&error) || self.is_elsewhere(&error) => calls
                .iter()
                .map(|call| self.carry_out_one(call, scripts))
                .collect(),
            other => other,
        }
    }

    fn pipeline(&mut self, calls: &[Cmd]) -> Result<Vec<Value>, RedisError> {
        match self {
            Self::One(connection) => {
                let mut pipeline = Pipeline::with_capacity(calls.len());
                for call in calls {
                    pipeline.add_command(call.clone());
                }
                pipeline.query(connection)
            }
            Self::Cluster(connection) => {
                let mut pipeline = ClusterPipeline::with_capacity(calls.len());
                for call in calls {
                    pipeline.add_command(call.clone());
                }
                pipeline.query(connection)
            }
        }
    }

    fn carry_out_one(&mut self, call: &Cmd, scripts: &[&Script]) -> Result<Value, RedisError> {
        let server: &mut dyn redis::ConnectionLike = match self {
            Self::One(connection) => connection,
            Self::Cluster(connection) => connection.as_mut(),
        };
        match call.query(server) {
            Err(error) if is_forgotten(&error) => {
                for script in scripts {
                    script.load(server)?;
                }
                call.query(server)
            }
            other => other,
        }
    }

    fn is_elsewhere(&self, error: &RedisError) -> bool {
        matches!(self, Self::Cluster(_)) && error.is_cluster_error()
    }
}

fn is_forgotten(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// `redis://user:password@one:6379,other:6379/database` is two addresses that have all the rest in common.
fn addresses(url: &str) -> Option<Vec<ConnectionInfo>> {
    let (scheme, rest) = url.split_once("://")?;
    if !matches!(scheme, "redis" | "rediss") {
        return None;
    }
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    let hosts: Vec<&str> = hosts.split(',').collect();
    if hosts.len() > MOST || hosts.iter().any(|host| host.is_empty()) {
        return None;
    }
    let address = |host: &&str| format!("{scheme}://{user}{host}{path}").into_connection_info();
    hosts.iter().map(|host| address(host).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_one_server_or_several() {
        for (url, expected) in [
            ("redis://a", vec!["a:6379"]),
            ("redis://user:p%2Cq@a:1,b:2/3", vec!["a:1", "b:2"]),
            ("rediss://:p@[::1]:7,b", vec!["::1:7", "b:6379"]),
        ] {
            let found = addresses(url).unwrap();
            let shown: Vec<_> = found.iter().map(|one| one.addr().to_string()).collect();
            assert_eq!(shown, expected, "{url}");
        }
        let found = addresses("redis://user:p%2Cq@a:1,b:2/3").unwrap();
        for one in found {
            let settings = one.redis_settings();
            assert_eq!((settings.username(), settings.db()), (Some("user"), 3));
            assert_eq!(settings.password(), Some("p,q"));
        }
        let many = format!("redis://{}", vec!["a"; MOST + 1].join(","));
        for url in [
            "http://a",
            "redis://",
            "redis://a,,b",
            "redis://a:x",
            "a",
            &many,
        ] {
            assert!(addresses(url).is_none(), "{url}");
        }
    }
}
