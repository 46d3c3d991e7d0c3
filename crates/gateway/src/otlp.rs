//! `Courier`: carries what the exporter sends, over the gateway's own client. The exporter's threads know no runtime, so they
//! hand their requests over and wait; a collector that is away or slow keeps nobody else waiting, and is told of once.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fuseline_telemetry::{Otlp, OtlpError, OtlpSettings, Post, PostError};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use tokio::sync::{mpsc, oneshot};

use crate::proxy::Pool;

/// How long a collector may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most of its answer that is read, in bytes.
const MAX_ANSWER: usize = 64 << 10;
/// How long the last export may take.
const FLUSH: Duration = Duration::from_secs(5);

type Letter = (Request<Bytes>, oneshot::Sender<Response<Bytes>>);

/// Who sends what the exporter has.
pub(crate) struct Courier {
    letters: mpsc::Receiver<Letter>,
    /// Exports since the collector was last heard of.
    lost: u64,
}

/// Starts the exporter; nothing leaves before its courier is at [`work`](Courier::work).
pub(crate) fn start(settings: &OtlpSettings) -> Result<(Otlp, Courier), OtlpError> {
    // One for each of the two that send.
    let (sender, letters) = mpsc::channel::<Letter>(2);
    let post: Post = Arc::new(move |request| {
        let sender = sender.clone();
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let sent = sender.send((request, answer)).await;
            sent.map_err(|_| PostError)?;
            answered.await.map_err(|_| PostError)
        })
    });
    let otlp = Otlp::start(settings, &post)?;
    Ok((otlp, Courier { letters, lost: 0 }))
}

/// Sends what is left, if that can be done soon.
pub(crate) async fn flush(otlp: Otlp) {
    let (done, flushed) = oneshot::channel();
    // Not the runtime's: that would wait for it at the end of the process, however long it takes.
    let flush = move || {
        otlp.shutdown();
        done.send(())
    };
    let spawned = std::thread::Builder::new()
        .name("otlp-flush".to_owned())
        .spawn(flush);
    let flushed = tokio::time::timeout(FLUSH, flushed).await;
    if spawned.is_err() || flushed.is_err() {
        tracing::warn!("the last spans and metrics could not be exported in time");
    }
}

impl Courier {
    pub(crate) async fn work(mut self, pool: Pool) {
        while let Some((request, answer)) = self.letters.recv().await {
            match deliver(&pool, request).await {
                Ok(response) if response.status().is_success() => {
                    self.arrived();
                    // The exporter waits; where it does not, it is shutting down.
                    let _heard = answer.send(response);
                }
                Ok(response) => {
                    self.failed(&format!("it answered {}", response.status()));
                    let _heard = answer.send(response);
                }
                Err(why) => self.failed(why),
            }
        }
    }

    fn arrived(&mut self) {
        let failed = std::mem::take(&mut self.lost);
        if failed > 0 {
            tracing::info!(failed, "the collector takes spans and metrics again");
        }
    }

    fn failed(&mut self, why: &str) {
        if self.lost == 0 {
            tracing::warn!(
                why,
                "the collector takes no spans and metrics; some are lost"
            );
        }
        self.lost += 1;
    }
}

async fn deliver(pool: &Pool, request: Request<Bytes>) -> Result<Response<Bytes>, &'static str> {
    let exchange = async {
        // An error's text may hold the address.
        let answer = pool.request(request.map(Full::new)).await;
        let (head, body) = answer.map_err(|_| "it cannot be reached")?.into_parts();
        let body = Limited::new(body, MAX_ANSWER).collect().await;
        let body = body.map_err(|_| "its answer is cut or too long")?;
        Ok(Response::from_parts(head, body.to_bytes()))
    };
    let answer = tokio::time::timeout(PATIENCE, exchange).await;
    answer.unwrap_or(Err("it did not answer within 10 s"))
}
