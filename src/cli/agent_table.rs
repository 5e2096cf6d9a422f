//! The agents of a run as rows for people, each alone or a family of many in one; and the status of live agents.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;

use super::table;
use crate::actor::context::now;
use crate::domain::agent::Agent;
use crate::domain::agent_status::{AgentStatus, RunObservation, WaitReason};
use crate::domain::budget_shortage::BudgetShortage;
use crate::domain::id::{AgentId, RunId, StateName};
use crate::domain::money::Usd;
use crate::domain::run::{AgentEnding, FinishedAgent};
use crate::domain::time::Timestamp;
use crate::domain::tool_call::{flat, one_line};
use crate::domain::tree::{
    AgentNode, AgentTree, FAMILY_FOLD_SIZE, FoldSource, RowSubject, TreeMember, TreeRow,
};
use crate::plugin::sentence::{current_execution, date, wait_sentence, waits_of_many};
use crate::plugin::styled::TextTone;
use crate::process::transcript::TurnFiles;
use crate::store;
use crate::store::engine_note::EngineNote;
use crate::store::layout::RunDir;
use crate::store::view::RunView;

/// The hint that names the command for all agents.
const EACH: &str = "raymond tree --all shows them";

/// The maximum length of the reason of a failure, which is shown whole if it is shorter.
const MAX_REASON_BYTES: usize = 4000;

/// The number of states that are named in a row of several agents.
const STATES: usize = 2;

/// The kinds that must not be overlooked, and the words for those that are not shown one by one.
const OUTSTANDING: [(u8, &str); 2] = [(0, "wait for a person"), (1, "failed")];

/// The agents of a run, with the status of the live ones.
pub(super) struct AgentTable<'run> {
    tree: AgentTree<'run>,
    status: Vec<Option<AgentStatus>>,
}

