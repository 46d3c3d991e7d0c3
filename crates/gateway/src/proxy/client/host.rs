//! `Host`: who is reached under one address, and the connections to him that are kept.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use http::Uri;
use http::header::HeaderValue;
use http::uri::{PathAndQuery, Scheme};
use hyper::rt::Executor as _;
use hyper_util::rt::TokioExecutor;
use tokio::time::Instant;

use super::line::Line;
use crate::config::PoolSpec;
use crate::crew;

/// One authority.
pub(super) struct Host {
    name: HeaderValue,
    root: Uri,
    settings: PoolSpec,
    /// Of each thread of the crew, and of all others together.
    crew: Box<[Mutex<Kept>]>,
    others: Mutex<Kept>,
}

/// As many as calls were under way at once, until they have been idle for too long.
#[derive(Default)]
struct Kept {
    /// The one used last comes last.
    http1: Vec<Line>,
    http2: Option<Line>,
    /// Somebody closes those that are idle for too long.
    is_swept: bool,
}

impl Host {
    pub(super) fn new(uri: &Uri, settings: PoolSpec) -> Self {
        let port = uri.port_u16().filter(|port| {
            let usual = if uri.scheme() == Some(&Scheme::HTTP) {
                80
            } else {
                443
            };
            *port != usual
        });
        let host = uri.host().unwrap_or_default();
        let name = match port {
            Some(port) => HeaderValue::from_maybe_shared(format!("{host}:{port}")),
            None => HeaderValue::from_str(host),
        };
        Self {
            // What is an authority is a header's value.
            name: name.unwrap_or(HeaderValue::from_static("")),
            root: at(uri, PathAndQuery::from_static("/")),
            settings,
            crew: (1..crew::places()).map(|_| Mutex::default()).collect(),
            others: Mutex::default(),
        }
    }

    /// What the `host` header says.
    pub(super) fn name(&self) -> &HeaderValue {
        &self.name
    }

    /// Where a connection leads.
    pub(super) fn root(&self) -> &Uri {
        &self.root
    }

    /// The whole address of what is there under a path.
    pub(super) fn at(&self, path: PathAndQuery) -> Uri {
        at(&self.root, path)
    }

    /// A connection that stands and is free.
    pub(super) fn take(&self) -> Option<Line> {
        let now = Instant::now();
        let is_over = |line: &Line| line.is_over(now, self.settings.idle_timeout);
        let mut kept = self.kept();
        kept.http2.take_if(|line| is_over(line));
        if let Some(line) = &mut kept.http2 {
            line.used = now;
            return line.another();
        }
        let mut at = kept.http1.len();
        while let Some(before) = at.checked_sub(1) {
            at = before;
            let line = kept.http1.get(at)?;
            if is_over(line) {
                kept.http1.swap_remove(at);
            } else if line.is_ready() {
                return Some(kept.http1.swap_remove(at));
            }
        }
        None
    }

    /// Others may use a new connection as well, if that is possible by it.
    pub(super) fn share(self: &Arc<Self>, line: &Line) {
        if let Some(another) = line.another() {
            let mut kept = self.kept();
            kept.http2 = Some(another);
            self.sweep(&mut kept);
        }
    }

    /// A connection is free again.
    pub(super) fn give_back(self: &Arc<Self>, mut line: Line) {
        line.used = Instant::now();
        // A share of an HTTP/2 connection stands here already.
        if !line.is_http2() && !line.is_over(line.used, self.settings.idle_timeout) {
            let mut kept = self.kept();
            kept.http1.push(line);
            self.sweep(&mut kept);
        }
    }

    /// Sees to it that whoever is idle for too long is closed.
    fn sweep(self: &Arc<Self>, kept: &mut Kept) {
        if !std::mem::replace(&mut kept.is_swept, true) {
            let every = self.settings.idle_timeout;
            let host = Arc::downgrade(self);
            TokioExecutor::new().execute(async move {
                loop {
                    tokio::time::sleep(every).await;
                    if !Weak::upgrade(&host).is_some_and(|host| host.swept()) {
                        return;
                    }
                }
            });
        }
    }

    /// Closes those that are idle for too long, and gives whether any are left.
    fn swept(&self) -> bool {
        let now = Instant::now();
        let is_over = |line: &Line| line.is_over(now, self.settings.idle_timeout);
        let mut kept = self.kept();
        kept.http2.take_if(|line| is_over(line));
        kept.http1.retain(|line| !is_over(line));
        kept.is_swept = kept.http2.is_some() || !kept.http1.is_empty();
        kept.is_swept
    }

    /// Those that this thread uses.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        let own = crew::place().checked_sub(1);
        let kept = own
            .and_then(|own| self.crew.get(own))
            .unwrap_or(&self.others);
        kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same host's address with another path.
fn at(uri: &Uri, path: PathAndQuery) -> Uri {
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path);
    // A host with a path is an address.
    Uri::from_parts(parts).unwrap_or_default()
}
