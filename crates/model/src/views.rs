//! The typed views of a run: the rows that `--json` and the page show, and that the tables of the commands lay out.
//!
//! Each is built here, from the run and its records, and nowhere else. The order of the fields is that of the output.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::agent::Agent;
use crate::agent_status::{AgentStatus, WaitReason};
use crate::approval::{ApprovalRequest, GrantedRule, PendingApproval, RuleScope};
use crate::history::{HistoryStep, HistoryTurn};
use crate::host::HostName;
use crate::id::{AgentId, Folder, RunId, SessionId, StateName};
use crate::ledger::{Ledger, LedgerLine};
use crate::money::Usd;
use crate::person_wait::{PersonWait, PersonWaitSubject};
use crate::question::{Question, QuestionOption};
use crate::restart::{AgentFailures, fails_strictly};
use crate::run::{AgentEnding, FinishedAgent, PauseReason, Run, RunStatus};
use crate::time::Timestamp;
use crate::tool_call::ToolCall;
use crate::transition::Variables;
use crate::tree::{AgentNode, TreeMember};
use crate::turn::FailureCause;

/// Returns the word for the status of a run: a running run that no process holds is interrupted.
pub fn run_standing(run: &Run, held: bool) -> &'static str {
    match run.status {
        RunStatus::Running if held => "running",
        RunStatus::Running => "interrupted",
        RunStatus::Paused => "paused",
        RunStatus::Completed if fails_strictly(run) => "failed",
        RunStatus::Completed => "completed",
        RunStatus::Failed => "failed",
    }
}

/// A run in the list of runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunRow {
    /// Its id.
    pub run: RunId,
    pub status: &'static str,
    /// The time at which it was started.
    pub started_at: Timestamp,
    /// The reason for its pause.
    pub pause: Option<PauseReason>,
    /// The number of its live agents.
    pub live: usize,
    /// The number of its agents that have ended.
    pub finished: usize,
    /// The cost of all turns, in US dollars.
    pub total_cost_usd: Usd,
    /// The directory of its workflow.
    pub scope_dir: String,
    /// Its failed agents.
    #[serde(flatten)]
    pub failures: AgentFailures,
}

impl RunRow {
    /// Returns the row of a run; `held` tells whether a process holds it.
    pub fn of(run: &Run, held: bool, started_at: Timestamp) -> Self {
        Self {
            run: run.workflow_id.clone(),
            status: run_standing(run, held),
            started_at,
            pause: run.pause.clone(),
            live: run.agents.len(),
            finished: run.finished.len(),
            total_cost_usd: run.total_cost_usd,
            scope_dir: run.scope_dir.clone(),
            failures: AgentFailures::of(run),
        }
    }
}

/// A run that cannot be read, in the list of runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct UnreadableRunRow {
    /// Its id.
    pub run: RunId,
    /// The word for its status.
    pub status: &'static str,
    /// The time at which it was started.
    pub started_at: Timestamp,
    /// The reason why it cannot be read.
    pub error: String,
}

/// An open question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QuestionRow {
    /// The agent that asks.
    pub agent: AgentId,
    /// The name of the question.
    pub node: String,
    pub question: String,
    pub header: Option<String>,
    pub options: Vec<QuestionOptionRow>,
    /// True if a text of one's own is an answer.
    pub free: bool,
    /// The time at which it was asked.
    pub asked_at: Timestamp,
    /// The time until which an answer is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The tool call, if the question is whether it may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<ApprovalRequest>>,
}

/// An option of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QuestionOptionRow {
    pub id: String,
    pub label: String,
    /// Its meaning.
    pub description: String,
}

impl From<QuestionOption> for QuestionOptionRow {
    fn from(QuestionOption { id, label, description }: QuestionOption) -> Self {
        Self { id, label, description }
    }
}

