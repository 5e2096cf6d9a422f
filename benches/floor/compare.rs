//! Rounds of the floor and raymond in turn, so that other load of the machine affects both alike.

use std::time::Instant;

use crate::Fallible;
use crate::bench_folder::{BenchFolder, WorkflowFolder};
use crate::disk::DiskTimes;
use crate::raymond::RaymondCommand;
use crate::scale::Scale;
use crate::spawn::floor;
use crate::spent::SpentTime;
use crate::summary::Summary;

/// The rounds of one comparison: the time of the floor and of raymond for the same steps.
#[derive(Debug)]
pub(crate) struct ComparisonRounds {
    pub(crate) steps: f64,
    pairs: Vec<(SpentTime, SpentTime)>,
    /// The measurement of the disk before each pair.
    disk: Vec<DiskTimes>,
}

/// Measures the floor and raymond in turn.
pub(crate) fn rounds(
    place: &BenchFolder,
    workflow: &WorkflowFolder,
    steps: usize,
    beside: usize,
    scale: &Scale,
) -> Fallible<ComparisonRounds> {
    rounds_with(place, workflow, steps, beside, scale, &[])
}

/// Measures the same with further options for raymond.
pub(crate) fn rounds_with(
    place: &BenchFolder,
    workflow: &WorkflowFolder,
    steps: usize,
    beside: usize,
    scale: &Scale,
    options: &[&str],
) -> Fallible<ComparisonRounds> {
    let started = Instant::now();
    let permits = beside.to_string();
    let (mut pairs, mut disk) = (Vec::new(), Vec::new());
    while pairs.is_empty() || (pairs.len() < scale.rounds && started.elapsed() < scale.row_limit) {
        disk.push(DiskTimes::now(place)?);
        let below = floor(place, steps, beside)?;
        let options: Vec<&str> = ["--max-procs", &permits].iter().chain(options).copied().collect();
        let run = RaymondCommand::new(place, workflow, &[], &options)?;
        pairs.push((below, run.finish(scale.limit)?));
    }
    let steps = u32::try_from(steps).map_or(f64::NAN, f64::from);
    Ok(ComparisonRounds { steps, pairs, disk })
}

impl ComparisonRounds {
    pub(crate) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Returns summaries of a number: of the floor, of raymond, and of raymond's divided by the floor's in
    /// the same round.
    pub(crate) fn summaries(&self, number: impl Fn(&SpentTime) -> f64) -> [Summary; 3] {
        let each = |(below, raymond): &(SpentTime, SpentTime)| (number(below), number(raymond));
        let numbers: Vec<(f64, f64)> = self.pairs.iter().map(each).collect();
        [
            Summary::of(numbers.iter().map(|&(below, _)| below)),
            Summary::of(numbers.iter().map(|&(_, raymond)| raymond)),
            Summary::of(numbers.iter().map(|&(below, raymond)| raymond / below)),
        ]
    }

    /// Returns a summary of a number of raymond beyond the floor's in the same round.
    pub(crate) fn differences(&self, number: impl Fn(&SpentTime) -> f64) -> Summary {
        Summary::of(self.pairs.iter().map(|(floor, raymond)| number(raymond) - number(floor)))
    }

    /// Returns a summary of a number of the disk over the rounds.
    pub(crate) fn disk(&self, number: impl Fn(&DiskTimes) -> f64) -> Summary {
        Summary::of(self.disk.iter().map(number))
    }
}
