//! The trace of a run without what differs in each run; the lineage of its records; and the files that it changed.
//!
//! The trace tells what the agents of a run came to, step by step. Ids of runs and sessions, times and costs are not in
//! it, nor are failures of the machine or the account. In the texts, the caller replaces the run's own paths and id
//! with marks. The texts of prompts and replies are too large for a whole run, so there are only their checksums.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::{Serialize, Serializer};

use crate::agent::Agent;
use crate::cassette::{FilePatch, RecordedChange, TextEdit};
use crate::event::{
    Event, GraphAdvanced, LanguageAdvanced, NextAction, ProgramProgress, ProgramStatus, Record,
};
use crate::graph_execution::{NodeExecution, RequestBody, RequestStatus, RoleRequest};
use crate::id::{AgentId, Folder, RunId, SessionId, StateName};
use crate::join::JoinOutcome;
use crate::ledger::{ChargeKind, Ledger, cost_of};
use crate::run::{AgentEnding, FinishedAgent, Run};
use crate::time::Timestamp;
use crate::transition::Transition;
use crate::turn::{FailureCause, TurnId};
use crate::worktree_snapshot::WorkingDir;

/// A kind of what can differ in a moment, the cause before its consequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[derive(Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TraceAspect {
    /// The state that the agent is in.
    State,
    /// The checksum of the prompt.
    Prompt,
    /// The model that cost most.
    Model,
    /// The checksum of the reply.
    Reply,
    /// The failure of a turn, or of the agent.
    Failure,
    /// The complaint about a reply that was refused.
    Refusal,
    /// The answer of a person.
    Answer,
    /// The request to a role, or its response.
    Request,
    /// The nodes of a graph that were executed.
    Nodes,
    /// The values that they set.
    Values,
    /// The line that a program logged.
    Log,
    /// The outcome of a join.
    Join,
    /// The tag, or the next action of a graph or a program.
    Transition,
    /// The payload of the tag `result`, or the question of the tag `ask`.
    Payload,
}

impl TraceAspect {
    /// Returns its word for people.
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// Returns whether its text is a checksum of what a turn was asked or has replied.
    pub fn is_checksum(self) -> bool {
        matches!(self, Self::Prompt | Self::Reply)
    }

    /// Returns whether it tells of a turn, and is absent if that is not known.
    pub fn may_be_unknown(self) -> bool {
        self.is_checksum() || self == Self::Model
    }

    /// Returns whether it is a part of the way of a step.
    pub fn is_outcome(self) -> bool {
        matches!(
            self,
            Self::Failure
                | Self::Refusal
                | Self::Answer
                | Self::Request
                | Self::Nodes
                | Self::Join
                | Self::Transition
        )
    }
}

/// A text of a run.
#[derive(Debug, Clone, Serialize)]
#[serde(into = "String")]
pub struct TracedText {
    /// The text, with marks instead of what can only be the run's own paths and id.
    pub text: String,
    /// The text with a mark in each place of the run's id, if that is another text: a short id can be a word.
    pub without_id: Option<String>,
}

impl TracedText {
    fn anonymous(&self) -> &str {
        self.without_id.as_deref().unwrap_or(&self.text)
    }
}

impl From<&str> for TracedText {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), without_id: None }
    }
}

impl From<TracedText> for String {
    fn from(traced: TracedText) -> Self {
        traced.text
    }
}

impl PartialEq for TracedText {
    /// Returns whether the texts are the same, or differ in nothing but the ids of their runs.
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text || self.anonymous() == other.anonymous()
    }
}

/// Something that happened to an agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TracedMoment {
    /// The number of its record.
    #[serde(rename = "record")]
    pub seq: u64,
    #[serde(serialize_with = "as_number")]
    pub turn: TurnId,
    /// True if the record ended a turn of a model.
    #[serde(skip)]
    pub ends_turn: bool,
    /// The parts that can be compared.
    #[serde(skip)]
    pub aspects: BTreeMap<TraceAspect, TracedText>,
}

