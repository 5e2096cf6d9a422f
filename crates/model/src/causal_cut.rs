//! A causal cut: an agent is cut before a step, and only what follows from that is left out of a run's records.
//!
//! The cut is a fold over the records. A record follows from the cut if it is about a cut agent, or if it takes in
//! something from a cut agent: its end, for which another agent waited, an answer, or a fact. The agents that such a
//! record changes are also cut from there on, and the agents that it creates do not exist. Records that were written
//! together stay together. All other records stay, so that their turns are not paid again.
//!
//! Agents that share a worktree see each other's files. Once files have changed after an agent in the worktree was cut,
//! nobody can tell which of the changes follow from the cut, so the other agents there are cut at that point, too.
//! Agents that only read stay.
//!
//! If the dependence is unknown, the record follows from the cut: a run that had branched off another is cut as a whole
//! at that record, and facts that a program of a cut agent can match are not seen.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::agent::Agent;
use super::event::{Event, Record};
use super::fact::FactChange;
use super::id::AgentId;
use super::run::Run;
use crate::event::{
    AdvanceView, AdvancedTo, AgentFailed, AgentHold, AgentMessage, AttachedSession, JoinFinished,
    ProgramStarted, ProgramStatus, PromptEdit, QuestionAnswered, RoleRequested, RunCommand,
    StepFinished,
};
use crate::graph_execution::ProgramSource;
use crate::settings::forked_count;
use crate::transition::{TagName, Transition};

/// A place before which an agent is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CutSeed {
    /// A step of one agent.
    Step {
        agent: AgentId,
        /// The number of the step, from 1.
        step: u64,
    },
    /// The first step in a state.
    State {
        /// The agent; `None` for each.
        agent: Option<AgentId>,
        /// The name of the state, as people see it.
        state: String,
    },
}

/// The fold.
#[derive(Debug)]
pub struct CausalCut {
    seeds: Vec<CutSeed>,
    /// The parts of the run that are other than they were.
    lost: BTreeSet<RunPart>,
    /// The owners of the worktrees in which agents that are cut work.
    trees: BTreeSet<AgentId>,
    hidden: HiddenLabels,
    /// The labels of facts of which a change was left out.
    missed: BTreeSet<String>,
    is_whole: bool,
    is_reached: bool,
    batch: PendingBatch,
}

/// The records that were written together, as far as they were seen.
#[derive(Debug, Default)]
struct PendingBatch {
    is_left_out: bool,
    changes: Vec<RunPart>,
    /// The owners of the worktrees in which the agents work that it changes.
    trees: Vec<AgentId>,
    /// The labels of the facts that its programs can match.
    labels: HiddenLabels,
    /// The labels of its changes of facts.
    facts: BTreeSet<String>,
}

impl CausalCut {
    /// Begins the fold after the record that starts the run.
    pub fn begin(seeds: Vec<CutSeed>, run: &Run) -> Self {
        let mut cut = Self {
            seeds,
            lost: BTreeSet::new(),
            trees: BTreeSet::new(),
            hidden: HiddenLabels::default(),
            missed: BTreeSet::new(),
            is_whole: false,
            is_reached: false,
            batch: PendingBatch::default(),
        };
        cut.cut_at_seeds(run, run.agents.keys().cloned().map(RunPart::Agent).collect());
        cut
    }

    /// Returns whether an agent has come to one of the places.
    pub fn is_reached(&self) -> bool {
        self.is_reached
    }

    /// Returns whether an agent is cut.
    pub fn is_cut(&self, agent: &AgentId) -> bool {
        self.lost.contains(&RunPart::Agent(agent.clone()))
    }