impl<'run> AgentTable<'run> {
    /// Makes the table of a tree.
    pub(super) fn of(tree: AgentTree<'run>, status: impl Fn(&Agent) -> AgentStatus) -> Self {
        let of = |node: &AgentNode<'run>| match node.member {
            TreeMember::Live(agent) => Some(status(agent)),
            TreeMember::Ended(_) => None,
        };
        Self { status: tree.nodes().iter().map(of).collect(), tree }
    }

    /// Returns each agent after its parent, with its status if it lives.
    pub(super) fn each(&self) -> impl Iterator<Item = (&AgentNode<'run>, Option<&AgentStatus>)> {
        self.tree.nodes().iter().zip(self.status.iter().map(Option::as_ref))
    }

    /// Returns the rows: one for each agent, or one for each family of many.
    pub(super) fn rows(&self, all: bool) -> Vec<TreeRow> {
        if all { self.tree.rows() } else { self.tree.folded(self) }
    }

    /// Returns a hint that names the command for folded agents; empty if no agent is folded.
    pub(super) fn hint(rows: &[TreeRow], run: &RunId) -> String {
        let folded = rows.iter().any(|row| row.cut || matches!(row.of, RowSubject::Many { .. }));
        let hint = format!("one line per agent: raymond tree {run} --all\n");
        if folded { hint } else { String::new() }
    }

    /// Returns the agents of a row.
    pub(super) fn members<'agents>(
        &'agents self,
        row: &'agents TreeRow,
    ) -> impl Iterator<Item = &'agents AgentNode<'run>> {
        row.of.members().iter().map(|&index| &self.tree.nodes()[index])
    }

    /// Returns the sum of an amount over the agents of a row.
    pub(super) fn sum(&self, row: &TreeRow, amount: impl Fn(&AgentNode<'_>) -> Usd) -> Usd {
        self.members(row).fold(Usd::ZERO, |sum, node| sum.saturating_add(amount(node)))
    }

    /// Returns the agent's id, or the number of agents with the first and the last id.
    pub(super) fn name(&self, row: &TreeRow) -> String {
        let mut ids: Vec<&AgentId> = self.members(row).map(|node| node.id).collect();
        ids.sort_by(|id, other| id.cmp_by_number(other));
        match ids.as_slice() {
            [first, .., last] => format!("{} agents, {first} … {last}", ids.len()),
            ids => ids.iter().map(ToString::to_string).collect(),
        }
    }

    /// Returns the states of a row's agents, or those they began in; for an ended agent, its end.
    pub(super) fn state_text(&self, row: &TreeRow) -> String {
        let RowSubject::Many { members, .. } = &row.of else {
            return self.members(row).map(|node| state_text(node.member)).collect();
        };
        let mut places: BTreeMap<StateName, usize> = BTreeMap::new();
        for node in self.members(row) {
            if let TreeMember::Live(agent) = node.member {
                *places.entry(agent.shown_place()).or_default() += 1;
            }
        }
        let mut places: Vec<(StateName, usize)> = places.into_iter().collect();
        places.sort_by_key(|(_, count)| Reverse(*count));
        let more = if places.len() > STATES { ", …" } else { "" };
        let named = places.iter().take(STATES).map(|(place, _)| place.to_string());
        let named = named.collect::<Vec<_>>().join(", ") + more;
        let began = || members.first().and_then(|&index| self.began(index));
        if named.is_empty() { began().map(ToString::to_string).unwrap_or_default() } else { named }
    }

    /// Returns the tone of a row: of its most urgent agent.
    pub(super) fn tone(&self, row: &TreeRow) -> TextTone {
        let tone = |index: &usize| match (self.tree.nodes()[*index].member, &self.status[*index]) {
            _ if self.stands_out(*index).is_some() => TextTone::Bad,
            (TreeMember::Live(_), Some(AgentStatus::Running)) => TextTone::Good,
            (TreeMember::Live(_), _) => TextTone::Plain,
            (TreeMember::Ended(_), _) => TextTone::Faint,
        };
        let order = [TextTone::Bad, TextTone::Good, TextTone::Plain, TextTone::Faint];
        let tones: Vec<TextTone> = row.of.members().iter().map(tone).collect();
        order.into_iter().find(|tone| tones.contains(tone)).unwrap_or_default()
    }

    /// Returns an agent's status or result, the counts of a family, and a note about cut descendants.
    pub(super) fn summary(&self, row: &TreeRow) -> String {
        let summary = self.summary_without_descendants(row);
        if !row.cut {
            return summary;
        }
        let below: usize = self.members(row).map(|node| node.descendants).sum();
        let more = format!("with {below} descendants ({EACH})");
        if summary.is_empty() { more } else { format!("{summary}; {more}") }
    }

    fn summary_without_descendants(&self, row: &TreeRow) -> String {
        match &row.of {
            RowSubject::One(index) => {
                match (self.tree.nodes()[*index].member, &self.status[*index]) {
                    (TreeMember::Ended(agent), _) => match &agent.ending {
                        AgentEnding::Result(text) => one_line(text),
                        AgentEnding::Error(text) => flat(text, MAX_REASON_BYTES),
                    },
                    (TreeMember::Live(agent), Some(status)) => sentence(agent, status),
                    (TreeMember::Live(_), None) => String::new(),
                }
            }
            RowSubject::Many { members, .. } => self.counts(members),
        }
    }

    fn counts(&self, members: &[usize]) -> String {
        let mut counts: BTreeMap<(u8, String), usize> = BTreeMap::new();
        let mut kinds = [0; OUTSTANDING.len()];
        for &index in members {
            let status = match (self.tree.nodes()[index].member, &self.status[index]) {
                (TreeMember::Ended(agent), _) => (ending_rank(agent), ending(agent)),
                (TreeMember::Live(_), status) => status.as_ref().map(in_many).unwrap_or_default(),
            };
            *counts.entry(status).or_default() += 1;
            for ((kind, _), count) in OUTSTANDING.iter().zip(&mut kinds) {
                *count += usize::from(self.stands_out(index) == Some(*kind));
            }
        }
        let mut counts: Vec<((u8, String), usize)> = counts.into_iter().collect();
        counts.sort_by_key(|((rank, _), count)| (*rank, Reverse(*count)));
        let counts = counts.iter().map(|((_, what), count)| format!("{count} {what}"));
        let many = OUTSTANDING.iter().zip(kinds).filter(|(_, count)| *count > FAMILY_FOLD_SIZE);
        let many = many.map(|((_, what), count)| {
            format!("; the first {FAMILY_FOLD_SIZE} of {count} that {what} follow")
        });
        counts.collect::<Vec<_>>().join(" · ") + &many.collect::<String>()
    }
}

