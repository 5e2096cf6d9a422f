//! Rounds of the floor and raymond in turn, so that other load of the machine affects both alike.

use std::time::Instant;

use crate::Fallible;
use crate::disk::Disk;
use crate::place::{Place, Workflow};
use crate::raymond::Run;
use crate::scale::Scale;
use crate::spawn::floor;
use crate::spent::Spent;
use crate::summary::Summary;

/// The rounds of one comparison: the time of the floor and of raymond for the same steps.
#[derive(Debug)]
pub(crate) struct Rounds {
    pub(crate) steps: f64,
    pairs: Vec<(Spent, Spent)>,
    /// The measurement of the disk before each pair.
    disk: Vec<Disk>,
}

/// Measures the floor and raymond in turn.
pub(crate) fn rounds(
    place: &Place,
    workflow: &Workflow,
    steps: usize,
    beside: usize,
    scale: &Scale,
) -> Fallible<Rounds> {
    rounds_with(place, workflow, steps, beside, scale, &[])
}

/// Measures the same with further options for raymond.
pub(crate) fn rounds_with(
    place: &Place,
    workflow: &Workflow,
    steps: usize,
    beside: usize,
    scale: &Scale,
    options: &[&str],
) -> Fallible<Rounds> {
    let started = Instant::now();
    let permits = beside.to_string();
    let (mut pairs, mut disk) = (Vec::new(), Vec::new());
    while pairs.is_empty() || (pairs.len() < scale.rounds && started.elapsed() < scale.patience) {
        disk.push(Disk::now(place)?);
        let below = floor(place, steps, beside)?;
        let options: Vec<&str> = ["--max-procs", &permits].iter().chain(options).copied().collect();
        let run = Run::new(place, workflow, &[], &options)?;
        pairs.push((below, run.finish(scale.limit)?));
    }
    let steps = u32::try_from(steps).map_or(f64::NAN, f64::from);
    Ok(Rounds { steps, pairs, disk })
}

impl Rounds {
    pub(crate) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Returns summaries of a number: of the floor, of raymond, and of raymond's divided by the floor's in
    /// the same round.
    pub(crate) fn summaries(&self, number: impl Fn(&Spent) -> f64) -> [Summary; 3] {
        let each = |(below, raymond): &(Spent, Spent)| (number(below), number(raymond));
        let numbers: Vec<(f64, f64)> = self.pairs.iter().map(each).collect();
        [
            Summary::of(numbers.iter().map(|&(below, _)| below)),
            Summary::of(numbers.iter().map(|&(_, raymond)| raymond)),
            Summary::of(numbers.iter().map(|&(below, raymond)| raymond / below)),
        ]
    }

    /// Returns a summary of a number of the disk over the rounds.
    pub(crate) fn disk(&self, number: impl Fn(&Disk) -> f64) -> Summary {
        Summary::of(self.disk.iter().map(number))
    }
}
