//! How a run is summed up when it has ended or holds still.

use std::fmt::Write as _;
use std::io::IsTerminal;

use crate::domain::run::{Ending, Pause, Run, Status};
use crate::plugin::sentence::{date, printable};

/// A line for each agent that has ended. Results stand there as they are, but on a terminal without
/// what would steer it.
#[must_use]
pub fn endings(run: &Run) -> String {
    let text = all_endings(run);
    if std::io::stdout().is_terminal() { printable(&text) } else { text }
}

fn all_endings(run: &Run) -> String {
    run.finished.iter().fold(String::new(), |mut text, agent| {
        let _ = match &agent.ending {
            Ending::Result(payload) => {
                writeln!(text, "Agent {} terminated with result: {payload}", agent.id)
            }
            Ending::Error(error) => writeln!(text, "Agent {} failed: {error}", agent.id),
        };
        text
    })
}

/// What it comes to, and how to go on.
#[must_use]
pub fn closing(run: &Run) -> String {
    let spent = run.total_cost_usd;
    let id = &run.workflow_id;
    match (run.status, &run.pause) {
        (Status::Completed, _) => {
            format!("run {id} ended well, {spent} spent; `raymond log {id}` tells how")
        }
        (Status::Failed, _) => {
            let failed = run
                .finished
                .iter()
                .filter(|agent| matches!(agent.ending, Ending::Error(_)))
                .count();
            format!(
                "run {id} ended, {failed} of {} agents failed, {spent} spent",
                run.finished.len()
            )
        }
        (_, Some(pause @ Pause::Budget { .. })) => {
            format!("paused: {pause}; go on with more: raymond run {id} --budget USD")
        }
        (_, Some(pause @ Pause::UsageLimit { resets: Some(resets), .. })) => {
            let resets = date(*resets);
            format!("paused: {pause}; it resets {resets}; {spent} spent; go on: raymond run {id}")
        }
        (_, Some(pause @ Pause::Plugin { .. })) => format!(
            "paused: {pause}; {spent} spent; when that is mended, go on: raymond run {id}, or without what raymond.yaml and --plugin asked for: raymond run {id} --no-plugins"
        ),
        (_, Some(pause @ Pause::Asking { .. })) => format!(
            "paused: {pause}; {spent} spent; answer with `raymond answer {id} NODE=TEXT`, then go on: raymond run {id}"
        ),
        (_, Some(pause @ Pause::Waiting { first, .. })) if first.contains("(signal ") => format!(
            "paused: {pause}; {spent} spent; assert it with `raymond signal`, then go on: raymond run {id}"
        ),
        (_, Some(pause)) => format!("paused: {pause}; {spent} spent; go on: raymond run {id}"),
        (_, None) => format!("run {id} holds still, {spent} spent; go on: raymond run {id}"),
    }
}
