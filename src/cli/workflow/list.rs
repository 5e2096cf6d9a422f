//! `raymond workflow list`: the runs of programs; as JSON also the programs that were defined.

use serde_json::json;

use crate::cli::args::AllRunsArgs;
use crate::cli::exit::{CliExitCode, Error};
use crate::cli::list::{ListedRun, all};
use crate::cli::table::{self, TableCell};
use crate::cli::{output, status_word};
use crate::domain::agent::Agent;
use crate::domain::printable::one_line;
use crate::domain::program_execution::ProgramExecution;
use crate::plugin::styled::TextTone;
use crate::store::dataspace::{Dataspace, DefinedProgram, ProgramListing};
use crate::store::view::RunView;

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
    let mut lines = Vec::new();
    if !runs.is_empty() {
        let head = ["run", "status", "program", "state", ""];
        lines.push(head.map(|title| TableCell::of(TextTone::Faint, title)).to_vec());
    }
    lines.extend(runs.iter().flat_map(rows));
    let shown = table::print(table::lines(&lines))?;
    if runs.is_empty() {
        output::tell("no runs of programs; start one: raymond workflow start FILE --id NAME");
    }
    output::tell("`raymond` lists the defined programs");
    Ok(shown)
}

fn definition(one: &DefinedProgram) -> serde_json::Value {
    json!({ "name": one.name, "label": one.label, "file": one.file, "program": one.program, "at": one.at })
}

fn run(ListedRun { id, view, .. }: &ListedRun) -> serde_json::Value {
    let Ok(view) = view else { return json!({ "run": id }) };
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
        "programs": names(view),
        "executions": executions,
        "total_cost_usd": view.run.total_cost_usd,
    })
}

/// Returns a row for each live execution of a program; a single row for a run without any.
fn rows(ListedRun { id, view, .. }: &ListedRun) -> Vec<Vec<TableCell>> {
    let Ok(view) = view else { return Vec::new() };
    let word = status_word::word(view);
    let row = |program: &str, state: &str, waits: String| -> Vec<TableCell> {
        let status = TableCell::of(status_word::tone(word), word);
        vec![
            id.to_string().into(),
            status,
            program.to_owned().into(),
            state.to_owned().into(),
            waits.into(),
        ]
    };
    let of_execution = |own: &ProgramExecution| {
        let waits = awaiting(own).map(|what| format!("waits for {}", one_line(what)));
        row(&own.name, &own.position.current, waits.unwrap_or_default())
    };
    let rows: Vec<_> =
        view.run.agents.values().filter_map(Agent::program).map(of_execution).collect();
    if rows.is_empty() { vec![row(&names(view).join(", "), "", String::new())] } else { rows }
}

fn names(view: &RunView) -> Vec<&str> {
    view.run.definitions.values().map(|own| own.name.as_str()).collect()
}

fn awaiting(own: &ProgramExecution) -> Option<&str> {
    own.position.wait.as_ref().map(|wait| wait.awaiting.as_str())
}
