//! `Cache`: the last good answers of the routes that may fall back on them.
//!
//! What is kept is whole and good: a plain answer that the classifier calls a success, a stream that came to its end
//! marker, collected while it passed. An entry is found by a digest of the route, the tenant and the request; no
//! credential and no request is kept.

mod key;
mod unfold;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use fuseline_core::Tick;
use fuseline_llm::{Body, Dialect, LastGood};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};

use super::coding::Readable;
use crate::config::CacheSpec;
use key::{Digest, Streamed};
pub(crate) use key::{Slot, Tenant};
use unfold::unfold;

/// Answers by the digest of their request.
pub(crate) struct Cache {
    answers: Mutex<LastGood<Digest, Kept>>,
    max_entry: usize,
}

/// An answer as it came.
#[derive(Clone)]
pub(crate) struct Kept {
    /// What says how the body is to be read, and nothing else.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Cache {
    pub(crate) fn new(spec: &CacheSpec) -> Self {
        Self {
            answers: Mutex::new(LastGood::new(spec.max_bytes, spec.ttl)),
            max_entry: usize::try_from(spec.max_entry).unwrap_or(usize::MAX),
        }
    }

    /// The last good answer to this request, in the shape that was asked for, and its age. Who asks for a stream may
    /// get the plain answer, unfolded. Who asks for a plain answer is not served from a stream: ids, choices and
    /// whatever else its events left open cannot be put together again.
    pub(crate) async fn recall(&self, slot: &Slot, now: Tick) -> Option<(Kept, Duration)> {
        let Some(streamed) = slot.streamed() else {
            return self.get(slot.plain(), now);
        };
        if let Some(found) = self.get(&streamed.digest, now) {
            return Some(found);
        }
        let (plain, age) = self.get(slot.plain(), now)?;
        Some((plain.unfolded(slot.dialect(), streamed).await?, age))
    }

    fn get(&self, digest: &Digest, now: Tick) -> Option<(Kept, Duration)> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let (kept, age) = answers.get(digest, now)?;
        Some((kept.clone(), age))
    }

    fn keep(&self, digest: Digest, kept: Kept, now: Tick) {
        if kept.body.len() > self.max_entry {
            return;
        }
        let bytes = kept.size();
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.insert(digest, kept, bytes, now);
    }
}

impl Kept {
    fn new(headers: &HeaderMap, body: Bytes) -> Self {
        let described = [CONTENT_TYPE, CONTENT_ENCODING];
        let said = described.into_iter().flat_map(|name| {
            let values = headers.get_all(&name).iter();
            values
                // Copies, as that of the body.
                .filter_map(|value| HeaderValue::from_bytes(value.as_bytes()).ok())
                .map(|value| (name.clone(), value))
                .collect::<Vec<_>>()
        });
        Self {
            headers: said.collect(),
            body,
        }
    }

    fn size(&self) -> u64 {
        let headers = self.headers.values().map(HeaderValue::len).sum::<usize>();
        (self.body.len() + headers) as u64
    }

    async fn unfolded(&self, dialect: Option<Dialect>, streamed: &Streamed) -> Option<Self> {
        let readable = Readable::new(&self.headers, &self.body, true).await;
        let Body::Whole(text) = readable.as_body() else {
            return None;
        };
        let body = unfold(dialect?, streamed, text)?;
        let kind = HeaderValue::from_static("text/event-stream");
        let headers = [(CONTENT_TYPE, kind)].into_iter().collect();
        Some(Self { headers, body })
    }
}

/// Keeps one call's answer, if it turns out to be whole and good.
pub(crate) struct Keeper {
    cache: Arc<Cache>,
    slot: Slot,
    headers: HeaderMap,
    /// None where the answer is too long.
    collected: Option<BytesMut>,
}

impl Keeper {
    pub(crate) fn new(cache: Arc<Cache>, slot: Slot) -> Self {
        Self {
            cache,
            slot,
            headers: HeaderMap::new(),
            collected: Some(BytesMut::new()),
        }
    }

    /// A plain answer, whole and good.
    pub(crate) fn keep_plain(self, headers: &HeaderMap, body: &Bytes, now: Tick) {
        // A copy: what was read from the network may be a small part of a large buffer.
        let body = Bytes::copy_from_slice(body);
        let kept = Kept::new(headers, body);
        self.cache.keep(*self.slot.plain(), kept, now);
    }

    /// A stream begins under this head.
    pub(crate) fn begin(&mut self, headers: &HeaderMap) {
        self.headers = headers.clone();
    }

    /// More of the stream passes.
    pub(crate) fn pass(&mut self, bytes: &Bytes) {
        let most = self.cache.max_entry;
        if let Some(collected) = &mut self.collected {
            if collected.len() + bytes.len() <= most {
                collected.extend_from_slice(bytes);
            } else {
                self.collected = None;
            }
        }
    }

    /// The stream has ended, whole and good.
    pub(crate) fn keep_stream(self, now: Tick) {
        if let (Some(body), Some(streamed)) = (self.collected, self.slot.streamed()) {
            let kept = Kept::new(&self.headers, body.freeze());
            self.cache.keep(streamed.digest, kept, now);
        }
    }
}
