//! `LastGood`: the last good answer to each request, for the time when nobody gives a new one.
//!
//! Answers leave in the order in which they came: when they are too old, and when there are too many bytes of them. A new
//! answer to the same request takes the old one's place, so what leaves first is what has been confirmed longest ago,
//! and no answer outlives its time by being asked for. No lock and no clock: the owner brings both.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use fuseline_core::Tick;

/// The last good answer by request, bounded by bytes and by age.
///
/// ```
/// use std::time::Duration;
/// use fuseline_core::Tick;
/// use fuseline_llm::LastGood;
///
/// let mut answers = LastGood::new(1 << 20, Duration::from_secs(600));
/// answers.insert("why?", "because", 7, Tick::ZERO);
/// let later = Tick::ZERO + Duration::from_secs(5);
/// assert_eq!(answers.get(&"why?", later), Some((&"because", Duration::from_secs(5))));
/// assert_eq!(answers.get(&"why?", Tick::ZERO + Duration::from_secs(601)), None);
/// ```
#[derive(Debug)]
pub struct LastGood<K, V> {
    answers: HashMap<K, Kept<V>>,
    /// The numbers of answers in the order in which they came, those included whose place was taken since.
    order: VecDeque<(u64, K)>,
    next: u64,
    bytes: u64,
    max_bytes: u64,
    ttl: Duration,
}

#[derive(Debug)]
struct Kept<V> {
    number: u64,
    value: V,
    bytes: u64,
    at: Tick,
}

impl<K: Clone + Eq + Hash, V> LastGood<K, V> {
    /// What an answer takes besides its own bytes, so that even empty ones cannot become too many.
    pub const OVERHEAD: u64 = (2 * size_of::<K>() + size_of::<Kept<V>>()) as u64;

    /// Keeps answers for `ttl`, and no more than `max_bytes` of them, [`OVERHEAD`](Self::OVERHEAD) included.
    pub fn new(max_bytes: u64, ttl: Duration) -> Self {
        Self {
            answers: HashMap::new(),
            order: VecDeque::new(),
            next: 0,
            bytes: 0,
            max_bytes,
            ttl,
        }
    }

    /// Keeps an answer of so many bytes, in the place of the one that there was. One that is too large for all of the
    /// room is not kept; the old one goes all the same.
    pub fn insert(&mut self, key: K, value: V, bytes: u64, now: Tick) {
        let bytes = bytes.saturating_add(Self::OVERHEAD);
        self.remove(&key);
        self.expire(now);
        if bytes > self.max_bytes {
            return;
        }
        while self.bytes > self.max_bytes - bytes && self.drop_oldest() {}
        let number = self.next;
        self.next += 1;
        self.bytes += bytes;
        self.order.push_back((number, key.clone()));
        let kept = Kept {
            number,
            value,
            bytes,
            at: now,
        };
        self.answers.insert(key, kept);
        self.forget_replaced();
    }

    /// The answer and its age, if it is not too old.
    pub fn get(&mut self, key: &K, now: Tick) -> Option<(&V, Duration)> {
        self.expire(now);
        let kept = self.answers.get(key)?;
        Some((&kept.value, now.since(kept.at)))
    }

    /// The bytes of what is kept, with the overhead of each.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn remove(&mut self, key: &K) {
        if let Some(kept) = self.answers.remove(key) {
            self.bytes -= kept.bytes;
        }
    }

    fn expire(&mut self, now: Tick) {
        while let Some((number, key)) = self.order.front() {
            let kept = self.answers.get(key).filter(|kept| kept.number == *number);
            if kept.is_some_and(|kept| now.since(kept.at) <= self.ttl) {
                break;
            }
            self.drop_oldest();
        }
    }

    /// Whether there was one.
    fn drop_oldest(&mut self) -> bool {
        let Some((number, key)) = self.order.pop_front() else {
            return false;
        };
        if self
            .answers
            .get(&key)
            .is_some_and(|kept| kept.number == number)
        {
            self.remove(&key);
        }
        true
    }

    /// One request that is answered again and again must not fill the order.
    fn forget_replaced(&mut self) {
        if self.order.len() > 2 * self.answers.len() + 16 {
            let answers = &self.answers;
            let is_kept = |(number, key): &(u64, K)| {
                answers.get(key).is_some_and(|kept| kept.number == *number)
            };
            self.order.retain(is_kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Tick {
        Tick::from_millis(seconds * 1_000)
    }

    type Answers = LastGood<&'static str, u32>;

    const EACH: u64 = Answers::OVERHEAD;

    /// Room for 100 bytes, beside the overhead of two.
    fn answers() -> Answers {
        LastGood::new(100 + 2 * EACH, Duration::from_secs(10))
    }

    #[test]
    fn an_answer_is_there_for_its_time_and_asking_does_not_lengthen_it() {
        let mut answers = answers();
        answers.insert("a", 1, 40, at(0));
        for second in [0, 5, 10] {
            let age = Duration::from_secs(second);
            assert_eq!(answers.get(&"a", at(second)), Some((&1, age)));
        }
        assert_eq!(answers.get(&"a", at(11)), None);
        assert_eq!((answers.bytes(), answers.order.len()), (0, 0));
    }

    #[test]
    fn the_oldest_leave_when_room_is_needed_and_a_new_answer_renews_its_request() {
        let mut answers = answers();
        answers.insert("a", 1, 40, at(0));
        answers.insert("b", 2, 40, at(1));
        answers.insert("a", 3, 40, at(2));
        answers.insert("c", 4, 60, at(3));
        assert_eq!(answers.get(&"b", at(3)), None);
        assert_eq!(answers.get(&"a", at(3)), Some((&3, Duration::from_secs(1))));
        assert_eq!(answers.get(&"c", at(3)), Some((&4, Duration::ZERO)));
        assert_eq!(answers.bytes(), 100 + 2 * EACH);
        answers.insert("c", 5, 101 + EACH, at(4));
        assert_eq!(
            answers.get(&"c", at(4)),
            None,
            "it fits nowhere, and the old one is not the last"
        );
        assert_eq!(answers.bytes(), 40 + EACH);
    }

    #[test]
    fn neither_bytes_nor_memory_grow_with_the_number_of_answers() {
        let mut answers: LastGood<u64, u64> = LastGood::new(2_000, Duration::from_secs(10));
        for number in 0..10_000 {
            let key = number % 7 * (number % 11);
            answers.insert(key, number, number % 97, at(number / 100));
            assert!(answers.bytes() <= 2_000);
            let sum: u64 = answers.answers.values().map(|kept| kept.bytes).sum();
            assert_eq!(sum, answers.bytes());
            assert!(answers.order.len() <= 2 * answers.answers.len() + 16);
            assert_eq!(answers.get(&key, at(number / 100)).unwrap().0, &number);
        }
        for number in 0..10_000 {
            answers.insert(1_000 + number, number, 0, at(100));
        }
        let most = 2_000 / LastGood::<u64, u64>::OVERHEAD;
        assert_eq!(
            answers.answers.len() as u64,
            most,
            "empty answers count as well"
        );
    }
}