fn as_number<S: Serializer>(turn: &TurnId, serializer: S) -> Result<S::Ok, S::Error> {
    turn.turn.serialize(serializer)
}

/// The end of an agent, or that it lives.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum TracedEnding {
    /// It ended with a result.
    #[serde(rename = "finished")]
    Result { result: TracedText },
    /// It ended with an error.
    Failed { error: TracedText },
    /// It was ended because nobody needed it.
    Unneeded,
    /// It lives.
    Live,
}

/// The texts of a turn, as checksums.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TracedTurn {
    /// The checksum of the prompt, if it is known.
    pub prompt: Option<TracedText>,
    /// The checksum of the reply, if it is known.
    pub reply: Option<TracedText>,
    /// The model that cost most.
    pub model: Option<String>,
}

/// The trace of a run.
#[derive(Debug, Clone)]
pub struct RunHistory {
    pub run: RunId,
    /// The origin of its records.
    pub lineage: RunLineage,
    /// The values that it was started with, by name.
    pub inputs: BTreeMap<String, TracedText>,
    /// The moments of each agent, in order.
    pub agents: BTreeMap<AgentId, Vec<TracedMoment>>,
    /// The endings of the agents.
    pub endings: BTreeMap<AgentId, TracedEnding>,
    pub costs: Ledger,
    /// The files that its turns changed, as far as their streams tell.
    pub files: FileTrace,
}

/// The fold that makes a trace of the records of a run.
#[derive(Debug, Default)]
pub struct TraceFold {
    opening: Option<(RunLineage, BTreeMap<String, TracedText>)>,
    agents: BTreeMap<AgentId, Vec<TracedMoment>>,
    costs: Ledger,
    /// The state of the program that each agent was seen in last.
    programs: BTreeMap<AgentId, String>,
}

impl TraceFold {
    /// Adds a record; `before` is the run as it was before it. `traced` replaces the run's own paths and id in a text.
    pub fn see(&mut self, before: &Run, record: &Record, traced: &dyn Fn(&str) -> TracedText) {
        let (lineage, inputs) = self.opening.get_or_insert_with(|| begin(before, traced));
        lineage.see(record);
        if let Event::RunBranched(branched) = &record.event {
            let given = branched.settings.variables.iter();
            inputs.extend(given.map(|(name, value)| (format!("var {name}"), traced(value))));
        }
        self.costs.count(before, &record.event);
        let Some(turn) = record.event.turn() else { return };
        let acting = before.agents.get(&turn.agent);
        let folder = acting.and_then(Agent::folder).or_else(|| record.folder.clone());
        let Some(found) = aspects(&record.event, folder.as_ref()) else { return };
        if let Some(program) = found.program {
            let is_same = self.programs.get(&turn.agent).is_some_and(|last| *last == program);
            if is_same && !ends_turn(record) {
                return;
            }
            self.programs.insert(turn.agent.clone(), program);
        }
        let aspects = found.aspects.into_iter().map(|(aspect, text)| (aspect, traced(&text)));
        let moment = TracedMoment {
            seq: record.seq,
            turn: turn.clone(),
            ends_turn: ends_turn(record),
            aspects: aspects.collect(),
        };
        self.agents.entry(turn.agent.clone()).or_default().push(moment);
    }

    /// Returns the trace. `run` is the run after the last record.
    pub fn finish(self, run: &Run, traced: &dyn Fn(&str) -> TracedText) -> RunHistory {
        let (lineage, inputs) = self.opening.unwrap_or_else(|| begin(run, traced));
        let ended = run.finished.iter().map(|ended| (ended.id.clone(), ending(ended, traced)));
        let live = run.agents.keys().map(|id| (id.clone(), TracedEnding::Live));
        RunHistory {
            run: run.workflow_id.clone(),
            lineage,
            inputs,
            agents: self.agents,
            endings: ended.chain(live).collect(),
            costs: self.costs,
            files: FileTrace::default(),
        }
    }
}

