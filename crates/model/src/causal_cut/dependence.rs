//! The dependence of a record: the parts of a run that it follows from, and those that it changes.
//!
//! Every event is named here, so that the compiler asks for a new one. An event that ends agents has to name all of them
//! in its changes. A cost is no dependence: what a turn has cost changes no other turn.
//!
//! The labels of the facts that programs can match.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::agent::Agent;
use crate::event::{
    AdvanceView, AdvancedTo, AgentFailed, Event, JoinFinished, ProgramStarted, ProgramStatus,
    QuestionAnswered, Record, RoleRequested, RunCommand, StepFinished,
};
use crate::event::{AgentHold, AgentMessage, AttachedSession, PromptEdit};
use crate::fact::FactChange;
use crate::id::AgentId;
use crate::program_execution::ProgramSource;
use crate::run::Run;
use crate::settings::forked_count;
use crate::transition::{TagName, Transition};

/// A part of a run that a record follows from, or changes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RunPart {
    /// An agent.
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
pub(super) struct RecordDependence<'event> {
    /// The record cannot happen as it did unless all of these are as they were.
    pub(super) needs: Vec<RunPart>,
    /// All of these are other than they were if the record does not happen.
    pub(super) changes: Vec<RunPart>,
    /// The record ends all agents that live, and so those that are cut, even if they had ended before it.
    pub(super) ends_all_agents: bool,
    /// The record is about the run as a whole: it happens to all of it or not at all.
    pub(super) is_of_whole_run: bool,
    /// The labels of the facts that its program can match, if it brings one.
    pub(super) labels: HiddenLabels,
    /// Its changes of facts.
    pub(super) facts: &'event [FactChange],
    /// The program that it is about, by the checksum of its text.
    pub(super) program: Option<&'event Arc<str>>,
    /// The owner of the worktree whose files have changed.
    pub(super) changed_tree: Option<&'event AgentId>,
}

impl<'event> RecordDependence<'event> {
    /// Returns the dependence of a record on the run as it was before.
    pub(super) fn of(before: &'event Run, record: &'event Record) -> Self {
        let Record { event, snapshot, seq: _, at: _, folder: _, kept_session: _, placed: _ } =
            record;
        let changed_tree = snapshot.as_ref().map(|snapshot| &snapshot.tree);
        let mut own = Self { changed_tree, ..Self::default() };
        own.changes.extend(own.changed_tree.cloned().map(RunPart::Worktree));
        if let Some(id) = event.agent() {
            own.needs.push(RunPart::Agent(id.clone()));
            own.changes.push(RunPart::Agent(id.clone()));
        }
        let agent = event.agent().and_then(|id| before.agents.get(id));
        let tree = agent.and_then(|agent| agent.spec.working_dir.tree.clone());
        own.needs.extend(tree.map(RunPart::Worktree));
        match event {
            Event::StepFinished(step) => own.step_finished(before, agent, step),
            Event::GraphAdvanced(_) | Event::ProgramAdvanced(_) | Event::LanguageAdvanced(_) => {
                own.program = agent.and_then(Agent::program).map(|own| &own.program);
                if let Some(advance) = event.advance() {
                    own.advanced(agent, &advance);
                }
            }
            // Facts depend on their sources, which the cut knows.
            Event::FactsSeen { changes } => own.facts = changes,
            Event::QuestionAnswered(answered) => own.question_answered(answered),
            Event::ProgramDefined(defined) => own.program_defined(before, defined),
            Event::ProgramStarted(started) => own.program_started(before, started),
            Event::RoleRequested(requested) => own.role_requested(agent, requested),
            Event::RoleResponded(_) => own.changes_program_of_role(before, agent),
            Event::RoleDelegated(_) => own.changes_children(agent, 1),
            Event::JoinFinished(finished) => own.join_finished(before, agent, finished),
            Event::AgentFailed(failed) => own.agent_failed(before, agent, failed),
            Event::AgentsRetried { agents } => {
                let retried = agents.iter().map(|one| RunPart::Agent(one.agent.clone()));
                own.changes.extend(retried);
            }
            Event::AgentsPlaced { .. } => {
                let placed = record.placed.iter().map(|one| RunPart::Agent(one.agent.clone()));
                own.changes.extend(placed);
            }
            Event::RunBranched(_) => own.is_of_whole_run = true,
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
            Event::CommandReceived { command, .. } => own.command_received(before, command),
        }
        own
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
        let roles = agent.and_then(Agent::program).into_iter().flat_map(|own| own.handles.values());
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

/// The labels of the facts whose later changes are not seen.
#[derive(Debug, Default)]
pub(super) struct HiddenLabels {
    pub(super) labels: BTreeSet<String>,
    /// A program may match any fact.
    pub(super) all: bool,
}

impl HiddenLabels {
    pub(super) fn has(&self, label: &str) -> bool {
        self.all || self.labels.contains(label)
    }

    /// Adds the labels that the program of an agent can match, if it is in one.
    pub(super) fn add_of(&mut self, run: &Run, agent: &Agent) {
        if agent.runs_program() {
            self.add(run.kept_program(agent));
        }
    }

    /// Adds the labels of a program. One that is not known may match any fact.
    pub(super) fn add(&mut self, program: Option<&ProgramSource>) {
        match program {
            Some(program) => self.labels.extend(program.labels.iter().cloned()),
            None => self.all = true,
        }
    }

    pub(super) fn extend(&mut self, others: Self) {
        self.labels.extend(others.labels);
        self.all |= others.all;
    }
}

#[cfg(test)]
mod tests {
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
        let told = AgentMessage { agent: agent.clone(), text: "t".to_owned() };
        assert_eq!(agents(RunCommand::Tell(told)), [part("main.1")]);
        assert_eq!(agents(RunCommand::StopAgent { agent }), [part("main.1")]);
        let all = AgentFamily::parse("main.*").expect("a family");
        assert_eq!(agents(RunCommand::Hold(all.into())), [part("main"), part("main.1")]);
    }
}
