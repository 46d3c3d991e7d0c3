//! How long a breaker stays open: base, growth by failed probe episodes, cap, the provider's hint, jitter.

use core::time::Duration;

use crate::policy::Checked;
use crate::tick::millis;

/// The cooldown in whole milliseconds:
/// `max(min(base x backoff^max(0, episodes - backoff_after), max(base, max_cooldown)), min(hint, max_retry_after))`,
/// lengthened by up to `jitter`, so never below the hint.
pub(crate) fn cooldown(
    policy: &Checked,
    base: Duration,
    episodes: u32,
    hint: Option<Duration>,
    random: &mut SplitMix,
) -> Duration {
    let cap = millis(base.max(policy.max_cooldown)) as f64;
    let mut grown = millis(base) as f64;
    for _ in policy.backoff_after..episodes {
        if grown >= cap || policy.backoff <= 1.0 {
            break;
        }
        grown *= policy.backoff;
    }
    let hint = hint.map_or(Duration::ZERO, |hint| hint.min(policy.max_retry_after));
    let plain = (grown.min(cap) as u64).max(millis(hint));
    let longer = if policy.jitter > 0.0 {
        (plain as f64 * policy.jitter * random.unit()) as u64
    } else {
        0
    };
    Duration::from_millis(plain.saturating_add(longer))
}

/// SplitMix64 (Steele, Lea, Flood 2014): small, fast and good enough to keep a fleet from waking as one.
#[derive(Clone, Debug)]
pub(crate) struct SplitMix(u64);

impl SplitMix {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In `0.0..1.0`.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Policy, PolicySpec};

    fn seconds(policy: &Policy, episodes: u32, hint: Option<u64>) -> u64 {
        let hint = hint.map(Duration::from_secs);
        let base = policy.cooldown();
        cooldown(
            policy.checked(),
            base,
            episodes,
            hint,
            &mut SplitMix::new(1),
        )
        .as_secs()
    }

    #[test]
    fn growth_begins_after_the_free_episodes_and_ends_at_the_cap() {
        let spec = PolicySpec {
            jitter: Some(0.0),
            backoff_after: Some(2),
            ..PolicySpec::default()
        };
        let policy = Policy::new(&spec).unwrap();
        let grown: Vec<_> = (0..8)
            .map(|episodes| seconds(&policy, episodes, None))
            .collect();
        assert_eq!(grown, [15, 15, 15, 30, 60, 120, 120, 120]);
        assert_eq!(seconds(&policy, u32::MAX, None), 120);
    }

    #[test]
    fn a_hint_lengthens_up_to_its_cap_and_never_shortens() {
        let policy = Policy::new(&PolicySpec {
            jitter: Some(0.0),
            ..PolicySpec::default()
        })
        .unwrap();
        assert_eq!(seconds(&policy, 0, Some(3)), 15);
        assert_eq!(seconds(&policy, 0, Some(90)), 90);
        assert_eq!(seconds(&policy, 0, Some(86_400)), 3_600);
    }

    #[test]
    fn the_generator_is_splitmix64() {
        let mut random = SplitMix::new(1_234_567);
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!([(); 5].map(|()| random.next()), published);
    }

    #[test]
    fn jitter_lengthens_by_up_to_its_share_evenly() {
        let policy = Policy::new(&PolicySpec {
            jitter: Some(0.5),
            ..PolicySpec::default()
        })
        .unwrap();
        let (base, mut random) = (Duration::from_secs(10), SplitMix::new(1));
        let mut lengths: Vec<_> = (0..1_000)
            .map(|_| cooldown(policy.checked(), base, 0, None, &mut random).as_millis())
            .collect();
        lengths.sort_unstable();
        let (shortest, longest) = (lengths[0], lengths[999]);
        assert!((10_000..10_050).contains(&shortest), "{shortest}");
        assert!((14_950..15_000).contains(&longest), "{longest}");
        assert!((12_250..12_750).contains(&lengths[500]), "{}", lengths[500]);
    }
}