impl FoldSource for AgentTable<'_> {
    fn id(&self, index: usize) -> &AgentId {
        self.tree.nodes()[index].id
    }

    fn began(&self, index: usize) -> Option<&StateName> {
        self.tree.nodes()[index].began.as_ref()
    }

    fn stands_out(&self, index: usize) -> Option<u8> {
        match (self.tree.nodes()[index].member, &self.status[index]) {
            (_, Some(AgentStatus::Waiting(reason))) if reason.is_for_person() => {
                Some(OUTSTANDING[0].0)
            }
            (TreeMember::Ended(agent), _) if agent.has_failed() => Some(OUTSTANDING[1].0),
            _ => None,
        }
    }
}

fn state_text(member: TreeMember<'_>) -> String {
    match member {
        TreeMember::Live(agent) => agent.shown_place().to_string(),
        TreeMember::Ended(agent) => ending(agent),
    }
}

fn ending(agent: &FinishedAgent) -> String {
    match agent.cause.filter(|_| agent.has_failed()) {
        Some(cause) => format!("failed ({cause})"),
        None => agent.standing().to_owned(),
    }
}

/// Returns the rank of an ended agent in a row's counts. Live agents come before it, urgent ones first.
fn ending_rank(agent: &FinishedAgent) -> u8 {
    if agent.has_failed() { 3 } else { 4 }
}

/// Returns the rank and the status of a live agent, as one of several.
fn in_many(status: &AgentStatus) -> (u8, String) {
    let rank = match status {
        AgentStatus::Waiting(reason) if reason.is_for_person() => 0,
        AgentStatus::Running => 1,
        AgentStatus::Waiting(_) => 2,
    };
    (rank, of_many(status).to_owned())
}

// The status of a run's live agents and what they wait for, for people and for programs.
//
// It comes from the run's records and the files of its turns.

/// An hour in milliseconds.
const HOUR: u64 = 3_600_000;

/// The source of the status of a run's live agents.
pub struct AgentStatuses<'run> {
    view: &'run RunView,
    steps: PathBuf,
    /// The note of a run that an engine has.
    note: Option<EngineNote>,
    seen: RunObservation,
    shortage: OnceCell<BudgetShortage<'run>>,
}

impl<'run> AgentStatuses<'run> {
    /// Observes a run as it is now.
    ///
    /// # Errors
    /// [`store::Error`] if the note of its engine cannot be read.
    pub fn of(view: &'run RunView, dir: &RunDir) -> Result<Self, store::Error> {
        let note = EngineNote::of(dir.path())?;
        let seen = RunObservation { now: now(), held: view.held, is_shared: note.is_some() };
        Ok(Self { view, steps: dir.steps(), note, seen, shortage: OnceCell::new() })
    }

    /// Returns the status of an agent. Looks for turn files only in a locked run.
    pub fn status(&self, agent: &Agent) -> AgentStatus {
        let run = &self.view.run;
        match AgentStatus::of(run, agent, self.seen, self.has_started(agent)) {
            status @ AgentStatus::Waiting(WaitReason::Permit) => {
                self.shortage().refine(agent, status)
            }
            status => status,
        }
    }

    fn has_started(&self, agent: &Agent) -> bool {
        let turn = agent.turn_id();
        self.seen.held
            && match &self.note {
                Some(note) => note.has_started(&turn),
                None => TurnFiles::of(&self.steps, &turn).are_there(),
            }
    }

    fn shortage(&self) -> &BudgetShortage<'run> {
        self.shortage.get_or_init(|| {
            let run = &self.view.run;
            let is_limited = run.settings.budget_usd.is_some()
                || !run.shares.is_empty()
                || run.budget().calls.is_any();
            let running = run.agents.values().filter(|agent| is_limited && self.has_started(agent));
            BudgetShortage::of(run, running)
        })
    }
}

/// Returns the status of an agent in words.
pub fn sentence(agent: &Agent, status: &AgentStatus) -> String {
    let held = match status {
        AgentStatus::Waiting(WaitReason::Held) => "",
        AgentStatus::Running | AgentStatus::Waiting(_) => held_beside(agent),
    };
    format!("{}{held}", without_hold(agent, status))
}

