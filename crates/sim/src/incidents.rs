//! How long incidents last: 294 that two providers reported. `data/README.md` says where they are from.

use core::time::Duration;

/// Lengths of reported incidents, in the order of the data.
pub fn incident_lengths() -> Vec<Duration> {
    let rows = include_str!("../data/incidents.csv").lines().skip(1);
    let minutes = rows.filter_map(|row| row.rsplit(',').next()?.parse().ok());
    minutes
        .map(|minutes: u64| Duration::from_secs(60 * minutes))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_read() {
        let mut lengths = incident_lengths();
        lengths.sort();
        assert_eq!(lengths.len(), 294);
        assert_eq!(lengths[147], Duration::from_secs(71 * 60));
        assert_eq!(lengths[293], Duration::from_secs(3_030 * 60));
    }
}