impl QuestionRow {
    /// Returns the row of a question that `agent` asked at a time.
    pub fn of(agent: &AgentId, question: &Question, asked_at: Timestamp) -> Self {
        let Question { node, text, header, options, free } = question.clone();
        Self {
            agent: agent.clone(),
            node,
            question: text,
            header,
            free: free || options.is_empty(),
            options: options.into_iter().map(QuestionOptionRow::from).collect(),
            asked_at,
            until: None,
            approval: None,
        }
    }
}

/// A wait that a person can end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PersonWaitRow {
    pub run: RunId,
    /// The agent that waits.
    pub agent: AgentId,
    /// The kind of its subject.
    pub kind: &'static str,
    /// The time at which it began.
    pub since: Timestamp,
    /// The time at which it ends in any case.
    pub until: Option<Timestamp>,
    /// The command that ends it.
    pub command: String,
    #[serde(flatten)]
    pub subject: PersonWaitSubject,
}

impl PersonWaitRow {
    /// Returns the row of a wait in a run, which this command ends.
    pub fn of(run: &RunId, wait: &PersonWait, command: String) -> Self {
        let PersonWait { agent, since, until, subject } = wait.clone();
        Self { run: run.clone(), agent, kind: subject.name(), since, until, command, subject }
    }
}

/// The status of a live agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AgentStatusView {
    /// The host that its turns run at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostName>,
    /// Whether it runs or waits.
    pub status: &'static str,
    /// The reason why it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<WaitReason>,
}

impl AgentStatusView {
    /// Returns the view of an agent's status.
    pub fn of(agent: &Agent, status: &AgentStatus) -> Self {
        Self {
            host: agent.spec.working_dir.home.host.clone(),
            status: status.name(),
            waits_for: status.wait_reason().cloned(),
        }
    }
}

/// The ending of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AgentEndingView {
    /// Whether it finished, failed, or was no longer needed.
    pub status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Its error.
    #[serde(flatten)]
    pub failure: Option<AgentFailureView>,
    /// The messages of people that it did not receive before it ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<String>,
}

/// The error that an agent ended with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AgentFailureView {
    /// The message.
    pub error: String,
    /// The kind of failure, if it is known.
    pub cause: Option<FailureCause>,
}

impl AgentEndingView {
    /// Returns the view of an agent's ending.
    pub fn of(agent: &FinishedAgent) -> Self {
        let cause = agent.cause;
        let (result, failure) = match &agent.ending {
            AgentEnding::Result(result) => (Some(result.clone()), None),
            AgentEnding::Error(error) => {
                (None, Some(AgentFailureView { error: error.clone(), cause }))
            }
        };
        Self { status: agent.standing(), result, failure, untold: agent.untold.clone() }
    }
}

/// An agent in the tree of a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TreeAgentRow {
    pub id: AgentId,
    /// The agent that forked it.
    pub parent: Option<String>,
    /// True if it lives.
    pub live: bool,
    /// The cost of its turns, in US dollars.
    pub cost_usd: Usd,
    /// The cost of its turns and those of its descendants.
    pub cost_with_descendants_usd: Usd,
    /// The number of its descendants.
    pub descendants: usize,
    /// The state of a live agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<StateName>,
    /// The step of a live agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// The folder of its state below the run's root, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
    /// The status of a live agent.
    #[serde(flatten)]
    pub status: Option<AgentStatusView>,
    /// The ending of another one.
    #[serde(flatten)]
    pub ending: Option<AgentEndingView>,
}

impl TreeAgentRow {
    /// Returns the row of an agent, with its status if it lives.
    pub fn of(node: &AgentNode<'_>, status: Option<&AgentStatus>) -> Self {
        let (live, ended) = match node.member {
            TreeMember::Live(agent) => (Some(agent), None),
            TreeMember::Ended(agent) => (None, Some(agent)),
        };
        Self {
            id: node.id.clone(),
            parent: node.id.parent().map(str::to_owned),
            live: live.is_some(),
            cost_usd: node.cost,
            cost_with_descendants_usd: node.total_cost,
            descendants: node.descendants,
            state: live.map(|agent| agent.current_state.clone()),
            step: live.map(|agent| agent.step),
            folder: live.and_then(Agent::folder),
            status: live.zip(status).map(|(agent, status)| AgentStatusView::of(agent, status)),
            ending: ended.map(AgentEndingView::of),
        }
    }
}

