//! Feature `reqwest`: a breaker around a `reqwest::Client` that the caller has.

use std::time::Duration;

use fuseline_core::{Kind, Outcome};
use fuseline_llm::{Shape, StreamTimers};
use reqwest::{Body, Request, RequestBuilder, Response, ResponseBuilderExt as _};

use crate::breaker::Breaker;
use crate::bytes::StreamTerms;
use crate::classifier::Classify;
use crate::error::Error;
pub use crate::head::ByStatus;
use crate::head::{broken, of_head, settle_head};

mod stream;

impl Classify<Response, reqwest::Error> for ByStatus {
    fn classify(&self, result: &Result<Response, reqwest::Error>, took: Duration) -> Outcome {
        match result {
            Ok(response) => of_head(response.status().as_u16(), response.headers(), took),
            Err(error) if error.is_timeout() => Outcome::failure(Kind::Timeout),
            // Nothing was sent, or an answer was not followed: the request or the client is set up wrongly.
            Err(error) if error.is_builder() || error.is_redirect() => Outcome::Neutral,
            Err(_) => Outcome::failure(Kind::Network),
        }
    }
}

/// A `reqwest::Client` behind a breaker. You bring the client, with its TLS, proxies, pools and timeouts; the breaker
/// refuses requests while it is open and judges answers by [`ByStatus`] or an own classifier.
///
/// What comes back is a real [`reqwest::Response`]: read it as you always do. The end of its body settles the call;
/// dropping it before says nothing about the provider, good or bad. `reqwest` timeouts count as failures of kind
/// `timeout`. A probe that is silent for longer than `probe_timeout` (60 s unless set) and the request's own timeout is
/// taken for lost; the timeout of the whole client is not known here.
///
/// **A streamed answer of a model is watched** as a [`GuardedBytes`](crate::GuardedBytes) is, where the path of a `POST`
/// tells its dialect ([`Dialect::of_path`](fuseline_llm::Dialect::of_path)): it settles by what its events say, and
/// reading it ends in an error unless it is complete. Behind that [`reqwest::Error`] stands a
/// [`StreamError`](crate::StreamError). The limits are those of [`stream_timers`](Client::stream_timers). Any other stream is
/// read on to its end, beyond a marker such as `[DONE]`; its bytes are signs of life, whatever they say.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mock = fuseline_mock::Mock::start(fuseline_mock::Reply::status(503)).await?;
/// # let url = mock.url() + "/v1/models";
/// use fuseline::{Breaker, Policy, State};
///
/// let breaker = Breaker::new("openai", Policy::default());
/// let client = fuseline::reqwest::Client::new(breaker, reqwest::Client::new());
/// for _ in 0..5 {
///     assert_eq!(client.send(client.inner().get(&url)).await?.status(), 503);
/// }
/// let refused = client.send(client.inner().get(&url)).await.unwrap_err();
/// assert!(refused.is_open());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Client<C = ByStatus> {
    breaker: Breaker,
    inner: reqwest::Client,
    classify: C,
    timers: Option<StreamTimers>,
}

impl Client {
    /// Puts the breaker before the client. Clones of both stay yours.
    pub const fn new(breaker: Breaker, client: reqwest::Client) -> Self {
        Self::with_classifier(breaker, client, ByStatus)
    }
}

impl<C: Classify<Response, reqwest::Error>> Client<C> {
    /// With an own classifier: `Fn(&Result<reqwest::Response, reqwest::Error>, Duration) -> Outcome`. It sees the head;
    /// where it says success, the end of the body decides.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fuseline::{Breaker, Classify, Kind, Outcome, Policy, reqwest::{ByStatus, Client}};
    ///
    /// let judge = |result: &reqwest::Result<reqwest::Response>, took: Duration| match result {
    ///     Ok(answer) if answer.status() == 404 => Outcome::failure(Kind::ServerError), // the deployment is gone
    ///     result => ByStatus.classify(result, took),
    /// };
    /// let breaker = Breaker::new("openai", Policy::default());
    /// let client = Client::with_classifier(breaker, reqwest::Client::new(), judge);
    /// # let _ = client;
    /// ```
    pub const fn with_classifier(breaker: Breaker, client: reqwest::Client, classify: C) -> Self {
        Self {
            breaker,
            inner: client,
            classify,
            timers: None,
        }
    }

    /// Limits of streamed answers. Unless set they are the default ones, with a longer `first_token` for models that are
    /// known to think before they speak ([`reasoning_first_token`](fuseline_llm::reasoning_first_token)).
    ///
    /// ```
    /// use std::time::Duration;
    /// use fuseline::{Breaker, Policy, classify::StreamTimers};
    ///
    /// let breaker = Breaker::new("openai", Policy::default());
    /// let client = fuseline::reqwest::Client::new(breaker, reqwest::Client::new())
    ///     .stream_timers(StreamTimers { stall: Duration::from_secs(10), ..StreamTimers::default() });
    /// # let _ = client;
    /// ```
    #[must_use]
    pub fn stream_timers(mut self, timers: StreamTimers) -> Self {
        self.timers = Some(timers);
        self
    }

    /// The breaker.
    pub const fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    /// The client, to build requests with: what it sends itself is not guarded.
    pub const fn inner(&self) -> &reqwest::Client {
        &self.inner
    }

    /// Builds and sends a request, if the breaker lets it through.
    ///
    /// # Errors
    /// [`Error::Open`] where the breaker refuses; [`Error::Inner`] where the request cannot be built or no answer came.
    pub async fn send(&self, request: RequestBuilder) -> Result<Response, Error<reqwest::Error>> {
        let request = request.build().map_err(Error::Inner)?;
        self.execute(request).await
    }

    /// Sends a request, if the breaker lets it through.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn execute(&self, request: Request) -> Result<Response, Error<reqwest::Error>> {
        let terms = stream::terms(&request, self.timers.as_ref());
        let first_token = terms.as_ref().map(StreamTerms::first_token);
        let limit = request.timeout().copied().max(first_token);
        let limit = limit.unwrap_or_default();
        let leave = self.breaker.try_acquire_within(limit);
        let permit = leave
            .map_err(|rejection| self.breaker.refused(rejection))?
            .into_owned();
        let result = self.inner.execute(request).await;
        let outcome = self.classify.classify(&result, permit.elapsed());
        match result {
            Ok(response) => {
                let url = response.url().clone();
                let (mut parts, body) = http::Response::<Body>::from(response).into_parts();
                let with_url = http::Response::builder().url(url).body(());
                if let Ok(with_url) = with_url {
                    parts.extensions.extend(with_url.into_parts().0.extensions);
                }
                let is_good = matches!(outcome, Outcome::Success { .. });
                let terms = terms.filter(|_| is_good);
                let body = match terms.and_then(|terms| stream::announced(terms, &parts.headers)) {
                    Some(terms) => stream::guarded(permit, body, terms),
                    None => Body::wrap(settle_head(permit, &outcome, &parts.headers, body, fault)),
                };
                let response = http::Response::from_parts(parts, body);
                Ok(Response::from(response))
            }
            Err(error) => {
                permit.record(&outcome);
                Err(Error::Inner(error))
            }
        }
    }
}

/// What a body's error means. Through a converted body reqwest's own error may stand behind another.
fn fault(error: &reqwest::Error, shape: Shape) -> Kind {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let own = error.downcast_ref::<reqwest::Error>();
        if own.is_some_and(reqwest::Error::is_timeout) {
            return match shape {
                Shape::Stream => Kind::StreamStall,
                Shape::Plain => Kind::Timeout,
            };
        }
        cause = error.source();
    }
    broken(shape)
}