impl RunHistory {
    /// Removes the moments of the records up to this one, which another run shares.
    pub fn forget(&mut self, shared: u64) {
        for moments in self.agents.values_mut() {
            moments.retain(|moment| moment.seq > shared);
        }
        self.agents.retain(|_, moments| !moments.is_empty());
    }

    /// Returns the turns that have a moment.
    pub fn turns(&self) -> BTreeSet<TurnId> {
        let moments = self.agents.values().flatten().filter(|moment| moment.ends_turn);
        moments.map(|moment| moment.turn.clone()).collect()
    }

    /// Adds the texts of a turn that has ended.
    pub fn add_turn(&mut self, turn: &TurnId, texts: TracedTurn) {
        let moments = self.agents.get_mut(&turn.agent).into_iter().flatten();
        let mut ends = moments.filter(|moment| moment.ends_turn && moment.turn == *turn);
        let Some(moment) = ends.next() else { return };
        let TracedTurn { prompt, reply, model } = texts;
        let known = [
            (TraceAspect::Prompt, prompt),
            (TraceAspect::Reply, reply),
            (TraceAspect::Model, model.as_deref().map(TracedText::from)),
        ];
        moment.aspects.extend(known.into_iter().filter_map(|(aspect, text)| Some((aspect, text?))));
    }
}

fn ends_turn(record: &Record) -> bool {
    cost_of(&record.event).is_some_and(|charge| charge.on != ChargeKind::Nothing)
}

/// Returns the lineage and the inputs of a run that has just begun.
fn begin(
    run: &Run,
    traced: &dyn Fn(&str) -> TracedText,
) -> (RunLineage, BTreeMap<String, TracedText>) {
    let mut inputs = BTreeMap::new();
    let mut add = |name: String, value: &str| inputs.insert(name, traced(value));
    if let Some(main) = run.agents.get(&AgentId::main()) {
        add("state".to_owned(), main.spec.state.shown_in(main.spec.folder.as_ref()).as_str());
        for (name, value) in &main.spec.variables {
            add(format!("var {name}"), value);
        }
    }
    for (name, value) in &run.settings.variables {
        add(format!("var {name}"), value);
    }
    for (name, value) in &run.settings.context {
        add(format!("context {name}"), value);
    }
    if let Some(model) = &run.settings.model {
        add("model".to_owned(), &model.to_string());
    }
    (RunLineage::begin(run), inputs)
}

fn ending(ended: &FinishedAgent, traced: &dyn Fn(&str) -> TracedText) -> TracedEnding {
    match &ended.ending {
        AgentEnding::Result(payload) => TracedEnding::Result { result: traced(payload) },
        AgentEnding::Error(_) if ended.cause == Some(FailureCause::Unneeded) => {
            TracedEnding::Unneeded
        }
        AgentEnding::Error(error) => TracedEnding::Failed { error: traced(error) },
    }
}

// The origin of a run's records: those that it shares with the runs it branched off, and its own.

/// The origin of a run's records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLineage {
    /// The first session of the run that the others branched off. Nothing else has it.
    first_session: Option<SessionId>,
    /// The parts of the journal, in order.
    parts: Vec<LineagePart>,
    /// The number of the last record.
    last: u64,
}

/// The records that were written under one id.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LineagePart {
    run: RunId,
    /// The number and the time of its first record; of the first run the start of its first agent.
    from: u64,
    at: Timestamp,
    /// The number of the last record that is shared with the part before. Later records that a causal cut has kept get
    /// new numbers, so they are not shared.
    shared: u64,
}

impl RunLineage {
    /// Returns the lineage of a run, as it is after its first record.
    pub fn begin(run: &Run) -> Self {
        let main = run.agents.get(&AgentId::main());
        let at = main.map(|agent| agent.since).unwrap_or_default();
        Self {
            first_session: main.map(|agent| agent.turn_session().id.clone()),
            parts: vec![LineagePart { run: run.workflow_id.clone(), from: run.seq, at, shared: 0 }],
            last: run.seq,
        }
    }

