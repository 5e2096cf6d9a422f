//! The rows of a run's agents and its headline, and what has changed in them. Pure.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::actor::registry::item_of;
use crate::domain::agent::Agent;
use crate::domain::id::{AgentId, RunId, StateName};
use crate::domain::money::Usd;
use crate::domain::printable::beginning;
use crate::domain::run::Run;
use crate::domain::time::Timestamp;
use crate::domain::views::run_standing;
use crate::plugin::sentence::date;
use crate::runtime::observing::activity_text::activity;
use crate::runtime::observing::agent_entries::{
    AgentEntry, MonitoredRun, StatusFilter, TopAgentStatus, entries,
};

/// The most bytes of an agent's activity.
const MAX_ACTIVITY_BYTES: usize = 240;

/// The kind of an agent's status, as the page counts and colours it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RowKind {
    /// It needs a person, or is silent.
    Stuck,
    /// A turn runs.
    Running,
    /// Its turn waits for a process, a time or money.
    Queued,
    /// It waits for something else.
    Waiting,
    /// It ended with an error.
    Failed,
    /// It ended with a result, or was no longer needed.
    Finished,
}

/// An agent in the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AgentRow {
    /// Its id.
    pub id: AgentId,
    /// The state it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<StateName>,
    /// The state it began in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began: Option<StateName>,
    /// The kind of its status.
    pub kind: RowKind,
    /// Its activity, the reason for which it waits, or its end.
    pub text: String,
    /// The time of its last progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The cost of its turns.
    pub cost_usd: Usd,
    /// The tokens of the turn that runs.
    #[serde(skip_serializing_if = "is_zero")]
    pub tokens: u64,
    /// The item it was forked with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The headline of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunHeadline {
    run: RunId,
    status: &'static str,
    held: bool,
    seq: u64,
    started_at: Option<Timestamp>,
    counts: KindCounts,
    total_cost_usd: Usd,
    budget_usd: Option<Usd>,
    pause: Option<String>,
    limited_until: Option<Timestamp>,
    refused_tools: u32,
    questions: usize,
    parked: usize,
    scope_dir: String,
}

/// The number of agents of each kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct KindCounts {
    stuck: usize,
    running: usize,
    queued: usize,
    waiting: usize,
    failed: usize,
    finished: usize,
}

/// The rows of a run and its headline, as they were told last.
#[derive(Debug, Default)]
pub struct ToldRun {
    rows: HashMap<AgentId, AgentRow>,
    headline: Option<RunHeadline>,
}

/// The parts of a run that have changed.
#[derive(Debug, Default, PartialEq)]
pub struct RunChanges {
    /// The rows of the agents that are new or different, parents before their children.
    pub rows: Vec<AgentRow>,
    /// The headline, if it is different.
    pub headline: Option<RunHeadline>,
}

impl ToldRun {
    /// Takes in a run as it is now, and as it is `expected` to be once it has taken the commands in its inbox; returns
    /// what has changed.
    pub fn update(
        &mut self,
        known: MonitoredRun<'_>,
        expected: &Run,
        started: Option<Timestamp>,
    ) -> RunChanges {
        let all = entries(known);
        let mut counts = [0; 6];
        let mut changes = RunChanges::default();
        for entry in &all {
            let row = row(known, entry);
            counts[row.kind as usize] += 1;
            if self.rows.get(&row.id) != Some(&row) {
                self.rows.insert(row.id.clone(), row.clone());
                changes.rows.push(row);
            }
        }
        changes.rows.sort_by(|one, other| one.id.cmp_by_number(&other.id));
        let headline = headline((known, expected), counts, started);
        if self.headline.as_ref() != Some(&headline) {
            self.headline = Some(headline.clone());
            changes.headline = Some(headline);
        }
        changes
    }

    /// Returns all rows, parents before their children.
    pub fn rows(&self) -> Vec<&AgentRow> {
        let mut rows: Vec<&AgentRow> = self.rows.values().collect();
        rows.sort_by(|one, other| one.id.cmp_by_number(&other.id));
        rows
    }

