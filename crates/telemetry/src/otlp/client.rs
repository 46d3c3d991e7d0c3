//! `Client`: the exporter's HTTP client, which is somebody else's.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use opentelemetry_http::HttpClient;

/// Sends one request and gives the whole answer, in a time of its own choice. Its future is polled outside any runtime.
pub type Post = Arc<dyn Fn(Request<Bytes>) -> PostFuture + Send + Sync>;

/// What a [`Post`] gives.
pub type PostFuture = Pin<Box<dyn Future<Output = Result<Response<Bytes>, PostError>> + Send>>;

/// There was no answer. Whoever posts has said why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the collector gave no answer")]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to add")]
pub struct PostError;

pub(super) struct Client(Post);

impl Client {
    pub(super) fn new(post: &Post) -> Self {
        Self(Arc::clone(post))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

type BoxError = Box<dyn Error + Send + Sync>;

impl HttpClient for Client {
    fn send_bytes<'c, 'a>(
        &'c self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, BoxError>> + Send + 'a>>
    where
        'c: 'a,
        Self: 'a,
    {
        let answer = (self.0)(request);
        Box::pin(async move { Ok(answer.await?) })
    }
}