/// The agents of a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunTree {
    pub run: RunId,
    pub status: &'static str,
    /// The cost of all turns, in US dollars.
    pub total_cost_usd: Usd,
    /// Its agents, parents before their children.
    pub agents: Vec<TreeAgentRow>,
    /// Its failed agents.
    #[serde(flatten)]
    pub failures: AgentFailures,
}

/// An agent of a run, step by step.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AgentDetail {
    pub run: RunId,
    pub agent: AgentId,
    /// The agent that forked it.
    pub parent: Option<String>,
    /// True if it lives.
    pub live: bool,
    /// The cost of its turns, in US dollars.
    pub cost_usd: Usd,
    /// True if no model answers its turns.
    pub scripted: bool,
    pub steps: Vec<StepRow>,
    #[serde(flatten)]
    pub ending: Option<AgentEndingView>,
}

/// An agent's stay in one state.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StepRow {
    /// Its number, from 1.
    pub step: u64,
    pub state: StateName,
    /// The time at which the agent entered it.
    pub since: Timestamp,
    /// The cost of its turns, in US dollars.
    pub cost_usd: Usd,
    /// Its turns: each the event that ended it, with the keys of a turn.
    pub turns: Vec<Value>,
    /// The folder of the state below the run's root, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
}

impl StepRow {
    /// Returns the row of a step with these turns.
    pub fn of(step: &HistoryStep, turns: Vec<Value>) -> Self {
        let HistoryStep { number, state, folder, since, .. } = step;
        let (state, folder) = (state.clone(), folder.clone());
        Self { step: *number, state, since: *since, cost_usd: step.cost(), turns, folder }
    }
}

/// What a turn adds to the event that ended it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TurnRow<'run> {
    pub agent: &'run AgentId,
    pub step: u64,
    /// The turn, from 0.
    pub turn: u32,
    pub state: &'run StateName,
    /// The time at which it ended.
    pub at: Option<Timestamp>,
    /// The session it ran in.
    pub session_id: &'run SessionId,
    /// True if the session can be resumed.
    pub can_resume_session: bool,
    pub prompt: Option<String>,
    /// The reply.
    pub answer: Option<String>,
    /// Its tool calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The host it ran at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<&'run HostName>,
    /// The reason why texts are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_texts: Option<String>,
    /// The output of the script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<Value>,
    /// The output of the command of a graph or a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Value>,
    /// The prompt of the evaluator, if it was its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluator: Option<&'run StateName>,
}

impl TurnRow<'_> {
    /// Returns the event that ended a turn of `agent`, or what happened instead, with the keys of the turn.
    pub fn with_end(&self, turn: &HistoryTurn, agent: &AgentId) -> Value {
        let mut value = match turn.end.as_ref().map(|end| &end.event) {
            Some(event) if event.agent() == Some(agent) => object(event),
            Some(event) if event.ends_run() => {
                object(&OtherTurnEnd::EndedWithRun { by: event.agent() })
            }
            Some(event) => object(&OtherTurnEnd::EndedByJoin { by: event.agent() }),
            None => object(&OtherTurnEnd::Due),
        };
        value.extend(object(self));
        Value::Object(value)
    }
}

/// The end of a turn without a separate event.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum OtherTurnEnd<'run> {
    EndedWithRun { by: Option<&'run AgentId> },
    EndedByJoin { by: Option<&'run AgentId> },
    Due,
}

/// Returns the keys of a value; none of a value that is not an object.
pub fn object(value: &impl Serialize) -> serde_json::Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(keys)) => keys,
        _ => serde_json::Map::new(),
    }
}

