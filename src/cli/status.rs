//! `raymond status`: the status of a run and of its agents, and the processes that a killed raymond has left.

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::actor::context::now;
use crate::cli::agent_table::{AgentStatuses, AgentTable};
use crate::cli::args::SingleRunArgs;
use crate::cli::candidates::with_dir;
use crate::cli::exit::{CliExitCode, Error};
use crate::cli::summary::ClosingPlace;
use crate::cli::table::{self, TableCell};
use crate::cli::{agent_table, arrived, hosts, list, output, questions, settings, summary};
use crate::domain::agent::{Agent, ReturnFrame};
use crate::domain::budget::CallBudget;
use crate::domain::id::{Folder, RunId, ScopePath, SessionId, StateName};
use crate::domain::restart::AgentFailures;
use crate::domain::run::{Run, RunStatus};
use crate::domain::tree::{AgentTree, TreeMember, TreeRow};
use crate::domain::views::{AgentStatusView, QuestionRow, object};
use crate::plugin::sentence::waiting;
use crate::plugin::styled::{StyledLine, TextTone};
use crate::process::child::orphans;
use crate::process::command::EnvironmentMarker;
use crate::runtime::directories;
use crate::runtime::observing::agent_entries::with_inbox;
use crate::store::layout::{RunDir, RunsRoot};
use crate::store::view::{RunView, load_view};

/// Runs `raymond status`.
///
/// # Errors
/// [`Error`] if the run cannot be read.
pub fn status(args: &SingleRunArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.root();
    let id = settings::chosen(&args.named, &root)?;
    let view = load_view(&root, &id)?;
    let dir = root.run(&id);
    let statuses = AgentStatuses::of(&view, &dir)?;
    if args.json {
        return output::print_json(&document(&view, &dir)?);
    }
    let asked = with_inbox(&dir, &view.run, view.held);
    let running = left_running(&directories::root(root.path())?, &view);
    table::print(as_lines(&root, &view, &statuses))?;
    let arrived = arrived::arrived(&root, &view)?;
    let below = below_agents(&view, &asked, &statuses) + &arrived + &running;
    output::print(&with_dir(&below, &root, &id))?;
    hosts::tell_silent(&args.dir, &root.run(&id))?;
    Ok(CliExitCode::Success)
}

/// The keys that `status --json` adds to those of the run's state, or has instead.
#[derive(Serialize)]
struct ObservedKeys<'run> {
    status: &'static str,
    agents: Vec<ObservedAgent>,
    run: &'run RunId,
    #[serde(flatten)]
    failures: AgentFailures,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    questions: Vec<QuestionRow>,
}

/// A live agent: the keys of its state, with its status as seen from outside.
#[derive(Serialize)]
struct ObservedAgent {
    #[serde(flatten)]
    state: Map<String, Value>,
    #[serde(flatten)]
    status: AgentStatusView,
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<Folder>,
}

/// A pending return of a live agent.
#[derive(Serialize)]
struct PendingReturn<'run> {
    session: &'run SessionId,
    state: &'run StateName,
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<&'run ScopePath>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<&'run CallBudget>,
}

/// Returns a run as `--json` prints it: in the state file's shape, with its id under the key of all commands.
///
/// # Errors
/// [`Error`] if the note of its engine cannot be read.
pub(super) fn document(view: &RunView, dir: &RunDir) -> Result<Map<String, Value>, Error> {
    let run = &view.run;
    let statuses = AgentStatuses::of(view, dir)?;
    let mut agents: Vec<&Agent> = run.agents.values().collect();
    agents.sort_by(|agent, other| agent.id.cmp_by_number(&other.id));
    let observed = ObservedKeys {
        status: table::word(view),
        agents: agents.into_iter().map(|agent| ObservedAgent::of(agent, &statuses)).collect(),
        run: &run.workflow_id,
        failures: AgentFailures::of(run),
        questions: questions::rows(&with_inbox(dir, run, view.held)),
    };
    let mut document = object(run);
    document.shift_remove("workflow_id");
    document.extend(object(&observed));
    Ok(document)
}