/// Returns the end of a sentence about an agent that does something else, if a person holds it as well.
pub fn held_beside(agent: &Agent) -> &'static str {
    if agent.is_held() { "; is held" } else { "" }
}

fn without_hold(agent: &Agent, status: &AgentStatus) -> String {
    let host = &agent.spec.working_dir.home.host;
    match status {
        AgentStatus::Running => match (current_execution(agent), host) {
            (Some(work), _) => work,
            (None, None) => "running".to_owned(),
            (None, Some(host)) => format!("running on {host}"),
        },
        AgentStatus::Waiting(WaitReason::Permit) => match host {
            None => wait_sentence(&WaitReason::Permit, when),
            Some(host) => format!("waits for a free process on {host}"),
        },
        AgentStatus::Waiting(reason) => wait_sentence(reason, when),
    }
}

/// Returns a time as that from now if it comes within the hour, else as a date.
fn when(until: Timestamp) -> String {
    match until.since(now()) {
        0 | HOUR.. => date(until),
        soon => format!("in {}", table::span(soon)),
    }
}

/// Returns the status of several agents that have the same, to stand behind their number.
pub fn of_many(status: &AgentStatus) -> &'static str {
    match status {
        AgentStatus::Running => "running",
        AgentStatus::Waiting(reason) => waits_of_many(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::agent_status::RunObservation;
    use crate::domain::event::{AgentParked, Event};
    use crate::domain::tests::scene::{Scene, goto, result, tag};
    use crate::domain::time::Timestamp;
    use crate::domain::transition::TagName;

    /// Returns the cells of each row: the name, the state and the activity.
    fn lines(scene: &Scene) -> Vec<String> {
        let seen = RunObservation { now: Timestamp(0), held: true, is_shared: false };
        let of = |agent: &Agent| AgentStatus::of(&scene.run, agent, seen, false);
        let table = AgentTable::of(AgentTree::of(&scene.run), of);
        let row = |row: &TreeRow| {
            format!("{} | {} | {}", table.name(row), table.state_text(row), table.summary(row))
        };
        table.rows(false).iter().map(row).collect()
    }

    fn crowd(workers: u32) -> Scene {
        let mut scene = Scene::begin();
        (0..workers).for_each(|_| {
            scene.take("main", tag(TagName::Fork, "NEXT.md", "WORK.md"));
        });
        scene
    }

    #[test]
    fn folded_row_shows_states_and_counts_by_status() {
        let mut scene = crowd(20);
        (1..=5).for_each(|number| {
            scene.take(&format!("main.{number}"), result("done"));
        });
        let line =
            "20 agents, main.1 … main.20 | WORK.md | 15 wait for a free process · 5 finished";
        assert_eq!(lines(&scene)[1], line);
        scene.take("main.6", goto("B.md"));
        let (turn, state) = (scene.turn("main.7"), scene.agent("main.7").current_state.clone());
        let reason = "it crashed".to_owned();
        scene.happens(Event::AgentParked(AgentParked { turn, state, reason }));
        scene.happens(Event::AgentFailed(scene.end_badly("main.8")));
        let rows = lines(&scene);
        assert_eq!(
            rows[1],
            "20 agents, main.1 … main.20 | WORK.md, B.md | 1 wait for a person · 13 wait for a free process · 1 failed (unusable output) · 5 finished"
        );
        assert_eq!(rows[2], "main.7 | WORK.md | waits for a person: it crashed");
        assert_eq!(rows[3], "main.8 | failed (unusable output) | unusable");
    }

    #[test]
    fn folded_row_notes_that_not_all_failed_agents_follow() {
        let mut scene = crowd(30);
        (1..=20).for_each(|number| {
            scene.happens(Event::AgentFailed(scene.end_badly(&format!("main.{number}"))));
        });
        let rows = lines(&scene);
        assert_eq!(rows.len(), 2 + FAMILY_FOLD_SIZE);
        assert!(rows[1].ends_with("; the first 12 of 20 that failed follow"), "{}", rows[1]);
    }
}