    /// Adds a record.
    pub fn see(&mut self, record: &Record) {
        self.last = record.seq;
        if let Event::RunBranched(branched) = &record.event {
            let (origin, shared) = (&branched.origin.run, branched.origin.seq);
            if self.parts.last().is_some_and(|last| last.run != *origin) {
                // It was cut before the record with which that run itself branched off, so nothing tells which of these
                // records are those of the runs before.
                let (run, at) = (origin.clone(), Timestamp::default());
                self.parts.push(LineagePart { run, from: record.seq, at, shared: 0 });
            }
            let run = branched.run.clone();
            self.parts.push(LineagePart { run, from: record.seq, at: record.at, shared });
        }
    }

    /// Returns the ids under which its records were written, the first run's first.
    pub fn runs(&self) -> impl Iterator<Item = &RunId> {
        self.parts.iter().map(|part| &part.run)
    }

    /// Returns the number of the last record.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns the number of records at the beginning that two runs share.
    pub fn shared_with(&self, other: &Self) -> u64 {
        if self.first_session.is_none() || self.first_session != other.first_session {
            return 0;
        }
        let mut shared = 0;
        for (index, (part, other_part)) in self.parts.iter().zip(&other.parts).enumerate() {
            if part != other_part {
                break;
            }
            let (end, others_end) = (self.end_of(index), other.end_of(index));
            shared = end.min(others_end);
            if end != others_end {
                break;
            }
        }
        shared
    }

    fn end_of(&self, index: usize) -> u64 {
        self.parts.get(index + 1).map_or(self.last, |next| next.shared)
    }
}

// The files that the turns of a run changed, as far as their streams tell.

/// The changed files of a run. The agent is the owner of the worktree that has the file, if it is not in the run's own
/// directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileTrace {
    pub files: BTreeMap<(Option<AgentId>, String), TracedFile>,
    /// The number of commands that were run. What they changed is not known.
    pub commands: u64,
}

/// A file that turns changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TracedFile {
    /// The turns that changed it, in order.
    #[serde(serialize_with = "as_steps")]
    pub by: Vec<TurnId>,
    /// The result of the changes.
    #[serde(flatten)]
    pub content: TracedContent,
}

/// The result of the changes of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum TracedContent {
    /// The whole text.
    #[serde(rename = "content")]
    Known(String),
    /// Edits of a text that is not known.
    #[serde(rename = "edits")]
    Edited(Vec<TextEdit>),
}

impl TracedFile {
    /// Returns the steps that changed it, in order: `main.1#2`.
    pub fn steps(&self) -> impl Iterator<Item = String> {
        steps_of(&self.by)
    }
}

fn steps_of(turns: &[TurnId]) -> impl Iterator<Item = String> {
    turns.iter().map(|turn| format!("{}#{}", turn.agent, turn.step))
}

fn as_steps<S: Serializer>(turns: &[TurnId], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(steps_of(turns))
}

impl FileTrace {
    /// Adds the changes of a turn.
    pub fn add(&mut self, turn: &TurnId, dir: &WorkingDir, changes: Vec<RecordedChange>) {
        for RecordedChange { path, patch, .. } in changes {
            let path = dir.cwd.as_ref().map_or_else(|| path.clone(), |cwd| format!("{cwd}/{path}"));
            let key = (dir.tree.clone(), path);
            let none = TracedFile { content: TracedContent::Edited(Vec::new()), by: Vec::new() };
            let file = self.files.entry(key).or_insert(none);
            if file.by.last() != Some(turn) {
                file.by.push(turn.clone());
            }
            file.content.change(patch);
        }
    }
}

impl TracedContent {
    fn change(&mut self, patch: FilePatch) {
        match (&mut *self, patch) {
            (_, FilePatch::Content(text)) => *self = Self::Known(text),
            (Self::Edited(edits), FilePatch::Edits(more)) => edits.extend(more),
            (Self::Known(text), FilePatch::Edits(edits)) => {
                let changed = FilePatch::Edits(edits.clone()).apply(Some(text));
                // If an edit does not apply, something else changed the file in between.
                *self = changed.map_or(Self::Edited(edits), Self::Known);
            }
        }
    }
}