impl ObservedAgent {
    fn of(agent: &Agent, statuses: &AgentStatuses<'_>) -> Self {
        let pending = |frame: &ReturnFrame| {
            json!(PendingReturn {
                session: &frame.session,
                state: &frame.state,
                folder: frame.scope.as_ref(),
                budget: frame.budget.as_ref(),
            })
        };
        let mut state = object(agent);
        state.shift_remove("scope");
        state.insert("stack".to_owned(), agent.stack.iter().map(pending).collect());
        let status = AgentStatusView::of(agent, &statuses.status(agent));
        Self { state, status, folder: agent.folder() }
    }
}

/// Returns the status of a run in a few lines.
pub fn headline(root: &RunsRoot, view: &RunView) -> Vec<StyledLine> {
    let run = &view.run;
    let word = table::word(view);
    let budget = run.settings.budget_usd.map_or(String::new(), |budget| format!(" of {budget}"));
    let first = StyledLine::of(TextTone::Strong, run.workflow_id.as_str())
        .with(TextTone::Plain, "  ")
        .with(table::tone(word), word)
        .with(TextTone::Plain, &format!("  {} spent{budget}", run.total_cost_usd))
        .with(TextTone::Faint, &format!("  {}", run.scope_dir));
    let mut lines = vec![first];
    if !matches!(run.status, RunStatus::Running) || !view.held {
        let closing = arrived::in_short(root, view)
            .unwrap_or_else(|| summary::closing(run, ClosingPlace::InHeadline));
        let closing = with_dir(&closing, root, &run.workflow_id);
        lines.push(StyledLine::of(TextTone::Plain, &closing));
    }
    lines.extend(
        summary::failures_so_far(run).lines().map(|line| StyledLine::of(TextTone::Warning, line)),
    );
    if let Some(refused) = summary::refused_tools(run) {
        lines.push(StyledLine::of(TextTone::Warning, &refused));
    }
    if let Some(until) = run.limited(now()).filter(|_| run.status == RunStatus::Running) {
        lines.push(StyledLine::of(TextTone::Warning, &waiting(until)));
    }
    lines
}

/// Returns the lines about the run and its live agents.
fn as_lines(root: &RunsRoot, view: &RunView, statuses: &AgentStatuses<'_>) -> Vec<StyledLine> {
    let run = &view.run;
    let mut lines = headline(root, view);
    if let (Some(first), Some(took)) = (lines.first_mut(), list::took(view)) {
        *first = std::mem::take(first).with(TextTone::Faint, &format!("  took {took}"));
    }
    if !run.agents.is_empty() {
        let table = AgentTable::of(AgentTree::of_the_living(run), |agent| statuses.status(agent));
        let head = ["agent", "state", "step", "open calls", "cost", "now"];
        let rows = table.rows(false);
        lines.extend(table::with_head(&head, rows.iter().map(|row| as_row(&table, row))));
    }
    lines
}

/// Returns what stands below the live agents: their questions, the ends of the others, and a hint if some are folded.
/// `asked` is the run with the answers that lie in its inbox.
fn below_agents(view: &RunView, asked: &Run, statuses: &AgentStatuses<'_>) -> String {
    let run = &view.run;
    let table = AgentTable::of(AgentTree::of_the_living(run), |agent| statuses.status(agent));
    let hint = AgentTable::hint(&table.rows(false), &run.workflow_id);
    let questions = questions::as_text(run, &questions::open(asked));
    let (endings, another) = summary::endings_in_short(run);
    questions + &endings + if hint.is_empty() { &another } else { &hint }
}

