//! One connection: HTTP/1.1 by hyper, and the endings that hyper would not do.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::answer::{Answer, HangUp};
use crate::body::{Broken, LastWord, ScriptedBody};
use crate::request::{self, Facts};
use crate::server::Shared;

/// Serves one connection until it closes, or until `goodbye` and the end of the answer in the making.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    stream: TcpStream,
    mut goodbye: watch::Receiver<()>,
) {
    let _ = stream.set_nodelay(true);
    let last_word = LastWord::default();
    let asked = AtomicBool::new(false);
    let service = service_fn(|request| {
        asked.store(true, Ordering::Relaxed);
        answer(Arc::clone(&shared), request, last_word.clone())
    });
    let mut connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    let ended = loop {
        let ended = tokio::select! {
            ended = &mut connection => Some(ended),
            Ok(()) = goodbye.changed() => None,
        };
        match ended {
            Some(ended) => break ended,
            // hyper keeps a connection open that has not asked anything yet.
            None if !asked.load(Ordering::Relaxed) => return,
            None => Pin::new(&mut connection).graceful_shutdown(),
        }
    };
    if ended.is_err()
        && let Some(word) = last_word.take()
    {
        hang_up(connection.into_parts().io.into_inner(), word).await;
    }
}

async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
    last_word: LastWord,
) -> Result<Response<ScriptedBody>, Broken> {
    let (head, body) = request.into_parts();
    let mut exchange = shared.ledger.arrived(&head);
    let (body, length) = request::read(body).await.map_err(|_| Broken)?;
    let facts = Facts::new(exchange.number(), &head, &body);
    exchange.read(&body, length, facts.model.as_deref());
    drop(body);
    let answer = match shared.reply(&facts) {
        Some(reply) => {
            exchange.decided(reply.to_string());
            // A sleep of nothing would still last until the timer's next millisecond.
            if !reply.delay.is_zero() {
                sleep(reply.delay).await;
            }
            Answer::new(&reply, &facts)
        }
        None => {
            exchange.decided("reset".to_owned());
            Answer::HangUp(HangUp::Reset)
        }
    };
    match answer {
        Answer::Http {
            status,
            headers,
            steps,
        } => {
            let mut response = Response::new(ScriptedBody::new(steps, exchange, last_word));
            *response.status_mut() = status;
            *response.headers_mut() = headers;
            Ok(response)
        }
        Answer::HangUp(word) => {
            exchange.finish();
            last_word.leave(word);
            Err(Broken)
        }
        Answer::Stall => std::future::pending().await,
    }
}

async fn hang_up(mut stream: TcpStream, word: HangUp) {
    match word {
        HangUp::Close => {}
        HangUp::Reset => {
            let _ = stream.set_zero_linger();
        }
        HangUp::Raw(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
    }
}