    /// Sees the next record of a batch; `before` is the run before it.
    pub fn see(&mut self, before: &Run, record: &Record) {
        if !self.is_reached {
            // Nothing is cut yet, so only the agents that may come to a place matter.
            self.batch.changes.extend(RecordDependence::of(before, record).changes);
            return;
        }
        let dependence = RecordDependence::of(before, record);
        let is_left_out = self.is_whole
            || dependence.is_of_whole_run
            || (dependence.ends_all_agents && !self.lost.is_empty())
            || dependence.needs.iter().any(|part| self.lost.contains(part))
            || self.is_cut_fact(before, dependence.facts)
            || dependence.changed_tree.is_some_and(|tree| self.trees.contains(tree))
            || self.reads_missed_facts(before, dependence.program);
        self.is_whole |= dependence.is_of_whole_run;
        self.batch.is_left_out |= is_left_out;
        for part in dependence.changes {
            if let RunPart::Agent(id) = &part
                && let Some(agent) = before.agents.get(id)
            {
                self.batch.labels.add_of(before, agent);
                self.batch.trees.extend(agent.spec.working_dir.tree.clone());
            }
            self.batch.changes.push(part);
        }
        self.batch.labels.extend(dependence.labels);
        self.batch.facts.extend(dependence.facts.iter().map(|change| change.label().to_owned()));
    }

    /// Ends a batch; `after` is the run after it. Returns the records that stay: none if one of them is left out. A
    /// retry loses the agents that are cut.
    pub fn settle(&mut self, after: &Run, records: Vec<Record>) -> Vec<Record> {
        let batch = std::mem::take(&mut self.batch);
        if batch.is_left_out {
            self.lost.extend(batch.changes);
            self.trees.extend(batch.trees);
            self.hidden.extend(batch.labels);
            self.missed.extend(batch.facts);
            return Vec::new();
        }
        let kept =
            records.into_iter().filter_map(|record| self.without_cut_agents(record)).collect();
        self.cut_at_seeds(after, batch.changes);
        kept
    }

    /// Cuts the agents that a batch has brought to one of the places.
    fn cut_at_seeds(&mut self, run: &Run, changed: Vec<RunPart>) {
        for part in changed {
            let RunPart::Agent(id) = &part else { continue };
            let Some(agent) = run.agents.get(id) else { continue };
            if !self.lost.contains(&part) && self.seeds.iter().any(|seed| seed.is_at(agent)) {
                self.is_reached = true;
                self.hidden.add_of(run, agent);
                self.trees.extend(agent.spec.working_dir.tree.clone());
                self.lost.insert(part);
            }
        }
    }

    /// Returns whether a change of a fact may follow from the cut, or comes later than what a cut program sees.
    fn is_cut_fact(&self, before: &Run, changes: &[FactChange]) -> bool {
        let is_by_cut_agent = |source: &str| {
            let agent = source.strip_prefix(before.workflow_id.as_str())?.strip_prefix('/')?;
            Some(self.is_cut(&AgentId::parse(agent).ok()?))
        };
        changes.iter().any(|change| {
            self.hidden.has(change.label())
                || match change {
                    FactChange::Asserted(fact) => is_by_cut_agent(&fact.source) == Some(true),
                    // Nobody knows who has taken a fact.
                    FactChange::Retracted { .. } => true,
                }
        })
    }

    /// Returns whether a program can match facts of which a change was left out.
    fn reads_missed_facts(&self, before: &Run, program: Option<&Arc<str>>) -> bool {
        let definition = program.and_then(|program| before.definitions.get(program));
        definition.is_some_and(|known| known.labels.iter().any(|label| self.missed.contains(label)))
    }

    /// Returns what stays of a record that stays: cut agents have not ended, so they are not retried.
    fn without_cut_agents(&self, mut record: Record) -> Option<Record> {
        if let Event::AgentsRetried { agents } = &mut record.event {
            agents.retain(|retried| !self.is_cut(&retried.agent));
            return (!agents.is_empty()).then_some(record);
        }
        Some(record)
    }
}

impl CutSeed {
    /// Returns whether an agent is at the place.
    fn is_at(&self, at: &Agent) -> bool {
        match self {
            Self::Step { agent, step } => at.id == *agent && at.step == *step,
            Self::State { agent, state } => {
                agent.as_ref().is_none_or(|agent| at.id == *agent)
                    && at.shown_state().as_str() == state
            }
        }
    }
}

// The dependence of a record: the parts of a run that it follows from, and those that it changes.
//
// Every event is named here, so that the compiler asks for a new one. An event that ends agents has to name all of them
// in its changes. A cost is not a dependence: what a turn has cost does not change any other turn.

