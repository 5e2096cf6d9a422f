//! Snapshots of a worktree with many files: the time of a step with one over that of the same step without.
//!
//! The steps are nodes of a graph that write one file each, and turns that change nothing. A node takes a millisecond,
//! so the ratio shows a snapshot at its dearest; a turn of Claude Code takes seconds.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use raymond::domain::time::Timestamp;
use serde_json::Value;

use crate::bench_folder::{BenchFolder, WorkflowFolder};
use crate::goals::{GoalBound, Goals};
use crate::raymond::{RaymondCommand, bare};
use crate::scale::Scale;
use crate::summary::Summary;
use crate::table::{Table, short};
use crate::{Fallible, chain};

/// The files of the repository, in so many directories.
const FILES: usize = 5_000;
const DIRECTORIES: usize = 100;

/// The steps of a run.
const STEPS: usize = 30;

/// The frontmatter, and the keys of a graph, of an agent with a worktree; without snapshots and with them.
const TERMS: [&str; 2] = ["worktree: true\nsnapshots: false\n", "worktree: true\n"];

pub(crate) fn figure(
    place: &BenchFolder,
    scale: &Scale,
    goals: &mut Goals,
) -> Fallible<Vec<Table>> {
    make_repository(&place.work())?;
    let title =
        format!("A step in a worktree of {FILES} files, milliseconds, median (least–greatest)");
    let mut table = Table::new(&title, ["", "without a snapshot", "with one", "ratio", "rounds"]);
    let kinds = [
        (
            "a node that writes a file",
            "graph_advanced",
            [graph(place, TERMS[0])?, graph(place, TERMS[1])?],
            25.0,
        ),
        (
            "a turn that changes nothing",
            "step_finished",
            [turns(place, TERMS[0])?, turns(place, TERMS[1])?],
            6.0,
        ),
    ];
    for (name, event, workflows, goal) in &kinds {
        let (mut without, mut with, mut ratios) = (vec![], vec![], vec![]);
        for _ in 0..scale.rounds.min(3) {
            let [bare, full] = [
                step_ms(place, &workflows[0], event, scale)?,
                step_ms(place, &workflows[1], event, scale)?,
            ];
            without.push(bare);
            with.push(full);
            ratios.push(full / bare);
        }
        let extra = Summary::of(with.iter().zip(&without).map(|(with, without)| with - without));
        let rounds = ratios.len().to_string();
        let [without, with, ratios] = [without, with, ratios].map(Summary::of);
        table.row([(*name).to_owned(), without.shown(), with.shown(), ratios.shown(), rounds]);
        table.note(format!("The snapshot of {name} takes {} ms.", short(extra.median())));
        goals.add(
            format!("{name} with a snapshot over one without"),
            ratios.median(),
            GoalBound::AtMost(*goal),
            "",
        );
    }
    Ok(vec![table])
}

/// Makes a repository with a commit of all its files.
fn make_repository(top: &Path) -> Fallible<()> {
    for directory in 0..DIRECTORIES {
        let directory = top.join(format!("d{directory}"));
        std::fs::create_dir_all(&directory)?;
        for file in 0..FILES / DIRECTORIES {
            std::fs::write(directory.join(format!("f{file}")), format!("{file}\n").repeat(100))?;
        }
    }
    let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
    for words in [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "-m", "all"]] {
        let ended = bare(Command::new("git")).current_dir(top).args(who).args(words).status()?;
        if !ended.success() {
            return Err(format!("git {}: {ended}", words[0]).into());
        }
    }
    Ok(())
}

/// Writes a workflow of one agent in a worktree, whose turns change nothing.
fn turns(place: &BenchFolder, terms: &str) -> Fallible<WorkflowFolder> {
    chain::switching(place, STEPS, ["", &format!("---\n{terms}---\n")])
}

/// Writes a graph whose nodes write a file each.
fn graph(place: &BenchFolder, terms: &str) -> Fallible<WorkflowFolder> {
    let mut text = format!(
        "name: files\nversion: 1.0.0\ndescription: Writes files.\n{terms}start_node: n0\ninitial_state: {{}}\nnodes:\n"
    );
    for node in 0..STEPS {
        let next = if node + 1 < STEPS { format!("n{}", node + 1) } else { "done".to_owned() };
        writeln!(
            text,
            "  n{node}:\n    type: action\n    actions:\n      - {{ type: write_file, path: d{node}/f{node}, content: changed }}\n    on_success: {next}\n    on_failure: failed"
        )?;
    }
    text.push_str("endings:\n  done: { type: success, message: Done }\n  failed: { type: error, message: '${computed.last_error}' }\n");
    let workflow = place.workflow()?;
    workflow.write("workflow.yaml", &text)?;
    Ok(workflow)
}

/// Runs a workflow; returns the time between two of its steps, by its journal.
fn step_ms(
    place: &BenchFolder,
    workflow: &WorkflowFolder,
    event: &str,
    scale: &Scale,
) -> Fallible<f64> {
    // Each run has a branch of its own in the repository.
    let git =
        bare(Command::new("git")).current_dir(place.work()).args(["worktree", "prune"]).status()?;
    let removed = bare(Command::new("git"))
        .current_dir(place.work())
        .args(["update-ref", "-d", "refs/heads/raymond/bench/main"])
        .status()?;
    let snapshots = bare(Command::new("git"))
        .current_dir(place.work())
        .args(["update-ref", "-d", "refs/raymond/snapshots/bench/main"])
        .status()?;
    if ![git, removed, snapshots].iter().all(std::process::ExitStatus::success) {
        return Err("git cannot remove what is left of a run".into());
    }
    let run = RaymondCommand::new(place, workflow, &[], &[])?;
    let (journal, trees) = (run.journal(), run.dir.join("worktrees"));
    run.finish(scale.limit * 4)?;
    std::fs::remove_dir_all(trees)?;
    let text = std::fs::read_to_string(journal)?;
    let mut times = Vec::new();
    for line in text.lines() {
        let record: Value = serde_json::from_str(line)?;
        if record["event"] == event {
            times.push(serde_json::from_value::<Timestamp>(record["at"].clone())?);
        }
    }
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        return Err(format!("there is no {event}").into());
    };
    let steps = u32::try_from(times.len() - 1)?;
    Ok(f64::from(u32::try_from(last.since(*first))?) / f64::from(steps))
}
