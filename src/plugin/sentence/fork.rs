//! Agents that are forked and waited for, as lines for people.

use crate::domain::event::{Event, JoinBegun, JoinFinished, Record, StepFinished};
use crate::domain::id::Folder;
use crate::domain::join::{Join, JoinCondition, JoinOutcome, JoinTally};
use crate::domain::settings::{ForkGroup, agent_count};

/// Returns the agents that a step forks, as text.
pub(super) fn forked_agents(event: &StepFinished, folder: Option<&Folder>) -> String {
    let Some(first) = event.children.first() else {
        let target = event.transition.destination();
        let target = target.map(|target| format!(" at {}", target.shown_in(folder)));
        let target = target.unwrap_or_default();
        return format!("a new agent{target}");
    };
    let shown = |group: &ForkGroup| group.target().shown_in(folder).to_string();
    let mut states: Vec<String> = event.children.iter().map(shown).collect();
    states.dedup();
    match agent_count(&event.children) {
        0 => format!("no new agent at {}: the list is empty", shown(first)),
        1 => format!("a new agent at {}", shown(first)),
        many => format!("{many} new agents at {}", states.join(", ")),
    }
}

/// Returns the text of an agent that waits for its forked agents, or continues.
pub(super) fn joins(record: &Record) -> String {
    let folder = record.folder.as_ref();
    match &record.event {
        Event::JoinBegun(begun) => {
            let JoinBegun { turn, state, join } = &**begun;
            let state = state.shown_in(folder);
            format!("{}  {state}: waits for {}", turn.agent, join_condition(join))
        }
        Event::JoinFinished(joined) => join_finished(joined, folder),
        _ => String::new(),
    }
}

fn join_condition(join: &Join) -> String {
    match join.need {
        JoinCondition::All => "all agents it has forked".to_owned(),
        JoinCondition::Any => "any of the agents it has forked".to_owned(),
        JoinCondition::Count(count) => format!("{count} of the agents it has forked"),
    }
}

fn join_finished(joined: &JoinFinished, folder: Option<&Folder>) -> String {
    let JoinFinished { turn, state, outcome, tally, enters, stopped } = joined;
    let JoinTally { count, done, failed } = tally;
    let how = match outcome {
        JoinOutcome::Met => "continues",
        JoinOutcome::Missed if *failed == 0 => "it has forked too few",
        JoinOutcome::Missed => "too many failed",
        JoinOutcome::Late => "waited too long",
    };
    let failures = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
    let to = enters.as_ref().map(|state| format!("; continues at {}", state.shown_in(folder)));
    let to = to.unwrap_or_default();
    let state = state.shown_in(folder);
    let stopped = match stopped.len() {
        0 => String::new(),
        1 => "; one agent is stopped".to_owned(),
        many => format!("; {many} agents are stopped"),
    };
    format!("{}  {state}: {how}: {done} of {count} finished{failures}{to}{stopped}", turn.agent)
}