/// A part of a run that a record follows from, or changes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum RunPart {
    Agent(AgentId),
    /// The recorded text of a program, by its checksum.
    Program(Arc<str>),
    /// The answers that were given ahead of time to the question with this name.
    PreparedAnswers(String),
    /// The files of the worktree that belongs to this agent.
    Worktree(AgentId),
}

/// The parts that a record follows from, and those that it changes.
#[derive(Debug, Default)]
struct RecordDependence<'event> {
    /// The record cannot happen as it did unless all of these are as they were.
    needs: Vec<RunPart>,
    /// All of these are other than they were if the record does not happen.
    changes: Vec<RunPart>,
    /// The record ends all agents that live, and so those that are cut, even if they had ended before it.
    ends_all_agents: bool,
    /// The record is about the run as a whole: it happens to all of it or not at all.
    is_of_whole_run: bool,
    /// The labels of the facts that its program can match, if it brings one.
    labels: HiddenLabels,
    /// Its changes of facts.
    facts: &'event [FactChange],
    /// The program that it is about, by the checksum of its text.
    program: Option<&'event Arc<str>>,
    /// The owner of the worktree whose files have changed.
    changed_tree: Option<&'event AgentId>,
}

impl<'event> RecordDependence<'event> {
    /// Returns the dependence of a record on the run as it was before.
    fn of(before: &'event Run, record: &'event Record) -> Self {
        let Record { event, snapshot, seq: _, at: _, folder: _, kept_session: _, placed: _ } =
            record;
        let changed_tree = snapshot.as_ref().map(|snapshot| &snapshot.tree);
        let mut dependence = Self { changed_tree, ..Self::default() };
        dependence.changes.extend(dependence.changed_tree.cloned().map(RunPart::Worktree));
        if let Some(id) = event.agent() {
            dependence.needs.push(RunPart::Agent(id.clone()));
            dependence.changes.push(RunPart::Agent(id.clone()));
        }
        let agent = event.agent().and_then(|id| before.agents.get(id));
        let tree = agent.and_then(|agent| agent.spec.working_dir.tree.clone());
        dependence.needs.extend(tree.map(RunPart::Worktree));
        match event {
            Event::StepFinished(step) => dependence.step_finished(before, agent, step),
            Event::GraphAdvanced(_) | Event::ProgramAdvanced(_) | Event::LanguageAdvanced(_) => {
                dependence.program = agent.and_then(Agent::program).map(|dependence| &dependence.program);
                if let Some(advance) = event.advance() {
                    dependence.advanced(agent, &advance);
                }
            }
            // Facts depend on their sources, which the cut knows.
            Event::FactsSeen { changes } => dependence.facts = changes,
            Event::QuestionAnswered(answered) => dependence.question_answered(answered),
            Event::ProgramDefined(defined) => dependence.program_defined(before, defined),
            Event::ProgramStarted(started) => dependence.program_started(before, started),
            Event::RoleRequested(requested) => dependence.role_requested(agent, requested),
            Event::RoleResponded(_) => dependence.changes_program_of_role(before, agent),
            Event::RoleDelegated(_) => dependence.changes_children(agent, 1),
            Event::JoinFinished(finished) => dependence.join_finished(before, agent, finished),
            Event::AgentFailed(failed) => dependence.agent_failed(before, agent, failed),
            Event::AgentsRetried { agents } => {
                let retried = agents.iter().map(|placement| RunPart::Agent(placement.agent.clone()));
                dependence.changes.extend(retried);
            }
            Event::AgentsPlaced { .. } => {
                let placed = record.placed.iter().map(|placement| RunPart::Agent(placement.agent.clone()));
                dependence.changes.extend(placed);
            }
            Event::RunBranched(_) => dependence.is_of_whole_run = true,
            // These are about no more than their agent.
            Event::TransitionProposed(_)
            | Event::QuestionTimedOut(_)
            | Event::ApprovalAsked(_)
            | Event::ApprovalAnswered(_)
            | Event::TurnSuspended(_)
            | Event::ProgramLogged(_)
            | Event::JoinBegun(_)
            | Event::TurnHeld(_)
            | Event::TurnRejected(_)
            | Event::TurnFailed(_)
            | Event::CostCounted { .. }
            | Event::MessagesTaken { .. }
            | Event::AgentParked(_)
            // These come from outside, and are about no agent.
            | Event::RunStarted(_)
            | Event::LimitReached { .. }
            | Event::RunPaused { .. }
            | Event::RunResumed { .. } => {}
            Event::CommandReceived { command, .. } => dependence.command_received(before, command),
        }
        dependence
    }