// The parts of events that make the moments of a trace.

/// The comparable parts of a record.
#[derive(Debug, Default)]
struct MomentAspects {
    aspects: BTreeMap<TraceAspect, String>,
    /// The state of the program and its status, if the agent advanced in one. Several records can have the same: how
    /// often a program looks at its conditions depends on who answers first.
    program: Option<String>,
}

impl MomentAspects {
    fn in_state(state: &StateName, folder: Option<&Folder>) -> Self {
        Self::default().with(TraceAspect::State, state.shown_in(folder).to_string())
    }

    fn with(mut self, aspect: TraceAspect, text: impl Into<String>) -> Self {
        self.aspects.insert(aspect, text.into());
        self
    }

    fn with_transition(self, transition: &Transition) -> Self {
        let all = self.with(TraceAspect::Transition, transition.to_string());
        match transition {
            Transition::Result { payload, .. } => all.with(TraceAspect::Payload, payload.as_str()),
            Transition::Ask { question, .. } => all.with(TraceAspect::Payload, question.as_str()),
            _ => all,
        }
    }
}

/// Returns the comparable parts of a record; `None` if it tells of the machine, of the whole run, or of no progress.
fn aspects(event: &Event, folder: Option<&Folder>) -> Option<MomentAspects> {
    let at = |state: &StateName| MomentAspects::in_state(state, folder);
    Some(match event {
        Event::StepFinished(step) => at(&step.state).with_transition(&step.transition),
        Event::TransitionProposed(asked) => at(&asked.state).with_transition(&asked.transition),
        Event::GraphAdvanced(graph) => of_graph(at(&graph.file), graph)
            .with(TraceAspect::Transition, next_action(&graph.next_action, &graph.node)),
        Event::ProgramAdvanced(advanced) => {
            let ProgramProgress { state, status, .. } = &advanced.progress;
            let status = match status {
                ProgramStatus::Running | ProgramStatus::Waiting => "at work",
                ProgramStatus::Completed => "completed",
                ProgramStatus::Failed => "failed",
            };
            let text = format!("{state}, {status}");
            let at = at(&advanced.file).with(TraceAspect::Transition, text.as_str());
            MomentAspects { program: Some(text), ..at }
        }
        Event::LanguageAdvanced(advanced) => {
            let LanguageAdvanced { file, reached, next_action: next, .. } = &**advanced;
            at(file)
                .with(TraceAspect::Values, reached.position.to_string())
                .with(TraceAspect::Transition, next_action(next, &reached.language))
        }
        Event::QuestionAnswered(answered) => {
            let text = format!("{}: {}", answered.node, answered.answer.raw);
            at(&answered.state).with(TraceAspect::Answer, text)
        }
        Event::QuestionTimedOut(late) => {
            let text = format!("none in time, so {}", late.enters.shown_in(folder));
            at(&late.state).with(TraceAspect::Answer, text)
        }
        Event::ApprovalAsked(asked) => at(&asked.state)
            .with(TraceAspect::Request, format!("approval: {}", asked.request.summary())),
        Event::ApprovalAnswered(answered) => {
            let text = format!("{}: {}", answered.tool, answered.verdict.phrase());
            at(&answered.state).with(TraceAspect::Answer, text)
        }
        Event::ProgramLogged(logged) => at(&logged.file).with(TraceAspect::Log, &*logged.text),
        Event::RoleRequested(asked) => {
            let text = format!("{}: {}", asked.handle, request(&asked.request));
            at(&asked.file).with(TraceAspect::Request, text)
        }
        Event::RoleResponded(response) => {
            let text = format!("{}: {}", response.name, outcome(&response.response));
            at(&response.state).with(TraceAspect::Request, text)
        }
        Event::RoleDelegated(delegated) => {
            let text = format!("delegated to {}", delegated.spec.shown_state());
            at(&delegated.state).with(TraceAspect::Request, text)
        }
        Event::JoinFinished(join) => {
            let outcome = match join.outcome {
                JoinOutcome::Met => "met",
                JoinOutcome::Missed => "missed",
                JoinOutcome::Late => "late",
            };
            let mut text = format!(
                "{outcome}: {} of {} done, {} failed",
                join.tally.done, join.tally.count, join.tally.failed
            );
            if let Some(enters) = &join.enters {
                let _ = write!(text, ", so {}", enters.shown_in(folder));
            }
            at(&join.state).with(TraceAspect::Join, text)
        }
        Event::TurnRejected(rejected) => {
            at(&rejected.state).with(TraceAspect::Refusal, &*rejected.violation)
        }
        Event::TurnFailed(failed) if !failed.cause.is_of_environment() => {
            let text = format!("{}: {}", failed.cause, failed.message);
            at(&failed.state).with(TraceAspect::Failure, text)
        }
        Event::AgentFailed(failed) => {
            let text = format!("{}: {}", failed.cause, failed.error);
            at(&failed.state).with(TraceAspect::Failure, text)
        }
        Event::AgentParked(parked) => {
            at(&parked.state).with(TraceAspect::Failure, format!("parked: {}", parked.reason))
        }
        _ => return None,
    })
}

