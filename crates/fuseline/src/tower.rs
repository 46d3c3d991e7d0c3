//! Feature `tower`: a layer for any HTTP client that is a tower service.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::Body;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::breaker::Breaker;
use crate::classifier::Classify;
use crate::error::{CircuitOpen, Error};
pub use crate::head::{BreakerBody, ByStatus};
use crate::head::{broken, settle_head};
use crate::permit::Permit;

/// Puts a breaker around an HTTP client: requests are refused while it is open, and answers are judged by
/// [`ByStatus`] or an own classifier.
///
/// A future or a body that is dropped before its end says nothing about the provider, good or bad: read event streams on
/// beyond a marker such as `[DONE]`. A time limit that shall count
/// belongs below this layer, as an error of the client. Readiness is the client's own: only
/// [`call`](Service::call) asks the breaker.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::convert::Infallible;
/// use fuseline::{Breaker, Policy, tower::BreakerLayer};
/// use http_body_util::Full;
/// use tower::{ServiceBuilder, ServiceExt, service_fn};
///
/// let client = service_fn(|_: http::Request<()>| async {
///     let mut answer = http::Response::new(Full::new(bytes::Bytes::from("overloaded")));
///     *answer.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
///     Ok::<_, Infallible>(answer)
/// });
/// let breaker = Breaker::new("openai", Policy::default());
/// let client = ServiceBuilder::new().layer(BreakerLayer::new(breaker.clone())).service(client);
/// for _ in 0..5 {
///     assert_eq!(client.clone().oneshot(http::Request::new(())).await?.status(), 503);
/// }
/// let refused = client.oneshot(http::Request::new(())).await.unwrap_err();
/// assert!(refused.is_open());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct BreakerLayer<C = ByStatus> {
    breaker: Breaker,
    classify: C,
}

impl BreakerLayer {
    /// A layer that judges by status and wait hints, and takes every error of the client for the network's.
    pub const fn new(breaker: Breaker) -> Self {
        Self::with_classifier(breaker, ByStatus)
    }
}

impl<C> BreakerLayer<C> {
    /// A layer with an own classifier of heads and errors: `Fn(&Result<http::response::Parts, E>, Duration) -> Outcome`.
    /// Where it says success, the end of the body decides.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fuseline::{Breaker, Classify, Outcome, Policy, tower::{BreakerLayer, ByStatus}};
    /// use http::response::Parts;
    ///
    /// let judge = |result: &Result<Parts, hyper_util::client::legacy::Error>, took: Duration| match result {
    ///     Err(error) if error.is_connect() => Outcome::Neutral, // our own network is at fault, say
    ///     result => ByStatus.classify(result, took),
    /// };
    /// let layer = BreakerLayer::with_classifier(Breaker::new("openai", Policy::default()), judge);
    /// # let _ = layer;
    /// ```
    pub const fn with_classifier(breaker: Breaker, classify: C) -> Self {
        Self { breaker, classify }
    }
}

impl<S, C: Clone> Layer<S> for BreakerLayer<C> {
    type Service = BreakerService<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        BreakerService {
            inner,
            layer: self.clone(),
        }
    }
}

/// A client behind a breaker. Made by [`BreakerLayer`].
#[derive(Clone, Debug)]
pub struct BreakerService<S, C = ByStatus> {
    inner: S,
    layer: BreakerLayer<C>,
}

impl<S, C, Request, B> Service<Request> for BreakerService<S, C>
where
    S: Service<Request, Response = http::Response<B>>,
    B: Body,
    C: Classify<http::response::Parts, S::Error> + Clone,
{
    type Response = http::Response<BreakerBody<B>>;
    type Error = Error<S::Error>;
    type Future = BreakerFuture<S::Future, C>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Error::Inner)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let leave = self.layer.breaker.enter().map(Permit::into_owned);
        BreakerFuture {
            call: leave.is_ok().then(|| self.inner.call(request)),
            leave: Some(leave),
            classify: self.layer.classify.clone(),
        }
    }
}

pin_project! {
    /// The answer to come, or the refusal. Made by [`BreakerService`].
    #[must_use = "futures do nothing unless polled"]
    pub struct BreakerFuture<F, C> {
        // None where the breaker refused, and once the answer has come.
        #[pin]
        call: Option<F>,
        // None once the future has given its result.
        leave: Option<Result<Permit, CircuitOpen>>,
        classify: C,
    }
}

impl<F, C, B, E> Future for BreakerFuture<F, C>
where
    F: Future<Output = Result<http::Response<B>, E>>,
    B: Body,
    C: Classify<http::response::Parts, E>,
{
    type Output = Result<http::Response<BreakerBody<B>>, Error<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let result = match this.call.as_mut().as_pin_mut() {
            Some(call) => Some(ready!(call.poll(cx))),
            None => None,
        };
        this.call.set(None);
        let (permit, result) = match (this.leave.take(), result) {
            (Some(Ok(permit)), Some(result)) => (permit, result),
            (Some(Err(refused)), _) => return Poll::Ready(Err(refused.into())),
            // It has given its result before: who polls on gets no other.
            _ => return Poll::Pending,
        };
        Poll::Ready(match result {
            Err(error) => Err(Error::Inner(permit.judge_error(error, this.classify))),
            Ok(response) => {
                let (parts, body) = response.into_parts();
                let head = Ok(parts);
                let outcome = this.classify.classify(&head, permit.elapsed());
                head.map_err(Error::Inner).map(|parts| {
                    let fault: fn(&B::Error, _) -> _ = |_, shape| broken(shape);
                    let body = settle_head(permit, &outcome, &parts.headers, body, fault);
                    http::Response::from_parts(parts, body)
                })
            }
        })
    }
}