    /// An order is about its agents: in a branch that begins before it, they have not been given it.
    fn command_received(&mut self, before: &Run, command: &RunCommand) {
        let ordered: Vec<AgentId> = match command {
            RunCommand::Stop | RunCommand::Answer(_) | RunCommand::Retry(_) => Vec::new(),
            RunCommand::Tell(AgentMessage { agent, .. }) | RunCommand::StopAgent { agent } => {
                vec![agent.clone()]
            }
            RunCommand::Edit(PromptEdit { turn, .. })
            | RunCommand::Attach(AttachedSession { turn, .. }) => vec![turn.agent.clone()],
            RunCommand::Hold(AgentHold { family, .. })
            | RunCommand::Release(AgentHold { family, .. }) => {
                before.agents.keys().filter(|id| family.has(id)).cloned().collect()
            }
        };
        for part in ordered.into_iter().map(RunPart::Agent) {
            self.needs.push(part.clone());
            self.changes.push(part);
        }
    }

    fn question_answered(&mut self, answered: &QuestionAnswered) {
        if answered.used_answers.is_some() {
            let answers = RunPart::PreparedAnswers(answered.node.clone());
            self.needs.push(answers.clone());
            self.changes.push(answers);
        }
    }

    fn program_defined(&mut self, before: &Run, defined: &ProgramSource) {
        self.labels.add(Some(defined));
        if !before.definitions.contains_key(&defined.program) {
            self.changes.push(RunPart::Program(defined.program.clone()));
        }
    }

    fn program_started(&mut self, before: &Run, started: &'event ProgramStarted) {
        self.needs.push(RunPart::Program(started.program.clone()));
        self.labels.add(before.definitions.get(&started.program));
        self.program = Some(&started.program);
    }

    fn agent_failed(&mut self, before: &Run, agent: Option<&Agent>, failed: &AgentFailed) {
        self.ends(before, agent);
        self.releases_roles(agent);
        if failed.ends_run {
            self.ends_all_agents = true;
            self.changes.extend(all_agents(before));
        }
    }

    fn step_finished(&mut self, before: &Run, agent: Option<&Agent>, step: &StepFinished) {
        if step.transition.tag() == TagName::Fork {
            self.changes_children(agent, forked_count(&step.children));
        }
        let is_result = matches!(step.transition, Transition::Result { .. });
        let is_end = agent.is_some_and(|agent| agent.stack.is_empty()) && step.restarted.is_none();
        if is_result && is_end {
            self.ends(before, agent);
        }
        self.releases_roles(agent);
    }

    fn advanced(&mut self, agent: Option<&Agent>, advanced: &AdvanceView<'_>) {
        if advanced.starts_agent() {
            self.changes_children(agent, 1);
        }
        if let AdvancedTo::Program(progress) = advanced.position
            && progress.status == ProgramStatus::Failed
        {
            self.releases_roles(agent);
        }
    }

    fn role_requested(&mut self, agent: Option<&Agent>, requested: &RoleRequested) {
        let handles = agent.and_then(Agent::program).map(|program| &program.handles);
        match handles.and_then(|handles| handles.get(&requested.handle)) {
            Some(role) => self.changes.push(RunPart::Agent(role.clone())),
            None => self.changes_children(agent, 1),
        }
    }

    /// A join follows from the ends of those it waited for, and from those that it stops.
    fn join_finished(&mut self, before: &Run, agent: Option<&Agent>, finished: &JoinFinished) {
        let stopped = finished.stopped.iter().map(|stopped| RunPart::Agent(stopped.agent.clone()));
        self.needs.extend(stopped.clone());
        self.changes.extend(stopped);
        let Some(agent) = agent else { return };
        let joined =
            agent.unjoined.numbers(agent.join_depth()).map(|number| agent.id.child(number));
        let ended = joined.filter(|child| !before.agents.contains_key(child));
        self.needs.extend(ended.map(RunPart::Agent));
    }

