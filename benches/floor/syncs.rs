//! The flushes of the disk in a step: counted by strace, in a run that is not timed.

use std::process::{Command, Stdio};

use crate::Fallible;
use crate::bench_folder::{BenchFolder, WorkflowFolder};
use crate::chain;
use crate::goals::{GoalBound, Goals};
use crate::raymond::{RaymondCommand, bare};
use crate::scale::Scale;
use crate::table::{Table, short, whole};

const HEAD: [&str; 5] = ["", "flushes", "steps", "a step", "a further step"];
const CALLS: [&str; 5] = ["fsync", "fdatasync", "sync_file_range", "syncfs", "sync"];

pub(crate) fn figure(
    place: &BenchFolder,
    scale: &Scale,
    goals: &mut Goals,
) -> Fallible<Vec<Table>> {
    let mut table = Table::new("Flushes of the disk, counted by strace", HEAD);
    let steps = scale.steps.min(400);
    let once = count(place, &chain::alone(place, 1)?, 1, scale)?;
    let [none, empty] = [String::new(), String::new()];
    table.row(["a run of one step".to_owned(), whole(once), "1".to_owned(), none, empty]);
    for &agents in scale.agents {
        let (workflow, steps) = if agents == 1 {
            (chain::alone(place, steps)?, steps)
        } else {
            chain::beside(place, agents, steps / agents)?
        };
        let flushes = count(place, &workflow, agents, scale)?;
        let steps = u32::try_from(steps).map_or(f64::NAN, f64::from);
        let further = (flushes - once) / (steps - 1.0);
        let goal = if agents == 1 { 1.0 } else { 0.5 };
        goals.add(
            format!("fsyncs a step, {agents} at a time"),
            further,
            GoalBound::AtMost(goal),
            "",
        );
        let what = format!("{agents} at the same time");
        let cells = [whole(flushes), whole(steps), short(flushes / steps), short(further)];
        let [flushes, steps, each, further] = cells;
        table.row([what, flushes, steps, each, further]);
    }
    table.note(
        "A further step is beyond the run of one step, which has the run's start and end; that",
    );
    table.note("is what the goal is about.");
    Ok(vec![table])
}

/// Returns the number of flushes in a run.
pub(crate) fn count(
    place: &BenchFolder,
    workflow: &WorkflowFolder,
    beside: usize,
    scale: &Scale,
) -> Fallible<f64> {
    let found = bare(Command::new("strace")).arg("-V").stdout(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        return Err("strace is not installed".into());
    }
    let report = place.folder()?.join("strace");
    let report_text = report.display().to_string();
    let calls = format!("trace={}", CALLS.join(","));
    let strace = ["strace", "-f", "--seccomp-bpf", "-c", "-o", &report_text, "-e", &calls];
    let permits = beside.to_string();
    RaymondCommand::new(place, workflow, &strace, &["--max-procs", &permits])?
        .finish(scale.limit)?;
    let report = std::fs::read_to_string(report)?;
    let calls = report.lines().filter_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let call = columns.last()?;
        CALLS.contains(call).then(|| columns.get(3)?.parse::<f64>().ok())?
    });
    Ok(calls.sum())
}
