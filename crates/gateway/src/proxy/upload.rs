//! `Uploads`: a request's body, read whole within its limits of size, time and memory.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};

use super::gathered::Gathered;
use super::memory::{Memory, Share};
use super::refusal::Refusal;
use crate::config::Config;

/// What uploads may take.
pub(crate) struct Uploads {
    /// `max_body`: of one, in bytes.
    most: u64,
    /// `listener.body_memory`: of all together.
    memory: Memory,
    /// `listener.upload_idle`
    idle: Duration,
    /// `listener.upload_timeout`
    timeout: Duration,
}

/// A body, and its share of the memory.
pub(crate) struct Upload {
    pub(crate) body: Bytes,
    pub(crate) share: Share,
}

impl Uploads {
    pub(crate) fn new(config: &Config) -> Self {
        let listener = &config.listener;
        Self {
            most: config.limits.max_body,
            memory: Memory::new(listener.body_memory),
            idle: listener.upload_idle,
            timeout: listener.upload_timeout,
        }
    }

    /// A share of the memory, for a body that is here already.
    pub(crate) fn share(&self) -> Share {
        self.memory.share()
    }

    /// The same bytes within other limits.
    pub(crate) fn with(&self, config: &Config) -> Self {
        Self {
            memory: self.memory.with(config.listener.body_memory),
            ..Self::new(config)
        }
    }

    /// The whole body, or why not. What is too long is read on for a while, since an answer sent into an upload that
    /// nobody reads is often lost.
    pub(crate) async fn read(&self, mut body: Incoming) -> Result<Upload, Refusal> {
        let mut kept = Gathered::default();
        let mut share = self.memory.share();
        let (mut length, mut is_full) = (0_u64, false);
        // Far beyond any clock there is no limit.
        let end = Instant::now().checked_add(self.timeout);
        loop {
            let pause = Instant::now().checked_add(self.idle);
            let due = pause.into_iter().chain(end).min();
            let next = match due {
                Some(due) => timeout_at(due, body.frame()).await,
                None => Ok(body.frame().await),
            };
            let Some(frame) = next.map_err(|_| Refusal::late_upload())? else {
                break;
            };
            let Ok(data) = frame.map_err(|_| Refusal::cut_upload())?.into_data() else {
                continue;
            };
            length = length.saturating_add(data.len() as u64);
            if length > self.most.saturating_mul(2) {
                break;
            }
            if length > self.most || is_full {
                continue;
            }
            is_full = !share.grow(data.len() as u64);
            if is_full {
                // Its room is somebody else's from now on.
                (kept, share) = (Gathered::default(), self.memory.share());
            } else {
                kept.push(data);
            }
        }
        if length > self.most {
            Err(Refusal::too_large(self.most))
        } else if is_full {
            Err(Refusal::no_memory())
        } else {
            Ok(Upload {
                body: kept.whole(),
                share,
            })
        }
    }
}
