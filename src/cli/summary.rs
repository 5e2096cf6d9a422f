//! The summary of a run that has ended or is stopped: its outcome, and its agents one by one or by state.

use std::collections::{BTreeMap, HashMap};
use std::io::IsTerminal;

use super::agent_table::AgentTable;
use super::{output, table};
use crate::domain::agent::{Agent, AgentWait, StepStage};
use crate::domain::agent_status::AgentStatus;
use crate::domain::event::Event;
use crate::domain::id::{AgentId, StateName};
use crate::domain::money::Usd;
use crate::domain::person_wait::AwaitedSignal;
use crate::domain::refusal::closing_line;
use crate::domain::restart::AgentFailures;
use crate::domain::run::{AgentEnding, FinishedAgent, PauseReason, Run, RunStatus};
use crate::domain::settings::AnswererKind;
use crate::domain::time::seconds;
use crate::domain::tool_call::{joined_lines, printable_block, printable_line};
use crate::domain::tree::{AgentTree, FAMILY_FOLD_SIZE, RowSubject, TreeMember, TreeRow};
use crate::domain::turn::FailureCause;
use crate::plugin::console::Verbosity;
use crate::plugin::screen::clock;
use crate::plugin::sentence::date;

/// Returns a line for each agent that has ended. Results are unchanged, but printable on a terminal, and their
/// further lines indented.
fn endings(run: &Run) -> String {
    run.finished.iter().map(ending).collect()
}

/// The number of agents that have ended from which they are summed up by state.
const MIN_SUMMED_UP: usize = 20;

/// Returns the end of a run's agents: a line for each if they are few, else a table of their states and the result of
/// the first; with `--quiet` only that result. `times` returns the times of their turns.
pub fn results(run: &Run, verbosity: Verbosity, times: impl FnOnce() -> TurnTimes) -> String {
    let main = run.finished.iter().find(|agent| agent.id == AgentId::main());
    let first = || main.map(ending);
    let few = run.finished.len() < MIN_SUMMED_UP;
    match verbosity {
        Verbosity::Verbose => endings(run),
        Verbosity::Quiet => main.map(bare_result).unwrap_or_default(),
        Verbosity::Normal if few => endings(run),
        Verbosity::Normal => {
            let id = &run.workflow_id;
            let hint = format!("one line per agent: raymond tree {id} --all\n");
            states_table(run, &times()) + &hint + &first().unwrap_or_default()
        }
    }
}

/// Returns nothing but the result of an agent, unchanged in a pipe or a file; empty if the agent failed.
fn bare_result(agent: &FinishedAgent) -> String {
    match &agent.ending {
        AgentEnding::Result(payload) if std::io::stdout().is_terminal() => {
            printable_block(payload) + "\n"
        }
        AgentEnding::Result(payload) => payload.clone(),
        AgentEnding::Error(_) => String::new(),
    }
}

/// Returns the same with a line for each family of many, and a hint for all agents if one is folded.
pub(super) fn endings_in_short(run: &Run) -> (String, String) {
    if run.finished.len() <= FAMILY_FOLD_SIZE {
        return (endings(run), String::new());
    }
    let table = AgentTable::of(AgentTree::of_the_ended(run), |_| AgentStatus::Running);
    let rows = table.rows(false);
    let line = |row: &TreeRow| match (&row.of, table.members(row).next().map(|node| node.member)) {
        (RowSubject::One(_), Some(TreeMember::Ended(agent))) if !row.cut => ending(agent),
        _ => format!("{}: {}\n", table.name(row), table.summary(row)),
    };
    (rows.iter().map(line).collect(), AgentTable::hint(&rows, &run.workflow_id))
}

fn ending(agent: &FinishedAgent) -> String {
    let id = &agent.id;
    let text = match &agent.ending {
        AgentEnding::Result(payload) => format!("Agent {id} terminated with result: {payload}"),
        AgentEnding::Error(error) if agent.cause == Some(FailureCause::Unneeded) => {
            format!("Agent {id} {error}")
        }
        AgentEnding::Error(error) => format!("Agent {id} failed: {error}"),
    };
    if !std::io::stdout().is_terminal() {
        return text + "\n";
    }
    output::fitted(&(printable_block(&text) + "\n"))
}

/// Returns the line about the tools that were refused in a run, if any was.
pub fn refused_tools(run: &Run) -> Option<String> {
    let line = closing_line(&run.refused_tools)?;
    let strict = if run.settings.strict && run.status == RunStatus::Completed {
        "; that fails the run (--strict)"
    } else {
        ""
    };
    Some(printable_line(&format!("{line}{strict}")))
}

/// Returns a line about the failed agents of a run in which others live; empty if none has failed.
pub(super) fn failures_so_far(run: &Run) -> String {
    let failures = AgentFailures::of(run);
    if run.agents.is_empty() || failures.is_empty() {
        return String::new();
    }
    let AgentFailures { failed, ended, .. } = &failures;
    format!("{failed} of the {ended} agents that have ended failed ({failures})\n")
}

