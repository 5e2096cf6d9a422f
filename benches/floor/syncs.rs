//! How often a step makes the disk flush: counted by strace, in a run that is not timed.

use std::process::{Command, Stdio};

use crate::Fallible;
use crate::chain;
use crate::place::{Place, Workflow};
use crate::raymond::{Run, bare};
use crate::scale::Scale;
use crate::table::{Table, short, whole};

const CALLS: [&str; 5] = ["fsync", "fdatasync", "sync_file_range", "syncfs", "sync"];

pub(crate) fn figure(place: &Place, scale: &Scale) -> Fallible<Vec<Table>> {
    let found = bare(Command::new("strace")).arg("-V").stdout(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        return Err("strace is not installed".into());
    }
    let mut table =
        Table::new("Flushes of the disk, counted by strace", ["", "flushes", "steps", "a step"]);
    let steps = scale.steps.min(400);
    let once = count(place, &chain::alone(place, 1)?, 1, scale)?;
    table.row(["a run of one step".to_owned(), whole(once), "1".to_owned(), String::new()]);
    for &agents in scale.agents {
        let (workflow, steps) = if agents == 1 {
            (chain::alone(place, steps)?, steps)
        } else {
            chain::beside(place, agents, steps / agents)?
        };
        let flushes = count(place, &workflow, agents, scale)?;
        let steps = u32::try_from(steps).map_or(f64::NAN, f64::from);
        let what = format!("{agents} at the same time");
        table.row([what, whole(flushes), whole(steps), short(flushes / steps)]);
    }
    Ok(vec![table])
}

fn count(place: &Place, workflow: &Workflow, beside: usize, scale: &Scale) -> Fallible<f64> {
    let report = place.folder()?.join("strace");
    let report_text = report.display().to_string();
    let calls = format!("trace={}", CALLS.join(","));
    let strace = ["strace", "-f", "--seccomp-bpf", "-c", "-o", &report_text, "-e", &calls];
    let permits = beside.to_string();
    Run::new(place, workflow, &strace, &["--max-procs", &permits])?.finish(scale.limit)?;
    let report = std::fs::read_to_string(report)?;
    let calls = report.lines().filter_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let call = columns.last()?;
        CALLS.contains(call).then(|| columns.get(3)?.parse::<f64>().ok())?
    });
    Ok(calls.sum())
}