fn of_graph(at: MomentAspects, graph: &GraphAdvanced) -> MomentAspects {
    let node = |visit: &NodeExecution| {
        let error = visit.error.as_ref().map_or(String::new(), |error| format!(": {error}"));
        format!("{} {}{error}", visit.node, visit.outcome)
    };
    let nodes: Vec<String> = graph.visits.iter().map(node).collect();
    let change = |change| serde_json::to_string(change).unwrap_or_default();
    let values: Vec<String> = graph.changes.iter().map(change).collect();
    let with = |at: MomentAspects, aspect, lines: Vec<String>| {
        if lines.is_empty() { at } else { at.with(aspect, lines.join("\n")) }
    };
    let at = with(at, TraceAspect::Nodes, nodes);
    with(at, TraceAspect::Values, values)
}

fn next_action(next: &NextAction, place: &str) -> String {
    match next {
        NextAction::Walk => format!("{place}: continues"),
        NextAction::Operation(kind) => format!("{place}: {kind}"),
        NextAction::Task(task) => format!("{place}: asks {}", task.name),
        NextAction::Question(question) => format!("{place}: asks a person: {}", question.text),
        NextAction::Agent { spec, .. } => format!("{place}: an agent in {}", spec.shown_state()),
        NextAction::Join(_) => format!("{place}: a join"),
        NextAction::Wait => format!("{place}: waits"),
        NextAction::Nothing => format!("{place}: ends"),
    }
}

fn request(asked: &RoleRequest) -> String {
    let RoleRequest { name, role, body, .. } = asked;
    match body {
        RequestBody::Prompt(task) => format!("{name} of {role}\n{}", task.prompt),
        RequestBody::Folder { folder, start, input } => {
            format!("{name} of {role} in {}\n{input}", start.shown_in(folder.as_ref()))
        }
    }
}

fn outcome(status: &RequestStatus) -> String {
    match status {
        RequestStatus::Pending => "none yet".to_owned(),
        RequestStatus::Answer(answer) => answer.to_string(),
        RequestStatus::Failed(why) => format!("failed: {why}"),
    }
}

#[cfg(test)]
mod run_lineage_tests {
    use super::*;

    /// Returns a lineage of parts with their first records.
    fn lineage(session: &str, parts: &[(&str, u64)], last: u64) -> RunLineage {
        let part = |&(run, from): &(&str, u64)| LineagePart {
            run: RunId::parse(run).expect("an id"),
            from,
            at: Timestamp(from),
            shared: from.saturating_sub(1),
        };
        let first_session = Some(SessionId::new(session));
        RunLineage { first_session, parts: parts.iter().map(part).collect(), last }
    }