/// Returns the run's outcome, and the command to resume it.
pub fn closing(run: &Run, place: ClosingPlace) -> String {
    joined_lines(&closing_sentence(run, place))
}

/// The place of a closing sentence, which says nothing that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClosingPlace {
    /// Nothing else is said of the run.
    Alone,
    /// The questions are shown, each with the command that answers it.
    BelowQuestions,
    /// The run and what is spent are named, and the questions follow.
    InHeadline,
}

/// Returns the first agent whose failure no waiting agent took, so that it fails the run.
fn first_failed(run: &Run) -> Option<&FinishedAgent> {
    let fails_run = |agent: &&FinishedAgent| {
        matches!(agent.ending, AgentEnding::Error(_)) && !agent.parent_notified
    };
    run.finished.iter().find(fails_run)
}

/// Returns a warning that a wait for an answer may outlast the session that continues after it.
fn expiry(run: &Run) -> &'static str {
    let waits = |agent: &Agent| {
        matches!(agent.stage, StepStage::Waiting(AgentWait::Answer(_)))
            && agent.session.history().is_some()
    };
    if run.settings.answerer == AnswererKind::Claude && run.agents.values().any(waits) {
        "; Claude Code deletes a session 30 days after its last use: after a longer wait the agent needs `on_lost_session: fresh`, or `raymond retry`"
    } else {
        ""
    }
}

fn closing_sentence(run: &Run, place: ClosingPlace) -> String {
    let spent = match place {
        ClosingPlace::InHeadline => String::new(),
        _ => format!("; {} spent", run.total_cost_usd),
    };
    let ended = spent.replace(';', ",");
    let id = &run.workflow_id;
    match (run.status, &run.pause) {
        (RunStatus::Completed, _) => {
            let failures = AgentFailures::of(run);
            let is_failed = run.settings.strict && !failures.is_empty();
            let strict = if is_failed { "; that fails the run (--strict)" } else { "" };
            let outcome = failures.outcome();
            format!("run {id} {outcome}{ended}{strict}; `raymond log {id}` shows how")
        }
        (RunStatus::Failed, _) => {
            let outcome = AgentFailures::of(run).outcome();
            let failed = first_failed(run);
            let look = failed.map_or_else(String::new, |failed| {
                format!("; `raymond show {id} {}` shows why", failed.id)
            });
            let is_budget = failed.is_some_and(|failed| failed.cause == Some(FailureCause::Budget));
            let more = if is_budget {
                format!("; with more: raymond retry {id} --budget USD")
            } else {
                format!("; when the cause is fixed: raymond retry {id} --prompts")
            };
            format!("run {id} {outcome}{ended}{look}{more}")
        }
        (_, Some(pause @ PauseReason::Budget { .. })) => {
            format!("paused: {pause}; resume with more: raymond resume {id} --budget USD")
        }
        (_, Some(pause @ PauseReason::Agents { .. })) => format!(
            "paused: {pause}{spent}; if so many are intended, resume with more: raymond resume {id} --max-agents N"
        ),
        (_, Some(pause @ PauseReason::UsageLimit { resets: Some(resets), .. })) => {
            let resets = date(*resets);
            format!("paused: {pause}; it resets {resets}{spent}; resume: raymond resume {id}")
        }
        (_, Some(pause @ PauseReason::Plugin { .. })) => format!(
            "paused: {pause}{spent}; fix that and resume: raymond resume {id}, or without plug-ins: raymond resume {id} --no-plugins"
        ),
        (_, Some(PauseReason::Asking { questions, .. })) if place != ClosingPlace::Alone => {
            let wait = match questions {
                1 => "a question waits".to_owned(),
                several => format!("{several} questions wait"),
            };
            format!(
                "paused: {wait} for an answer{spent}; then resume: raymond resume {id}{}",
                expiry(run)
            )
        }
        (_, Some(pause @ PauseReason::Asking { .. })) => format!(
            "paused: {pause}{spent}; answer with `raymond answer {id} NODE=TEXT`, then resume: raymond resume {id}{}",
            expiry(run)
        ),
        (_, Some(pause @ PauseReason::Waiting { first, .. })) if first.contains("(signal ") => {
            let for_people = AwaitedSignal::all_in(first).iter().any(AwaitedSignal::is_for_people);
            let then = if for_people {
                "assert it with `raymond signal`, then"
            } else {
                "once that run has come so far,"
            };
            format!("paused: {pause}{spent}; {then} resume: raymond resume {id}")
        }
        (_, Some(pause)) => format!("paused: {pause}{spent}; resume: raymond resume {id}"),
        (_, None) => format!("run {id} has stopped{ended}; resume: raymond resume {id}"),
    }
}

// The agents of a run by the state they began in: their number, their ends, their cost, and the slowest. Pure.

/// The time that the turns of each agent took, in milliseconds.
#[derive(Debug, Default)]
pub struct TurnTimes(HashMap<AgentId, u64>);

impl TurnTimes {
    /// Adds the time of the turn that an event ends.
    pub fn count(&mut self, event: &Event) {
        if let (Some(agent), Some(cost)) = (event.agent(), event.cost())
            && let Some(took) = cost.duration_ms
        {
            *self.0.entry(agent.clone()).or_default() += took;
        }
    }
}

