//! `Study`: many outages, each played against every subject, and what they come to.

use core::time::Duration;

use crate::{Measures, Outage, Run, Subject, Traffic, incident_lengths};

/// An outage, and by how many gateways it is met.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that callers write out"
)]
pub struct Scene {
    /// How it is called in tables.
    pub name: String,
    /// What happens.
    pub outage: Outage,
    /// Gateways, each with a breaker of its own.
    pub replicas: usize,
}

impl Scene {
    /// Each outage at one gateway, then what four gateways make of the hardest, and what is wrong in health.
    pub fn all() -> Vec<Self> {
        let alone = |outage: Outage| Self {
            name: outage.to_string(),
            outage,
            replicas: 1,
        };
        let four = Self {
            name: "hard down, four replicas".to_owned(),
            replicas: 4,
            ..alone(Outage::Down)
        };
        let incidents = Outage::INCIDENTS.into_iter().map(alone);
        incidents.chain([four, alone(Outage::Bumps)]).collect()
    }
}

/// Many outages. Their lengths are drawn from those of real incidents.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data that callers write out"
)]
pub struct Study<'a> {
    /// Who calls.
    pub traffic: &'a Traffic,
    /// What is compared.
    pub subjects: &'a [Subject],
    /// Outages of each kind, at least 1; every subject meets the same.
    pub runs: u32,
    /// What all chance follows from.
    pub seed: u64,
}

/// What one subject made of one scene. Times in seconds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Cell {
    /// The subject's name.
    pub subject: String,
    /// Attempts wasted on the failing provider; the median of the runs.
    pub wasted: f64,
    /// What callers lost; the median.
    pub lost: f64,
    /// The same over all runs, which the longest incidents decide.
    pub lost_in_all: f64,
    /// Answers that broke off, the median.
    pub broken: f64,
    /// Calls of the incident, of a hundred over all runs, that were refused though the provider would have answered them.
    pub missed: f64,
    /// Calls in health refused, of a thousand, over all runs.
    pub wrong: f64,
    /// The median time until the breaker opened; none where it did not in half of the runs.
    pub detected: Option<f64>,
    /// The share of runs in which it opened.
    pub noticed: f64,
    /// The median time from the end until it closed, of the runs in which it opened.
    pub recovered: Option<f64>,
}

impl Study<'_> {
    /// Plays one scene: a cell for every subject, in their order.
    pub fn play(&self, scene: &Scene) -> Vec<Cell> {
        let lengths = incident_lengths();
        let run = |number: u32| {
            let seed = self.seed.wrapping_add(u64::from(number));
            let lot = fastrand::Rng::with_seed(seed).usize(0..lengths.len().max(1));
            Run {
                traffic: self.traffic,
                outage: scene.outage,
                incident: lengths
                    .get(lot)
                    .copied()
                    .unwrap_or(Duration::from_secs(3_600)),
                replicas: scene.replicas,
                seed,
            }
        };
        let runs: Vec<Run<'_>> = (0..self.runs.max(1)).map(run).collect();
        let cell = |subject: &Subject| {
            let played = runs.iter().map(|run| run.play(subject));
            Cell::of(subject, &played.collect::<Vec<_>>())
        };
        self.subjects.iter().map(cell).collect()
    }
}

impl Cell {
    fn of(subject: &Subject, runs: &[Measures]) -> Self {
        let of = |value: fn(&Measures) -> f64| median(runs.iter().map(value).collect());
        let detected = runs.iter().map(|run| seconds(run.detected));
        let times = detected.clone().map(|time| time.unwrap_or(f64::INFINITY));
        let noticed = detected.flatten().count() as f64 / runs.len().max(1) as f64;
        let recovered: Vec<f64> = runs
            .iter()
            .filter_map(|run| seconds(run.recovered))
            .collect();
        let sum = |value: fn(&Measures) -> u64| runs.iter().map(value).sum::<u64>() as f64;
        let lost = |run: &Measures| run.lost.as_secs_f64();
        Self {
            subject: subject.name.clone(),
            wasted: of(|run| run.wasted as f64).unwrap_or(0.0),
            lost: of(|run| run.lost.as_secs_f64()).unwrap_or(0.0),
            lost_in_all: runs.iter().map(lost).sum(),
            broken: of(|run| run.broken as f64).unwrap_or(0.0),
            missed: 100.0 * sum(|run| run.missed) / sum(|run| run.calls).max(1.0),
            wrong: 1_000.0 * sum(|run| run.wrong) / sum(|run| run.healthy).max(1.0),
            detected: median(times.collect()).filter(|time| time.is_finite()),
            noticed,
            recovered: median(recovered),
        }
    }
}

fn seconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64())
}

/// The lower one of two in the middle.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len().checked_sub(1)? / 2;
    values.get(middle).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_lower_middle() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), Some(2.0));
    }

    #[test]
    fn a_small_study_says_what_the_large_one_says() {
        let traffic = Traffic::recorded().thinned(40, 1);
        let subjects = [Subject::no_breaker(), Subject::defaults()];
        let study = Study {
            traffic: &traffic,
            subjects: &subjects,
            runs: 3,
            seed: 1,
        };
        let scenes = Scene::all();
        let down = study.play(&scenes[0]);
        assert_eq!(down, study.play(&scenes[0]));
        let [bare, ours] = &down[..] else {
            panic!("{down:?}")
        };
        assert!(ours.wasted < bare.wasted / 5.0, "{down:?}");
        assert!(ours.lost < bare.lost / 5.0, "{down:?}");
        assert_eq!((bare.noticed, ours.noticed), (0.0, 1.0));
        assert_eq!(bare.detected, None);
        assert!(ours.detected.unwrap() > 0.0 && ours.recovered.unwrap() > 0.0);
    }
}