    #[test]
    fn branches_share_records_up_to_the_earlier_cut() {
        let source = lineage("s", &[("a", 1)], 50);
        let branch = lineage("s", &[("a", 1), ("b", 21)], 40);
        let later = lineage("s", &[("a", 1), ("c", 31)], 60);
        let of_branch = lineage("s", &[("a", 1), ("b", 21), ("d", 26)], 30);
        for (left, right, shared) in [
            (&source, &source, 50),
            (&source, &branch, 20),
            (&source, &later, 30),
            (&branch, &later, 20),
            (&branch, &of_branch, 25),
            (&source, &of_branch, 20),
            (&later, &of_branch, 20),
        ] {
            assert_eq!((left.shared_with(right), right.shared_with(left)), (shared, shared));
        }
    }

    #[test]
    fn branch_of_the_kept_records_of_another_branch_shares_nothing_for_certain() {
        let source = lineage("s", &[("a", 1)], 50);
        let mut branch = lineage("s", &[("a", 1), ("b", 21)], 40);
        branch.parts[1].shared = 15;
        let mut of_kept = lineage("s", &[("a", 1), ("b", 18), ("c", 18)], 30);
        (of_kept.parts[1].shared, of_kept.parts[2].shared) = (0, 17);
        assert_eq!((source.shared_with(&of_kept), branch.shared_with(&of_kept)), (0, 0));
    }

    #[test]
    fn records_that_a_causal_cut_has_kept_are_not_shared() {
        let source = lineage("s", &[("a", 1)], 50);
        let mut branch = lineage("s", &[("a", 1), ("b", 21)], 40);
        branch.parts[1].shared = 15;
        assert_eq!((source.shared_with(&branch), branch.shared_with(&source)), (15, 15));
    }

    #[test]
    fn runs_of_the_same_id_share_nothing_unless_one_started_the_other() {
        let lineage_of_s = lineage("s", &[("a", 1)], 50);
        assert_eq!(lineage_of_s.shared_with(&lineage("t", &[("a", 1)], 50)), 0);
        let branch = lineage("s", &[("a", 1), ("b", 21)], 40);
        let other = RunLineage {
            parts: vec![
                branch.parts[0].clone(),
                LineagePart { at: Timestamp(99), ..branch.parts[1].clone() },
            ],
            ..branch.clone()
        };
        assert_eq!(branch.shared_with(&other), 20);
    }
}

#[cfg(test)]
mod file_trace_tests {
    use super::*;
    use crate::id::Folder;

    fn turn(step: u64) -> TurnId {
        TurnId { agent: AgentId::main(), step, turn: 0 }
    }

    fn change(patch: FilePatch) -> Vec<RecordedChange> {
        vec![RecordedChange { path: "a".to_owned(), tool: "Edit".to_owned(), patch }]
    }

    fn edit(old: &str, new: &str) -> FilePatch {
        FilePatch::Edits(vec![TextEdit { old: old.to_owned(), new: new.to_owned(), all: false }])
    }

    #[test]
    fn text_is_known_from_the_turn_that_wrote_the_whole_file() {
        let mut trace = FileTrace::default();
        let dir = WorkingDir {
            tree: None,
            unsnapshotted: false,
            cwd: Some(Folder::parse("sub").expect("a folder")),
            ..WorkingDir::default()
        };
        trace.add(&turn(1), &dir, change(edit("x", "y")));
        trace.add(&turn(2), &dir, change(FilePatch::Content("one".to_owned())));
        trace.add(&turn(3), &dir, change(edit("one", "two")));
        let file = &trace.files[&(None, "sub/a".to_owned())];
        assert_eq!(file.content, TracedContent::Known("two".to_owned()));
        assert_eq!(file.by, [turn(1), turn(2), turn(3)]);
        trace.add(&turn(4), &dir, change(edit("gone", "two")));
        let file = &trace.files[&(None, "sub/a".to_owned())];
        assert!(matches!(file.content, TracedContent::Edited(_)), "another has changed it");
    }
}