fn as_row(table: &AgentTable<'_>, row: &TreeRow) -> Vec<TableCell> {
    let mut members = table.members(row).map(|node| node.member);
    let only = match (members.next(), members.next()) {
        (Some(TreeMember::Live(agent)), None) => Some(agent),
        _ => None,
    };
    let number = |of: fn(&Agent) -> String| only.map(of).unwrap_or_default();
    let step = number(|agent| agent.step.to_string());
    let stack = number(|agent| agent.stack.len().to_string());
    // The question itself is shown once, below the agents.
    let summary = match only.filter(|agent| agent.question().is_some()) {
        Some(agent) => format!("waits for an answer{}", agent_table::held_beside(agent)),
        None => table.summary(row),
    };
    let (tone, cost) = (table.tone(row), table.sum(row, |node| node.cost).to_string());
    vec![
        table.name(row).into(),
        TableCell::of(tone, &table.state_text(row)),
        step.into(),
        stack.into(),
        cost.into(),
        TableCell::of(tone, &summary),
    ]
}

// The processes that run on after a raymond was killed, and what a resume does with each.

/// Returns a note about processes that run on after a raymond was killed; empty if there are none.
pub(super) fn left_running(root: &RunsRoot, view: &RunView) -> String {
    if view.held {
        return String::new();
    }
    let id = &view.run.workflow_id;
    let marker = EnvironmentMarker { run: id.clone(), dir: root.path().to_owned() };
    let left: Vec<LeftProcess> = orphans::find(&marker)
        .iter()
        .filter(|process| process.leads)
        .map(|process| LeftProcess::of(&process.process, &view.run, &root.run(id).steps()))
        .collect();
    LeftProcess::KINDS.iter().filter_map(|kind| kind.sentence(&left, id)).collect()
}

/// A process that runs on after a raymond was killed, by what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeftProcess {
    /// A turn of Claude Code.
    Turn,
    /// A script that the restart policy of its agent has run again.
    RepeatedScript,
    /// A script whose agent is not restarted.
    LastScript,
    /// Another operation of a graph or a program.
    Operation,
}

impl LeftProcess {
    const KINDS: [Self; 4] = [Self::Turn, Self::RepeatedScript, Self::LastScript, Self::Operation];

    /// Returns the kind of a process, given its name and the directory of the streams of turns.
    fn of(process: &str, run: &Run, steps: &Path) -> Self {
        let agent = run.agents.values().find(|agent| agent.turn_id().stem() == process);
        match agent.filter(|agent| agent.runs_script()) {
            Some(agent) if run.supervision_of(agent).restart.restarts_after(true) => {
                Self::RepeatedScript
            }
            Some(_) => Self::LastScript,
            None if steps.join(format!("{process}.jsonl")).exists() => Self::Turn,
            None => Self::Operation,
        }
    }

    /// Returns what becomes of the processes of this kind, if there are any.
    fn sentence(self, left: &[Self], id: &RunId) -> Option<String> {
        let count = left.iter().filter(|kind| **kind == self).count();
        let resume = format!("`raymond resume {id}`");
        let text = match self {
            Self::Turn => format!(
                "{count} of its processes still run; {resume} takes them over, and ends them if it is interrupted"
            ),
            Self::RepeatedScript => format!(
                "{count} of its scripts still run; {resume} ends them and runs them again, according to the restart policy"
            ),
            Self::LastScript => format!(
                "{count} of its scripts still run; {resume} ends them, and their agents fail, according to the restart policy"
            ),
            Self::Operation => format!(
                "{count} of its operations still run; {resume} repeats those that are safe to repeat, and ends the others, whose effect is then uncertain"
            ),
        };
        (count > 0).then_some(text + "\n")
    }
}

#[cfg(test)]
mod left_running_tests {
    use super::*;

    #[test]
    fn each_kind_of_process_has_a_sentence_about_its_future() {
        let id = RunId::parse("t").expect("an id");
        let left = [LeftProcess::Turn, LeftProcess::RepeatedScript, LeftProcess::Turn];
        let sentences: Vec<String> =
            LeftProcess::KINDS.iter().filter_map(|kind| kind.sentence(&left, &id)).collect();
        assert_eq!(sentences.len(), 2);
        assert!(sentences[0].starts_with("2 of its processes still run; `raymond resume t` takes"));
        assert!(
            sentences[1]
                .starts_with("1 of its scripts still run; `raymond resume t` ends them and")
        );
    }
}
