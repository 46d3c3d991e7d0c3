//! `CachedChain`: a chain with the last good results behind it.

use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fuseline_core::{Outcome, Tick};
use fuseline_llm::LastGood;

use super::{Chain, Ending};
use crate::classifier::{AnyError, Classify};
use crate::error::Error;

/// The last good results by request, bounded by bytes and by age: the oldest leave first. Clones share them.
///
/// The key is everything on which a result may depend: the request, and who asks. **Two users who must not see each
/// other's results need two keys.** Keys are compared whole, so no two of them are ever taken for one.
pub struct Cache<K, R> {
    results: Arc<Mutex<LastGood<K, R>>>,
    size: fn(&K, &R) -> usize,
}

impl<K: Clone + Eq + Hash, R: Clone> Cache<K, R> {
    /// Keeps results for `ttl`, and no more than `max_bytes` of them, by what `size` says of a key and its result:
    /// what they hold on the heap. The two values themselves are counted anyway.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fuseline::Cache;
    ///
    /// let size = |prompt: &String, text: &String| prompt.len() + text.len();
    /// let cache = Cache::new(64 << 20, Duration::from_secs(600), size);
    /// # drop(cache);
    /// ```
    pub fn new(max_bytes: u64, ttl: Duration, size: fn(&K, &R) -> usize) -> Self {
        Self {
            results: Arc::new(Mutex::new(LastGood::new(max_bytes, ttl))),
            size,
        }
    }

    fn keep(&self, key: K, result: R, now: Tick) {
        let bytes = (self.size)(&key, &result) as u64;
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        results.insert(key, result, bytes, now);
    }

    fn recall(&self, key: &K, now: Tick) -> Option<(R, Duration)> {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let (result, age) = results.get(key, now)?;
        Some((result.clone(), age))
    }
}

impl<K, R> Clone for Cache<K, R> {
    fn clone(&self) -> Self {
        Self {
            results: self.results.clone(),
            size: self.size,
        }
    }
}

/// Neither keys nor results are shown.
impl<K, R> fmt::Debug for Cache<K, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

/// What a [`CachedChain`] gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer<R> {
    /// The result.
    pub value: R,
    /// How old it is, where it comes from the cache: say so to whoever reads it. None = a target gave it just now.
    pub age: Option<Duration>,
}

/// A [`Chain`] with a [`Cache`] behind it. Made by [`Chain::cache`].
#[derive(Clone, Debug)]
pub struct CachedChain<T, C = AnyError, K = String, R = String> {
    chain: Chain<T, C>,
    cache: Cache<K, R>,
}

impl<T, C, K, R> CachedChain<T, C, K, R> {
    pub(super) const fn new(chain: Chain<T, C>, cache: Cache<K, R>) -> Self {
        Self { chain, cache }
    }

    /// The chain without its cache.
    pub const fn chain(&self) -> &Chain<T, C> {
        &self.chain
    }

    /// As [`Chain::call`], with the last good result under `key` in the place of a failure of all targets.
    ///
    /// | the call | gives | keeps |
    /// |---|---|---|
    /// | comes through | the result | the result, if the classifier calls it a success |
    /// | fails because the request is at fault, or is neutral | that | nothing |
    /// | fails at every target, or is refused | the result kept under `key`, if it is not too old; else the failure | nothing |
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use std::time::Duration;
    /// use fuseline::{Breaker, Cache, Chain, Policy};
    ///
    /// let size = |key: &(u32, String), text: &String| key.1.len() + text.len();
    /// let chain = Chain::builder()
    ///     .target(Breaker::new("openai", Policy::default()), "large")
    ///     .target(Breaker::new("groq", Policy::default()), "small")
    ///     .cache(Cache::new(64 << 20, Duration::from_secs(600), size));
    ///
    /// let key = (7, "Why?".to_owned()); // the user's number, and what he asks
    /// let answer = chain.call(key.clone(), async |model| Ok::<_, String>(format!("{model}: because"))).await;
    /// assert_eq!(answer.unwrap().age, None);
    ///
    /// let answer = chain.call(key, async |_| Err("503".to_owned())).await.unwrap();
    /// assert_eq!(answer.value, "large: because");
    /// assert!(answer.age.is_some(), "it is from the cache");
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Chain::call`], where nothing is kept.
    ///
    /// # Panics
    /// As [`Chain::call`].
    pub async fn call<E, F, Fut>(&self, key: K, call: F) -> Result<Answer<R>, Error<E>>
    where
        T: Clone,
        K: Clone + Eq + Hash,
        R: Clone,
        C: Classify<R, E>,
        F: FnMut(T) -> Fut,
        Fut: Future<Output = Result<R, E>>,
    {
        let ending = self.chain.run(call).await;
        let now = self.chain.now();
        let fresh = |value| Answer { value, age: None };
        match ending {
            Ending::Settled(Ok(value), Outcome::Success { .. }) => {
                self.cache.keep(key, value.clone(), now);
                Ok(fresh(value))
            }
            Ending::Settled(result, _) => result.map(fresh).map_err(Error::Inner),
            Ending::Exhausted(result) => match self.cache.recall(&key, now) {
                Some((value, age)) => Ok(Answer {
                    value,
                    age: Some(age),
                }),
                None => result.map(fresh),
            },
        }
    }
}