/// What a live agent lives with.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LiveAgentDetail {
    /// The state it is in.
    pub state: StateName,
    pub step: u64,
    /// Its turn, from 0.
    pub turn: u32,
    /// The time at which it entered the state.
    pub since: Timestamp,
    /// The session of its next turn.
    pub session: SessionId,
    /// Its status in words.
    pub sentence: String,
    pub variables: Variables,
    /// The variables it began with.
    pub born_with: Variables,
    /// Its pending returns, the next one first.
    pub stack: Vec<FrameRow>,
    /// The agent whose worktree it works in.
    pub worktree: Option<AgentId>,
    pub directory: Option<String>,
    /// The reason why it waits for a person.
    pub parked: Option<String>,
    /// True if it is held.
    pub held: bool,
    #[serde(flatten)]
    pub status: AgentStatusView,
}

/// A pending return.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FrameRow {
    /// The state to return to.
    pub state: StateName,
    /// The session to return to.
    pub session: SessionId,
}

/// A line of the costs of a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CostRow {
    /// The sums.
    #[serde(flatten)]
    pub line: LedgerLine,
    /// Its share of the whole cost, from 0 to 1.
    pub share: f64,
    /// The state, the model or the agent; absent for the sum of all.
    #[serde(flatten)]
    pub of: Option<CostSubject>,
}

/// The subject of a line of the costs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CostSubject {
    State(StateName),
    /// A model; `null` for costs of which it is not known.
    Model(Option<String>),
    Agent(AgentId),
}

/// The costs of a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunCosts {
    pub run: RunId,
    pub status: &'static str,
    /// The cost of all turns, in US dollars.
    pub total_cost_usd: Usd,
    /// Its budget.
    pub budget_usd: Option<Usd>,
    /// True if no model answers its turns.
    pub scripted: bool,
    /// The number of agents that ended with the run, perhaps in a turn of unknown cost.
    pub unbilled_agents: usize,
    /// The sum of all lines.
    pub total: CostRow,
    /// The costs by state, the most expensive first.
    pub states: Vec<CostRow>,
    /// The costs by model.
    pub models: Vec<CostRow>,
    /// The costs by agent.
    pub agents: Vec<CostRow>,
    /// The number of agents that are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_agents: Option<usize>,
}

impl RunCosts {
    /// Returns the costs of a run, of which this is the ledger.
    pub fn of(run: &Run, held: bool, ledger: &Ledger) -> Self {
        let whole = ledger.total.used.cost_usd;
        let row = |line: &LedgerLine, of| CostRow { line: *line, share: line.share(whole), of };
        let states = most_expensive_first(&ledger.states).into_iter();
        let models = most_expensive_first(&ledger.models).into_iter();
        let agents = agents_by_cost(ledger).into_iter();
        Self {
            run: run.workflow_id.clone(),
            status: run_standing(run, held),
            total_cost_usd: run.total_cost_usd,
            budget_usd: run.settings.budget_usd,
            scripted: !run.settings.answerer.calls_model(),
            unbilled_agents: unbilled_agents(run),
            total: row(&ledger.total, None),
            states: states
                .map(|(name, line)| row(line, Some(CostSubject::State(name.clone()))))
                .collect(),
            models: models
                .map(|(name, line)| row(line, Some(CostSubject::Model(name.clone()))))
                .collect(),
            agents: agents
                .map(|(name, line)| row(line, Some(CostSubject::Agent(name.clone()))))
                .collect(),
            more_agents: None,
        }
    }
}

/// Returns the number of agents that ended with the run, perhaps in the midst of a turn.
pub fn unbilled_agents(run: &Run) -> usize {
    run.finished.iter().filter(|ended| ended.unbilled_turn.is_some()).count()
}

/// Returns lines of a ledger, the most expensive first.
pub fn most_expensive_first<N>(lines: &BTreeMap<N, LedgerLine>) -> Vec<(&N, &LedgerLine)> {
    let mut lines: Vec<_> = lines.iter().collect();
    lines.sort_by_key(|(_, line)| Reverse(line.used.cost_usd));
    lines
}

