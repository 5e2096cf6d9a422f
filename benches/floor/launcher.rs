//! The cost of the launcher, which enters a process of a turn in the registry before it is executed.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use raymond::process::registry::LAUNCH;

use crate::Fallible;
use crate::bench_folder::BenchFolder;
use crate::goals::{GoalBound, Goals};
use crate::raymond::{FAKE, RAYMOND, bare};
use crate::scale::Scale;
use crate::summary::Summary;
use crate::table::Table;

const ROUNDS: usize = 5;

pub(crate) fn figure(
    place: &BenchFolder,
    scale: &Scale,
    goals: &mut Goals,
) -> Fallible<Vec<Table>> {
    let registry = place.folder()?;
    let mut pairs = Vec::new();
    for _ in 0..ROUNDS {
        let direct = milliseconds(scale.spawns, || bare(Command::new(FAKE)))?;
        pairs.push((direct, milliseconds(scale.spawns, || launched(&registry))?));
    }
    let direct = Summary::of(pairs.iter().map(|&(direct, _)| direct));
    let launched = Summary::of(pairs.iter().map(|&(_, launched)| launched));
    let added = Summary::of(pairs.iter().map(|&(direct, launched)| launched - direct));
    let ratio = Summary::of(pairs.iter().map(|&(direct, launched)| launched / direct));
    goals.add(
        "launcher, added to the start of a process",
        added.median(),
        GoalBound::AtMost(1.0),
        " ms",
    );
    let mut table = Table::new(
        "A process started and waited for, milliseconds, median (least–greatest)",
        ["", "direct", "launched", "added", "launched over direct"],
    );
    let name = "the stand-in".to_owned();
    table.row([name, direct.shown(), launched.shown(), added.shown(), ratio.shown()]);
    Ok(vec![table])
}

fn launched(registry: &Path) -> Command {
    let mut command = bare(Command::new(RAYMOND));
    command.arg(LAUNCH).arg(registry).args(["run", "main", "main-1-0", FAKE]);
    command
}

/// Returns the mean time of a process, one at a time.
fn milliseconds(count: usize, command: impl Fn() -> Command) -> Fallible<f64> {
    let start_and_wait = || command().arg("--version").output();
    start_and_wait()?;
    let started = Instant::now();
    for _ in 0..count {
        start_and_wait()?;
    }
    Ok(started.elapsed().as_secs_f64() * 1_000.0 / f64::from(u32::try_from(count)?))
}