    /// The end of an agent goes on in the agent that waits for it alone. A join takes it in later.
    fn ends(&mut self, before: &Run, agent: Option<&Agent>) {
        let Some(ended) = agent else { return };
        let parent = ended.id.parent().and_then(|parent| before.agents.named(parent));
        if let Some(parent) = parent.filter(|parent| parent.awaited_agent() == Some(&ended.id)) {
            self.changes.push(RunPart::Agent(parent.id.clone()));
        }
        self.changes_program_of_role(before, agent);
    }

    fn changes_program_of_role(&mut self, before: &Run, role: Option<&Agent>) {
        let Some((role, mailbox)) = role.and_then(|role| Some((role, role.mailbox()?))) else {
            return;
        };
        let parent = role.id.parent().and_then(|parent| before.agents.named(parent));
        let serves = |program: &&Agent| {
            program.program().is_some_and(|program| program.id == mailbox.execution)
        };
        self.changes
            .extend(parent.filter(serves).map(|program| RunPart::Agent(program.id.clone())));
    }

    fn releases_roles(&mut self, agent: Option<&Agent>) {
        let roles = agent.into_iter().flat_map(Agent::roles);
        self.changes.extend(roles.cloned().map(RunPart::Agent));
    }

    /// The children that an agent creates.
    fn changes_children(&mut self, agent: Option<&Agent>, count: usize) {
        let Some(agent) = agent else { return };
        let first = agent.forked_count.saturating_add(1);
        let born = (first..=u32::MAX).take(count).map(|number| agent.id.child(number));
        self.changes.extend(born.map(RunPart::Agent));
    }
}

fn all_agents(run: &Run) -> impl Iterator<Item = RunPart> {
    run.agents.unordered().map(|agent| RunPart::Agent(agent.id.clone()))
}

// The labels of the facts that programs can match.

/// The labels of the facts whose later changes are not seen.
#[derive(Debug, Default)]
struct HiddenLabels {
    labels: BTreeSet<String>,
    /// A program may match any fact.
    all: bool,
}

impl HiddenLabels {
    fn has(&self, label: &str) -> bool {
        self.all || self.labels.contains(label)
    }

    /// Adds the labels that the program of an agent can match, if it is in one.
    fn add_of(&mut self, run: &Run, agent: &Agent) {
        if agent.runs_program() {
            self.add(run.kept_program(agent));
        }
    }

    /// Adds the labels of a program. An unknown program may match any fact.
    fn add(&mut self, program: Option<&ProgramSource>) {
        match program {
            Some(program) => self.labels.extend(program.labels.iter().cloned()),
            None => self.all = true,
        }
    }

    fn extend(&mut self, others: Self) {
        self.labels.extend(others.labels);
        self.all |= others.all;
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod dependence_tests {
    use super::*;
    use crate::event::AgentFamily;
    use crate::tests::scene::{Scene, tag};
    use crate::time::Timestamp;

    #[test]
    fn orders_depend_on_their_agents() {
        let mut scene = Scene::begin();
        scene.take("main", tag(TagName::Fork, "NEXT.md", "WORK.md"));
        let agents = |command: RunCommand| {
            let event = Event::CommandReceived { id: "c".to_owned(), command };
            let record = Record::next(&scene.run, Timestamp(0), event);
            let RecordDependence { needs, changes, .. } = RecordDependence::of(&scene.run, &record);
            assert_eq!(needs, changes);
            needs
        };
        let part = |id: &str| RunPart::Agent(AgentId::parse(id).expect("an agent"));
        let agent = AgentId::parse("main.1").expect("an agent");
        assert_eq!(agents(RunCommand::Stop), []);
        let message = AgentMessage { agent: agent.clone(), text: "t".to_owned() };
        assert_eq!(agents(RunCommand::Tell(message)), [part("main.1")]);
        assert_eq!(agents(RunCommand::StopAgent { agent }), [part("main.1")]);
        let all = AgentFamily::parse("main.*").expect("a family");
        assert_eq!(agents(RunCommand::Hold(all.into())), [part("main"), part("main.1")]);
    }
}