/// Returns the lines of the agents, the most expensive first, and equal ones by their numbers.
pub fn agents_by_cost(ledger: &Ledger) -> Vec<(&AgentId, &LedgerLine)> {
    let mut agents: Vec<_> = ledger.agents.iter().collect();
    agents.sort_by(|(agent, line), (other, other_line)| {
        let by_cost = other_line.used.cost_usd.cmp(&line.used.cost_usd);
        by_cost.then_with(|| agent.cmp_by_number(other))
    });
    agents
}

/// A rule that was given with an answer to an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApprovalRuleRow<'run> {
    pub rule: String,
    /// The tool that it allows.
    pub tool: &'run str,
    /// The calls of the tool that it allows.
    pub content: Option<&'run str>,
    /// The state in which it holds; `None` for the whole run.
    pub state: Option<&'run StateName>,
    /// The name of the approval.
    pub approval: String,
    /// The one who gave it, if it was not a person.
    pub by: Option<&'run str>,
}

impl<'run> From<&'run GrantedRule> for ApprovalRuleRow<'run> {
    fn from(granted: &'run GrantedRule) -> Self {
        Self {
            rule: granted.rule.to_string(),
            tool: &granted.rule.tool,
            content: granted.rule.content.as_deref(),
            state: match &granted.scope {
                RuleScope::State(state) => Some(state),
                RuleScope::Run => None,
            },
            approval: PendingApproval::name_of(granted.approval),
            by: granted.by.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::agent_status::RunObservation;
    use crate::event::Event;
    use crate::tests::scene::{Scene, result, tag};
    use crate::transition::TagName;
    use crate::tree::AgentTree;

    fn rows(scene: &Scene) -> Vec<Value> {
        let seen = RunObservation { now: Timestamp(0), held: true, is_shared: false };
        let tree = AgentTree::of(&scene.run);
        let row = |node: &AgentNode<'_>| {
            let status = match node.member {
                TreeMember::Live(agent) => Some(AgentStatus::of(&scene.run, agent, seen, false)),
                TreeMember::Ended(_) => None,
            };
            json!(TreeAgentRow::of(node, status.as_ref()))
        };
        tree.nodes().iter().map(row).collect()
    }

    #[test]
    fn agent_row_has_the_keys_of_its_status_or_of_its_ending() {
        let mut scene = Scene::begin();
        (0..2).for_each(|_| {
            scene.take("main", tag(TagName::Fork, "NEXT.md", "WORK.md"));
        });
        scene.take("main.1", result("done"));
        scene.happens(Event::AgentFailed(scene.end_badly("main.2")));
        let rows = rows(&scene);
        assert_eq!(
            (&rows[0]["status"], &rows[0]["waits_for"]),
            (&json!("waiting"), &json!({ "kind": "permit" }))
        );
        assert!(rows[0].get("result").is_none() && rows[0].get("host").is_none());
        assert_eq!((&rows[1]["status"], &rows[1]["result"]), (&json!("finished"), &json!("done")));
        assert!(rows[1].get("state").is_none() && rows[1].get("error").is_none());
        assert_eq!((&rows[2]["status"], &rows[2]["cause"]), (&json!("failed"), &json!("output")));
    }

    #[test]
    fn kind_of_a_wait_is_its_name() {
        let reasons = [
            WaitReason::Permit,
            WaitReason::Backoff { until: Timestamp(0) },
            WaitReason::Approval { name: "approval-1".to_owned(), tool: "Bash".to_owned() },
        ];
        for reason in reasons {
            assert_eq!(json!(reason)["kind"], reason.name());
        }
    }

    #[test]
    fn line_of_costs_names_its_subject_under_the_kind() {
        let row = |of| json!(CostRow { line: LedgerLine::default(), share: 0.0, of });
        assert_eq!(row(Some(CostSubject::Model(None)))["model"], Value::Null);
        assert!(
            row(Some(CostSubject::Model(None)))
                .as_object()
                .is_some_and(|row| row.contains_key("model"))
        );
        assert_eq!(row(Some(CostSubject::Agent(AgentId::main())))["agent"], "main");
        assert_eq!(row(None)["input_tokens"], 0);
    }
}