    /// Returns the headline.
    pub fn headline(&self) -> Option<&RunHeadline> {
        self.headline.as_ref()
    }
}

fn row(known: MonitoredRun<'_>, entry: &AgentEntry) -> AgentRow {
    let text = activity(known, entry, |until| format!("until {}", date(until)));
    AgentRow {
        id: entry.id.clone(),
        state: entry.state.clone(),
        began: entry.began.clone(),
        kind: kind(known, &entry.status),
        text: beginning(text, MAX_ACTIVITY_BYTES),
        since: entry.since,
        cost_usd: entry.spent,
        tokens: known.seen.get(&entry.id).map_or(0, |seen| seen.tokens),
        item: known.run.agents.get(&entry.id).and_then(item_of),
    }
}

fn kind(known: MonitoredRun<'_>, status: &TopAgentStatus) -> RowKind {
    match status.kind() {
        StatusFilter::Running => RowKind::Running,
        StatusFilter::Waiting if known.held && status.is_queued() => RowKind::Queued,
        StatusFilter::Waiting => RowKind::Waiting,
        StatusFilter::Stuck => RowKind::Stuck,
        StatusFilter::Failed => RowKind::Failed,
        StatusFilter::Finished => RowKind::Finished,
    }
}

fn headline(
    (known, expected): (MonitoredRun<'_>, &Run),
    counts: [usize; 6],
    started: Option<Timestamp>,
) -> RunHeadline {
    let run = known.run;
    let [stuck, running, queued, waiting, failed, finished] = counts;
    let questions =
        |agent: &Agent| usize::from(agent.question().is_some()) + agent.open_approvals().count();
    RunHeadline {
        run: run.workflow_id.clone(),
        status: run_standing(run, known.held),
        held: known.held,
        seq: run.seq,
        started_at: started,
        counts: KindCounts { stuck, running, queued, waiting, failed, finished },
        total_cost_usd: run.total_cost_usd,
        budget_usd: run.settings.budget_usd,
        pause: run.pause.as_ref().map(ToString::to_string),
        limited_until: run.limited(known.now),
        refused_tools: run.refused_tools.count(),
        questions: expected.agents.unordered().map(questions).sum(),
        parked: run.agents.unordered().filter(|agent| agent.parked_reason().is_some()).count(),
        scope_dir: run.scope_dir.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::tests::scene::{Scene, result, tag};
    use crate::domain::transition::TagName;
    use crate::runtime::observing::agent_entries::MonitoredTurn;

    fn known<'run>(
        scene: &'run Scene,
        seen: &'run HashMap<AgentId, MonitoredTurn>,
    ) -> MonitoredRun<'run> {
        let now = Timestamp(1_000_000);
        MonitoredRun { run: &scene.run, held: true, is_shared: false, seen, now }
    }

    #[test]
    fn only_what_has_changed_is_told() {
        let (seen, mut told) = (HashMap::new(), ToldRun::default());
        let mut scene = Scene::begin();
        scene.take("main", tag(TagName::Fork, "NEXT.md", "WORK.md"));
        let first = told.update(known(&scene, &seen), &scene.run, None);
        let ids: Vec<&str> = first.rows.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids, ["main", "main.1"]);
        assert!(first.headline.is_some());
        assert_eq!(told.update(known(&scene, &seen), &scene.run, None), RunChanges::default());
        scene.take("main.1", result("<b>done</b>"));
        let next = told.update(known(&scene, &seen), &scene.run, None);
        let [row] = next.rows.as_slice() else { panic!("one row: {next:?}") };
        assert_eq!((row.kind, row.text.as_str()), (RowKind::Finished, "<b>done</b>"));
        assert_eq!(next.headline.map(|one| one.counts.finished), Some(1));
        assert_eq!(told.rows().len(), 2);
    }
}
