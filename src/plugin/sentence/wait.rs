//! The sentence for people on why an agent waits, or on why several of them do.
//!
//! The records of states that raymond executes, a line each for people.
//!
//! The records of graphs, a line each for people.
//!
//! The sentence about agents that are given hosts.

use std::collections::BTreeMap;

use crate::domain::agent::Agent;
use crate::domain::event::{GraphAdvanced, LanguageAdvanced, NextAction};
use crate::domain::host::{HostName, PlacedAgent};
use crate::domain::id::{Folder, StateKind};
use crate::domain::printable::{flat, one_line};
use crate::domain::time::Timestamp;
use crate::domain::wait_reason::WaitReason;
use crate::plugin::sentence::date;

/// The maximum length of the reason why a person is waited for. Views of a fixed width cut it themselves.
const MAX_REASON_BYTES: usize = 1000;

/// Returns the work of an agent that advances by itself.
pub fn own_work(agent: &Agent) -> Option<String> {
    agent.own_work().map(execution_sentence)
}

/// Returns the work of an agent in a state of this kind.
pub fn execution_sentence(kind: StateKind) -> String {
    format!("executes the {}", kind.noun())
}

/// Returns why an agent waits, as a sentence about it. `when` gives the time of its next try in words.
pub fn wait_sentence(reason: &WaitReason, when: impl Fn(Timestamp) -> String) -> String {
    match reason {
        WaitReason::Permit => "waits for a free process".to_owned(),
        WaitReason::Host { label: None } => "waits for a host".to_owned(),
        WaitReason::Host { label: Some(label) } => {
            format!("waits for a host with the label {label}")
        }
        WaitReason::Budget => "waits for money that running turns have reserved".to_owned(),
        WaitReason::Backoff { until } => format!("restarts {}", when(*until)),
        WaitReason::Stagger { until } => format!("starts {}", when(*until)),
        WaitReason::Plugin { by, until } => {
            format!("held until {} by the plug-in {}", date(*until), one_line(by))
        }
        WaitReason::UsageLimit { until } => {
            format!("waits for the usage limit until {}", date(*until))
        }
        WaitReason::Person { reason: because } => {
            format!("waits for a person: {}", flat(because, MAX_REASON_BYTES))
        }
        WaitReason::Held => "is held until a person releases it".to_owned(),
        WaitReason::Answer { node, question } => {
            format!("waits for an answer to {node}: {}", one_line(question))
        }
        WaitReason::Approval { name, tool } => {
            format!("waits for approval of {}: {name}", one_line(tool))
        }
        WaitReason::Agent { agent: other } => format!("waits for {other}"),
        WaitReason::Join { more, of, failed, until, .. } => {
            let agents = if *of == 1 { "agent" } else { "agents" };
            let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
            let until = until.map(|until| format!(", until {}", date(until))).unwrap_or_default();
            format!("waits for {more} more of {of} {agents}{failed}{until}")
        }
        WaitReason::Program { awaiting } => format!("waits for {}", one_line(awaiting)),
        WaitReason::Request => "waits for a request of its program".to_owned(),
        WaitReason::RunPaused => "waits: the run is paused".to_owned(),
        WaitReason::RunInterrupted => "waits for the run to be resumed".to_owned(),
    }
}

/// Returns why several agents wait, to stand behind their number.
pub fn waits_of_many(reason: &WaitReason) -> &'static str {
    match reason {
        WaitReason::Permit => "wait for a free process",
        WaitReason::Host { .. } => "wait for a host",
        WaitReason::Budget => "wait for money that running turns have reserved",
        WaitReason::Backoff { .. } => "restart after a pause",
        WaitReason::Stagger { .. } => "start in a moment",
        WaitReason::Plugin { .. } => "held by a plug-in",
        WaitReason::UsageLimit { .. } => "wait for the usage limit",
        WaitReason::Person { .. } => "wait for a person",
        WaitReason::Held => "are held until a person releases them",
        WaitReason::Answer { .. } => "wait for an answer",
        WaitReason::Approval { .. } => "wait for an approval",
        WaitReason::Agent { .. } => "wait for another agent",
        WaitReason::Join { .. } => "wait for agents they have forked",
        WaitReason::Program { .. } => "wait as their programs say",
        WaitReason::Request => "wait for a request of their program",
        WaitReason::RunPaused => "wait: the run is paused",
        WaitReason::RunInterrupted => "wait for the run to be resumed",
    }
}

