//! The agent that `raymond show` is about: the one that is named, else the only one.

use crate::cli::agent_statuses::AgentStatuses;
use crate::cli::agent_table::AgentTable;
use crate::cli::args::readers::ShowArgs;
use crate::cli::exit::{CliExitCode, Error};
use crate::cli::table::{self, TableCell};
use crate::domain::id::{AgentId, RunId};
use crate::domain::run::Run;
use crate::domain::tree::AgentTree;
use crate::domain::tree::fold::{RowSubject, TreeRow};
use crate::plugin::styled::{StyledLine, TextTone};
use crate::store::layout::RunsRoot;
use crate::store::view::load_view;

/// The run and the agent that the arguments name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NamedAgent {
    pub(super) run: Option<RunId>,
    pub(super) agent: Option<AgentId>,
}

/// Returns what the arguments name. A single word is an agent if it can be one, else a run.
///
/// # Errors
/// [`Error::Usage`] if a run is given besides `--last`, [`Error::Name`] for a word that is neither.
pub(super) fn named(args: &ShowArgs) -> Result<NamedAgent, Error> {
    let (run, agent) = match (&args.run, &args.agent) {
        (Some(word), None) => match AgentId::parse(word) {
            Ok(agent) => (None, Some(agent)),
            Err(_) => (Some(RunId::parse(word)?), None),
        },
        (run, agent) => (run.as_deref().map(RunId::parse).transpose()?, agent.clone()),
    };
    if args.last && run.is_some() {
        return Err(Error::Usage("name a run, or give --last; not both".to_owned()));
    }
    Ok(NamedAgent { run, agent })
}

/// Returns the only agent of a run; `None` if there are several.
pub(super) fn only_agent(run: &Run) -> Option<AgentId> {
    let ended = run.finished.iter().map(|ended| &ended.id);
    let mut all = run.agents.keys().chain(ended);
    let first = all.next()?;
    all.next().is_none().then(|| first.clone())
}

/// Prints the agents of a run of several, each with the command that shows it.
///
/// # Errors
/// [`Error::Usage`] if something was asked for that only one agent has; [`Error::Store`] if the run cannot be read.
pub(super) fn list(args: &ShowArgs, root: &RunsRoot, id: &RunId) -> Result<CliExitCode, Error> {
    if args.json || args.step.is_some() {
        return Err(Error::Usage(format!(
            "{id} has several agents; name one: raymond show {id} AGENT; `raymond tree {id}` shows all"
        )));
    }
    let view = load_view(root, id)?;
    let statuses = AgentStatuses::of(&view, &root.run(id))?;
    table::print(commands(&view.run, &statuses))
}

fn commands(run: &Run, statuses: &AgentStatuses<'_>) -> Vec<StyledLine> {
    let table = AgentTable::of(AgentTree::of(run), |agent| statuses.status(agent));
    let rows = table.rows(false);
    let row = |row: &TreeRow| {
        let name = match &row.of {
            RowSubject::One(_) => format!("raymond show {} {}", run.workflow_id, table.name(row)),
            RowSubject::Many { .. } => table.name(row),
        };
        let state = TableCell::of(table.tone(row), &table.state_text(row));
        vec![name.into(), state, TableCell::of(TextTone::Plain, &table.summary(row))]
    };
    let cells: Vec<Vec<TableCell>> = rows.iter().map(row).collect();
    let count = run.agents.len() + run.finished.len();
    let head = format!("{} has {count} agents. To see one:", run.workflow_id);
    let mut lines = vec![StyledLine::of(TextTone::Strong, &head)];
    lines.extend(table::lines(&cells));
    lines.extend(table::plain(&AgentTable::hint(&rows, &run.workflow_id)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Cli;
    use crate::cli::args::CliCommand;
    use clap::Parser;

    fn parsed(line: &str) -> Result<NamedAgent, Error> {
        match Cli::try_parse_from(line.split(' ')).expect("arguments").command {
            CliCommand::Show(args) => named(&args),
            _ => panic!("another command"),
        }
    }

    #[test]
    fn single_word_is_an_agent_or_else_a_run() {
        let table = [
            ("raymond show tour main.1", Some("tour"), Some("main.1")),
            ("raymond show main.1", None, Some("main.1")),
            ("raymond show tour", Some("tour"), None),
            ("raymond show --last", None, None),
            ("raymond show --last main", None, Some("main")),
        ];
        for (line, run, agent) in table {
            let found = parsed(line).expect("names");
            assert_eq!(found.run.as_ref().map(RunId::as_str), run, "{line}");
            assert_eq!(found.agent.as_ref().map(AgentId::as_str), agent, "{line}");
        }
        assert!(parsed("raymond show --last tour").is_err());
        assert!(parsed("raymond show ../tour").is_err());
    }
}
