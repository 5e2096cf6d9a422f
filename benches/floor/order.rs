//! The order of turns: 24 workers of two states each with three processes, begun agents first and first come, first
//! served.
//!
//! Each process serves one agent, so the number of processes tells how often a turn found its agent's process. The
//! times are those of the journal, from the fork's record on.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::Fallible;
use crate::bench_folder::{BenchFolder, WorkflowFolder};
use crate::goals::{GoalBound, Goals};
use crate::raymond::RaymondCommand;
use crate::scale::Scale;
use crate::summary::Summary;
use crate::table::{Table, short};
use crate::warm::api::MessagesApi;
use crate::warm::{installed, run_real, streams};

const WORKERS: usize = 24;

/// The number of turns of a run: two of each worker, and two of their parent.
const TURNS: f64 = 50.0;

/// The options of every run.
const OPTIONS: [&str; 4] = ["--max-procs", "3", "--stagger", "0s"];

const ORDERS: [&str; 2] = ["depth", "breadth"];

/// The measurements of one run; times in seconds.
struct OrderTimes {
    wall: f64,
    processes: f64,
    first: f64,
    half: f64,
}

pub(crate) fn figure(
    place: &BenchFolder,
    scale: &Scale,
    goals: &mut Goals,
) -> Fallible<Vec<Table>> {
    let rounds = scale.rounds.div_ceil(2);
    let mut table = Table::new(
        "24 workers of two states, three processes: begun agents first (depth), or as they come (breadth)",
        ["", "processes a turn", "first result, s", "half of them, s", "whole run, s"],
    );
    let fake = measure(rounds, |options| {
        let command = RaymondCommand::warm(place, &workflow(place)?, &[], options)?;
        let journal = command.journal();
        Ok((command.finish(scale.limit)?.wall, journal))
    })?;
    rows(&mut table, "stand-in", &fake);
    let most = fake[0].iter().map(|times| times.processes).fold(0.0, f64::max);
    goals.add("processes for 50 turns of 24 workers", most, GoalBound::AtMost(27.0), "");
    let what = "the same with the real Claude Code, time over breadth's";
    match installed("newest") {
        Ok(claude) => {
            let real = measure(rounds.min(3), |options| run_with(&claude, place, options))?;
            rows(&mut table, "Claude Code", &real);
            let wall = |order: &[OrderTimes]| Summary::of(order.iter().map(|times| times.wall));
            let gain = wall(&real[1]).median() / wall(&real[0]).median();
            goals.add(what, gain, GoalBound::AtLeast(1.5), " times");
        }
        Err(why) => {
            table.note(why.to_string());
            goals.missing(what, GoalBound::AtLeast(1.5), " times");
        }
    }
    Ok(vec![table])
}

/// Measures both orders by turns.
fn measure(
    rounds: usize,
    run: impl Fn(&[&str]) -> Fallible<(Duration, PathBuf)>,
) -> Fallible<[Vec<OrderTimes>; 2]> {
    let mut measured = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (times, order) in measured.iter_mut().zip(ORDERS) {
            let (wall, journal) = run(&[&OPTIONS[..], &["--order", order]].concat())?;
            times.push(read(&journal, wall)?);
        }
    }
    Ok(measured)
}

fn run_with(claude: &Path, place: &BenchFolder, options: &[&str]) -> Fallible<(Duration, PathBuf)> {
    let api = MessagesApi::start()?;
    let (spent, journal) = run_real(claude, place, &workflow(place)?, &api, options)?;
    Ok((spent.wall, journal))
}

fn rows(table: &mut Table, answerer: &str, measured: &[Vec<OrderTimes>; 2]) {
    for (order, times) in ORDERS.iter().zip(measured) {
        let shown = |number: fn(&OrderTimes) -> f64| Summary::of(times.iter().map(number)).shown();
        table.row([
            format!("{answerer}, {order}"),
            shown(|times| times.processes / TURNS),
            shown(|times| times.first),
            shown(|times| times.half),
            shown(|times| times.wall),
        ]);
    }
    let processes =
        measured.each_ref().map(|order| order.iter().map(|times| short(times.processes)));
    let processes = processes.map(|order| order.collect::<Vec<_>>().join(", "));
    table.note(format!(
        "{answerer}: processes {} (depth) and {} (breadth).",
        processes[0], processes[1]
    ));
}

/// Returns a workflow whose prompts are their answers.
fn workflow(place: &BenchFolder) -> Fallible<WorkflowFolder> {
    let workflow = place.workflow()?;
    let items: Vec<String> = (1..=WORKERS).map(|number| format!("item-{number}")).collect();
    std::fs::write(place.work().join("items.txt"), items.join("\n"))?;
    workflow.write("START.md", "<fork next=\"JOIN.md\" each=\"items.txt\">WORK.md</fork>")?;
    workflow.write("WORK.md", "<goto>CHECK.md</goto>")?;
    workflow.write("CHECK.md", "<result>done</result>")?;
    workflow.write("JOIN.md", "---\njoin: all\n---\n<result>all done</result>")?;
    Ok(workflow)
}

/// Reads the times from a journal.
fn read(journal: &Path, wall: Duration) -> Fallible<OrderTimes> {
    let text = std::fs::read_to_string(journal)?;
    let mut fork = None;
    let mut results = Vec::new();
    for line in text.lines() {
        let record: Value = serde_json::from_str(line)?;
        if record["event"] != "step_finished" {
            continue;
        }
        let at: Timestamp = record["at"].as_str().unwrap_or_default().parse()?;
        match record["transition"]["tag"].as_str() {
            Some("fork") => fork = Some(at),
            Some("result") if record["state"] == "CHECK.md" => results.push(at),
            _ => {}
        }
    }
    let fork = fork.ok_or("no agent was forked")?;
    if results.len() != WORKERS {
        return Err(format!("{} of {WORKERS} workers have a result", results.len()).into());
    }
    let after = |at: Timestamp| at.duration_since(fork).as_secs_f64();
    let processes = streams(&journal.with_file_name("steps"))?;
    Ok(OrderTimes {
        wall: wall.as_secs_f64(),
        processes: f64::from(u32::try_from(processes)?),
        first: after(results[0]),
        half: after(results[WORKERS / 2 - 1]),
    })
}