/// The agents that began in one state.
#[derive(Debug, Default)]
struct StateSummary<'run> {
    agents: usize,
    finished: usize,
    failed: usize,
    live: usize,
    cost: Usd,
    slowest: Option<(u64, &'run AgentId)>,
}

impl<'run> StateSummary<'run> {
    fn add(&mut self, id: &'run AgentId, cost: Usd, times: &TurnTimes) {
        self.agents += 1;
        self.cost += cost;
        let took = times.0.get(id).copied().filter(|&took| took > 0);
        if let Some(took) = took.filter(|&took| self.slowest.is_none_or(|(most, _)| took > most)) {
            self.slowest = Some((took, id));
        }
    }
}

/// Returns a table with a line for each state.
fn states_table(run: &Run, times: &TurnTimes) -> String {
    let mut states: BTreeMap<Option<StateName>, StateSummary<'_>> = BTreeMap::new();
    for agent in &run.finished {
        let state = states.entry(agent.began()).or_default();
        state.add(&agent.id, agent.cost_usd, times);
        state.finished += usize::from(matches!(agent.ending, AgentEnding::Result(_)));
        state.failed += usize::from(agent.has_failed());
    }
    for agent in run.agents.values() {
        let state = states.entry(Some(agent.spec.shown_state())).or_default();
        state.add(&agent.id, agent.cost_usd, times);
        state.live += 1;
    }
    let has_live = states.values().any(|state| state.live > 0);
    let live: &[&str] = if has_live { &["live"] } else { &[] };
    let head = [&["started in", "agents", "ok", "failed"], live, &["cost", "slowest"]].concat();
    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for (name, state) in &states {
        let mut row = vec![name.as_ref().map_or("unknown state".to_owned(), ToString::to_string)];
        row.extend([state.agents, state.finished, state.failed].map(|count| count.to_string()));
        row.extend(has_live.then(|| state.live.to_string()));
        let slowest = state.slowest.map(|(took, id)| format!("{} {id}", time(took)));
        row.extend([state.cost.to_string(), slowest.unwrap_or_default()]);
        rows.push(row);
    }
    let last = rows[0].len() - 1;
    table::text(&table::right_align(rows, last))
}

/// Returns a time, with a tenth of a second if it is short.
fn time(millis: u64) -> String {
    if millis < 60_000 { seconds(millis) } else { clock(millis) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::tests::scene::Scene;

    #[test]
    fn closing_repeats_nothing_that_stands_above_it() {
        let mut run = Scene::begin().run;
        let id = run.workflow_id.clone();
        run.status = RunStatus::Paused;
        run.pause = Some(PauseReason::Asking { questions: 1, first: "Which?".into() });
        assert_eq!(
            closing(&run, ClosingPlace::Alone),
            format!(
                "paused: a question waits for an answer: Which?; $0.00 spent; answer with `raymond answer {id} NODE=TEXT`, then resume: raymond resume {id}"
            )
        );
        assert_eq!(
            closing(&run, ClosingPlace::BelowQuestions),
            format!(
                "paused: a question waits for an answer; $0.00 spent; then resume: raymond resume {id}"
            )
        );
        assert_eq!(
            closing(&run, ClosingPlace::InHeadline),
            format!("paused: a question waits for an answer; then resume: raymond resume {id}")
        );
        run.pause = Some(PauseReason::Stopped);
        assert!(!closing(&run, ClosingPlace::InHeadline).contains("spent"));
    }
}

#[cfg(test)]
mod by_state_tests {
    use super::*;
    use crate::domain::tests::scene::{Scene, result, tag};
    use crate::domain::transition::TagName;

    #[test]
    fn agents_are_summed_up_by_the_state_they_began_in() {
        let mut scene = Scene::begin();
        let mut times = TurnTimes::default();
        (0..3).for_each(|_| {
            scene.take("main", tag(TagName::Fork, "NEXT.md", "WORK.md"));
        });
        for (agent, seconds) in [("main.1", 5), ("main.2", 65)] {
            let mut step = scene.step(agent, result("done"));
            step.cost.duration_ms = Some(seconds * 1000);
            times.count(&Event::StepFinished(step));
        }
        scene.take("main.1", result("done"));
        let failed = Event::AgentFailed(scene.end_badly("main.2"));
        scene.happens(failed);
        let text = states_table(&scene.run, &times);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert_eq!(
            lines[0].split_whitespace().collect::<Vec<_>>(),
            ["started", "in", "agents", "ok", "failed", "live", "cost", "slowest"]
        );
        let work = lines.iter().find(|line| line.starts_with("WORK.md")).expect("a line");
        let words: Vec<&str> = work.split_whitespace().collect();
        assert_eq!(words[..5], ["WORK.md", "3", "1", "1", "1"]);
        assert_eq!(words[6..], ["1:05", "main.2"]);
        assert_eq!([time(150), time(59_999), time(60_000)], ["0.1s", "59.9s", "1:00"]);
    }
}
