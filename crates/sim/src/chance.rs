//! Chance that belongs to a place: a generator for each call, attempt or stretch of time, so that what one subject does
//! cannot change what another one meets.

/// A generator for this place. Places that are close to one another have nothing in common.
pub(crate) fn chance(place: &[u64]) -> fastrand::Rng {
    fastrand::Rng::with_seed(place.iter().fold(0, |seed, part| mixed(seed ^ part)))
}

/// SplitMix64's finish: each bit of the input changes half of the output's.
const fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_independent() {
        let fails = |call, attempt| chance(&[7, call, attempt]).u32(0..10) < 6;
        let both = (0..10_000).filter(|call| fails(*call, 0) && fails(*call, 1));
        let both = both.count();
        assert!((3_400..3_800).contains(&both), "{both}");
        assert_eq!(chance(&[1, 2]).u64(..), chance(&[1, 2]).u64(..));
        assert_ne!(chance(&[1, 2]).u64(..), chance(&[2, 1]).u64(..));
    }
}
