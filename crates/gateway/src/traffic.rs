//! `Traffic`: the callers' listener: who is accepted, in which way he is spoken to, and how long he may say nothing.

mod again;
mod front;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_util::either::Either;

use crate::caller::{Caller, Line, Watch};
use crate::config::Identity;
use crate::live::Live;
use crate::proxy;
use crate::shutdown::Tasks;
use again::Again;
use front::Front;

/// Most of an answer that waits here for its caller, and most of a request's head.
const WRITE_BUFFER: usize = 32 << 10;
/// How long a caller who has just connected has for his request once a drain has begun.
const FIRST_WORD: Duration = Duration::from_secs(1);
/// How often it is told that no more connections are accepted.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// What every connection of a caller needs.
pub(crate) struct Traffic {
    live: Arc<Live>,
    tasks: Tasks,
    places: Arc<Semaphore>,
    /// Threads that have a place for the next caller.
    at_the_door: AtomicUsize,
}

impl Traffic {
    pub(crate) fn new(live: Arc<Live>, tasks: Tasks) -> Self {
        let most = live.proxy().listener().max_connections;
        let places = Arc::new(Semaphore::new(most));
        Self {
            live,
            tasks,
            places,
            at_the_door: AtomicUsize::new(0),
        }
    }

    /// Accepts callers until a drain begins, and then those who had come by then.
    pub(crate) async fn accept(self: Arc<Self>, listener: std::net::TcpListener) {
        let listener = match TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => return tracing::error!(%error, "callers cannot be accepted"),
        };
        let mut told = None;
        loop {
            let next = async {
                let place = self.place(&mut told).await?;
                self.at_the_door.fetch_add(1, Ordering::Relaxed);
                let accepted = listener.accept().await;
                self.at_the_door.fetch_sub(1, Ordering::Relaxed);
                Some((accepted, place))
            };
            let next = tokio::select! {
                next = next => next,
                () = self.tasks.draining() => return self.accept_the_last(listener),
            };
            match next {
                Some((Ok((stream, _)), place)) => self.admit(stream, Some(place)),
                Some((Err(error), _)) => {
                    // Out of file descriptors, mostly: a pause keeps the loop from spinning until some are free.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                None => return,
            }
        }
    }

    fn admit(self: &Arc<Self>, stream: TcpStream, place: Option<OwnedSemaphorePermit>) {
        let serving = Arc::clone(self);
        self.tasks.spawn(async move {
            Again::new(serving.serve(stream)).await;
            drop(place);
        });
    }

    /// Those in the system's queue have connected, and may have sent a request: closed unseen, their calls would be lost.
    fn accept_the_last(self: &Arc<Self>, listener: TcpListener) {
        let Ok(listener) = listener.into_std() else {
            return;
        };
        while let Ok((stream, _)) = listener.accept() {
            let is_ready = stream.set_nonblocking(true).is_ok();
            if let (true, Ok(stream)) = (is_ready, TcpStream::from_std(stream)) {
                self.admit(stream, None);
            }
        }
    }

    /// A place among the connections; whoever finds none waits in the system's queue.
    async fn place(&self, told: &mut Option<Instant>) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Some(place);
        }
        let is_full = self.at_the_door.load(Ordering::Relaxed) == 0;
        if is_full && told.is_none_or(|told| told.elapsed() >= TOLD_EVERY) {
            *told = Some(Instant::now());
            tracing::warn!("all of listener.max_connections are open; whoever comes now waits");
        }
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// One caller's connection. The call in flight is dropped with it as soon as the caller is gone.
    async fn serve(&self, stream: TcpStream) {
        let (line, watch) = Caller::at(stream, self.live.proxy().write_idle());
        let Some(line) = self.secured(line).await else {
            return tracing::trace!("a caller spoke no TLS");
        };
        self.speak(line, watch).await;
    }

    /// The line as HTTP is spoken over it; none where TLS was not agreed upon in time.
    async fn secured(&self, line: Line) -> Option<impl AsyncRead + AsyncWrite + Unpin + use<>> {
        let proxy = self.live.proxy();
        let listener = proxy.listener();
        let Some(tls) = listener.identity.as_ref().map(Identity::acceptor) else {
            return Some(Either::Left(line));
        };
        let handshake = timeout(listener.head_timeout, tls.accept(line));
        let secured = tokio::select! {
            secured = handshake => secured,
            () = self.tasks.draining() => return None,
        };
        Some(Either::Right(Box::new(secured.ok()?.ok()?)))
    }

    async fn speak(&self, line: impl AsyncRead + AsyncWrite + Unpin, watch: Watch) {
        let caller = watch.caller();
        let front = Front::new(line, caller.clone());
        let (asking, has_asked) = (caller.clone(), Notify::new());
        let service = service_fn(|request| {
            has_asked.notify_one();
            let (proxy, caller) = (self.live.proxy(), asking.clone());
            // hyper keeps room for it as long as the connection stands: a stream may stand for minutes after it.
            Box::pin(proxy::handle(proxy, request, caller))
        });
        // Who leaves is the watch's to tell: hyper would take the end of what a caller sends for the end of his interest.
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.live.proxy().listener().head_timeout)
            .half_close(true)
            .max_buf_size(WRITE_BUFFER)
            .serve_connection(TokioIo::new(front), service);
        let mut connection = std::pin::pin!(connection);
        let mut gone = std::pin::pin!(watch.gone());
        // Asked to end before it has read anything, hyper closes at once, whatever is on its way.
        let mut first_word = std::pin::pin!(async {
            let _is_silent = timeout(FIRST_WORD, has_asked.notified()).await;
        });
        // Asked only when it has something to say: drains are rare, and the connection is asked often.
        let mut draining = FuturesUnordered::from_iter([self.tasks.draining()]);
        let (mut is_draining, mut is_leaving, mut is_ending) = (false, false, false);
        loop {
            tokio::select! {
                biased;
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::trace!(%error, "a caller's connection ended");
                    }
                    return;
                }
                gone = gone.as_mut() => return tracing::trace!(?gone, "a caller is gone"),
                Some(()) = draining.next() => is_draining = true,
                () = first_word.as_mut(), if is_draining && !is_leaving => {
                    is_leaving = true;
                    connection.as_mut().graceful_shutdown();
                }
                // His call learns of it as soon as the connection is asked again.
                () = self.tasks.ending(), if is_draining && !is_ending => {
                    is_ending = true;
                    caller.end();
                }
            }
        }
    }
}