/// Returns the executed nodes and the next action.
pub(super) fn advanced(event: &GraphAdvanced, folder: Option<&Folder>) -> String {
    const MAX_SHOWN_NODES: usize = 4;
    let agent = &event.turn.agent;
    let nodes: Vec<String> =
        event.visits.iter().map(|visit| format!("{} ({})", visit.node, visit.outcome)).collect();
    let skipped = nodes.len().saturating_sub(MAX_SHOWN_NODES);
    let dots = if skipped > 0 { format!("{skipped} nodes … ") } else { String::new() };
    let way = nodes[skipped..].join(" → ");
    let arrow = if way.is_empty() { "" } else { " → " };
    let next = next_place(&event.node, &event.next_action);
    let paid = event.task.as_ref().map_or(String::new(), |paid| format!("  {}", paid.cost.amount));
    let file = event.file.shown_in(folder);
    format!("{agent}  {file}: {dots}{way}{arrow}{next}{paid}")
}

/// Returns the sentence: the hosts that were lost, and the number of agents that each host is given.
pub(super) fn placed(placed: &[PlacedAgent], lost: &[HostName]) -> String {
    let mut counts: BTreeMap<&HostName, usize> = BTreeMap::new();
    for one in placed {
        *counts.entry(&one.host).or_default() += 1;
    }
    let given = |(host, count): (&HostName, &usize)| match count {
        1 => format!("1 agent on {host}"),
        count => format!("{count} agents on {host}"),
    };
    let given: Vec<String> = counts.iter().map(|(host, count)| given((host, count))).collect();
    let given = if given.is_empty() { "no agent is placed".to_owned() } else { given.join(", ") };
    match lost {
        [] => format!("placed: {given}"),
        [host] => format!("host {host} was declared lost: {given}"),
        hosts => {
            let hosts: Vec<&str> = hosts.iter().map(HostName::as_str).collect();
            format!("hosts {} were declared lost: {given}", hosts.join(", "))
        }
    }
}

/// Returns the file of a state and the next action in it.
pub(super) fn language_advanced(event: &LanguageAdvanced, folder: Option<&Folder>) -> String {
    let agent = &event.turn.agent;
    let next = next_place(event.file.shown_in(folder).as_str(), &event.next_action);
    let paid = event.task.as_ref().map_or(String::new(), |paid| format!("  {}", paid.cost.amount));
    format!("{agent}  {next}{paid}")
}

/// Returns a place and the next action there.
pub(super) fn next_place(place: &str, next: &NextAction) -> String {
    match next {
        NextAction::Walk | NextAction::Wait | NextAction::Nothing => place.to_owned(),
        NextAction::Operation(kind) => format!("{place}: {kind}"),
        NextAction::Task(_) => format!("{place}: a turn of Claude Code"),
        NextAction::Question(question) => format!("{place}: asks: {}", one_line(&question.text)),
        NextAction::Join(join) => format!("{place}: waits for {} of its agents", join.need),
        NextAction::Agent { spec, background, joined } => {
            let waits = if *background || *joined { "" } else { ", and waits for it" };
            format!("{place}: starts an agent at {}{waits}", spec.shown_state())
        }
    }
}

#[cfg(test)]
mod host_tests {
    use super::*;
    use crate::domain::host::HostEpoch;
    use crate::domain::id::AgentId;

    #[test]
    fn sentence_counts_agents_by_host() {
        let host = |name: &str| HostName::parse(name).expect("a name");
        let at = |agent: u32, name: &str| PlacedAgent {
            agent: AgentId::main().child(agent),
            host: host(name),
            epoch: HostEpoch(1),
        };
        assert_eq!(
            placed(&[at(1, "b"), at(2, "a"), at(3, "b")], &[]),
            "placed: 1 agent on a, 2 agents on b"
        );
        assert_eq!(placed(&[at(1, "b")], &[host("a")]), "host a was declared lost: 1 agent on b");
        assert_eq!(
            placed(&[], &[host("a"), host("b")]),
            "hosts a, b were declared lost: no agent is placed"
        );
    }
}
