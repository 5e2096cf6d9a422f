//! `raymond workflow list`: the programs that were defined, and the runs of programs.

use serde_json::json;

use crate::cli::args::AllRunsArgs;
use crate::cli::exit::{CliExitCode, Error};
use crate::cli::list::{ListedRun, all};
use crate::cli::{output, status_word};
use crate::domain::agent::Agent;
use crate::domain::printable::one_line;
use crate::domain::program_execution::ProgramExecution;
use crate::store::dataspace::{Dataspace, DefinedProgram, ProgramListing};

pub(super) fn list(args: &AllRunsArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.root();
    let ProgramListing { defined, warnings } = Dataspace::of(&root).all_defined()?;
    for warning in &warnings {
        output::warn(warning);
    }
    let runs: Vec<ListedRun> = all(&root)?
        .into_iter()
        .filter(|run| run.view.as_ref().is_ok_and(|view| !view.run.definitions.is_empty()))
        .collect();
    if args.json {
        return output::print_json(&json!({
            "definitions": defined.iter().map(definition).collect::<Vec<_>>(),
            "runs": runs.iter().map(run).collect::<Vec<_>>(),
        }));
    }
    let mut text = String::new();
    if !defined.is_empty() {
        let rows: Vec<Vec<String>> = defined
            .iter()
            .map(|one| {
                let label = one.label.as_deref().map(one_line).unwrap_or_default();
                vec![one.name.clone(), one.file.display().to_string(), label]
            })
            .collect();
        text.push_str("defined:\n");
        text.push_str(&output::table(&rows));
    }
    if !runs.is_empty() {
        text.push_str(if text.is_empty() { "runs:\n" } else { "\nruns:\n" });
        text.push_str(&output::table(&runs.iter().flat_map(rows).collect::<Vec<_>>()));
    }
    if text.is_empty() {
        output::tell("no programs yet; start one: raymond workflow start FILE --id NAME");
    }
    output::print(&text)
}

fn definition(one: &DefinedProgram) -> serde_json::Value {
    json!({ "name": one.name, "label": one.label, "file": one.file, "program": one.program, "at": one.at })
}

fn run(ListedRun { id, view, .. }: &ListedRun) -> serde_json::Value {
    let Ok(view) = view else { return json!({ "run": id }) };
    let names: Vec<&str> = view.run.definitions.values().map(|own| own.name.as_str()).collect();
    let executions: Vec<_> = view
        .run
        .agents
        .values()
        .filter_map(|agent| Some((agent, agent.program()?)))
        .map(|(agent, own)| {
            json!({
                "agent": agent.id,
                "name": own.name,
                "label": own.label,
                "state": &*own.position.current,
                "awaiting": awaiting(own),
            })
        })
        .collect();
    json!({
        "run": id,
        "status": status_word::word(view),
        "programs": names,
        "executions": executions,
        "total_cost_usd": view.run.total_cost_usd,
    })
}

/// Returns a row for each live execution of a program; a single row for a run without any.
fn rows(ListedRun { id, view, .. }: &ListedRun) -> Vec<Vec<String>> {
    let Ok(view) = view else { return Vec::new() };
    let word = status_word::word(view).to_owned();
    let row = |own: &ProgramExecution| {
        let waits =
            awaiting(own).map_or(String::new(), |what| format!("waits for {}", one_line(what)));
        vec![
            id.to_string(),
            word.clone(),
            own.name.clone(),
            own.position.current.to_string(),
            waits,
        ]
    };
    let programs = view.run.agents.values().filter_map(Agent::program);
    let rows: Vec<Vec<String>> = programs.map(row).collect();
    if !rows.is_empty() {
        return rows;
    }
    let names: Vec<&str> = view.run.definitions.values().map(|own| own.name.as_str()).collect();
    vec![vec![id.to_string(), word, names.join(", ")]]
}

fn awaiting(own: &ProgramExecution) -> Option<&str> {
    own.position.wait.as_ref().map(|wait| wait.awaiting.as_str())
}
