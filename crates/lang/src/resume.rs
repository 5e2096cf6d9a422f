//! The seam of the languages: one function advances an agent, whatever language its state is written in.
//!
//! [`resume`] is pure. It gets a position, the input that was waited for and the environment, and returns what
//! follows: an advance to record, an activity to perform first, the beginning of a program, a join, a turn of Claude
//! Code, or the judgement on the reply of one. A language is a reader and an interpreter behind this function. The
//! actors only load its files and choose its words for people.

pub mod due_prompt;
pub mod given_reply;
mod graph;
mod program;
mod script;
pub mod turn;
pub mod workflow_cache;

use std::rc::Rc;

use serde_json::{Map, Value};

use self::graph::{interrupted_walk, resume_graph};
use self::program::resume_program;
use self::script::resume_script;
use self::turn::{JudgedTurn, PreparedTurn, TurnPermit, TurnRules};
use self::workflow_cache::WorkflowCache;
use super::graph::checked_graph::Graph;
use super::graph::interpreter::SuspendedWalk;
use super::program::checked_program::Program;
use super::prompt::document::ExaminedDocument;
use super::prompt::script::PreparedScript;
use super::source::{self, WorkflowSource};
use crate::prompt::step::JoinResults;
use raymond_model::activity::{Activity, ActivityResult};
use raymond_model::advance::Advance;
use raymond_model::agent::Agent;
use raymond_model::approval::GrantedRule;
use raymond_model::decide::ProgramStart;
use raymond_model::fact::KnownFacts;
use raymond_model::id::{RunId, StateName};
use raymond_model::join::Join;
use raymond_model::money::Usd;
use raymond_model::operation::RecoveryClass;
use raymond_model::settings::Settings;
use raymond_model::supervision::TurnTimeouts;
use raymond_model::time::Timestamp;
use raymond_model::turn::{FailureCause, TurnFailure, TurnReply};
use raymond_model::widening::PermissionCeiling;

/// The workflow that an agent's state is written in, read and checked.
#[derive(Debug, Clone)]
pub enum LoadedWorkflow {
    /// Prompts, or the requests to a role: each step is a turn of Claude Code.
    Prompts,
    /// A graph.
    Graph(Rc<Graph>),
    /// A program, and the path of its file for messages.
    Program(Rc<Program>, String),
    /// A script.
    Script(Rc<PreparedScript>),
}

impl LoadedWorkflow {
    /// Returns whether it decides on the facts as they are now.
    pub fn reads_facts(&self) -> bool {
        match self {
            Self::Program(..) => true,
            Self::Prompts | Self::Graph(_) | Self::Script(_) => false,
        }
    }
}

/// The input that an agent was waiting for.
#[derive(Debug, Clone)]
pub enum ResumeInput {
    /// No input: the agent enters its state, or comes back to its recorded position.
    Entered,
    /// The result of the activity that was due, or the reason why there is none.
    Activity(Result<ActivityResult, String>),
    /// The reason why the activity that was due is not allowed.
    Refused(String),
    /// The activity was begun by an earlier runtime, and its outcome is unknown; the text says what to do.
    Lost(String),
    /// The turn that is due has a permit.
    Permitted(TurnPermit),
    /// The turn has a reply.
    Replied {
        /// The rules that the turn was prepared with.
        rules: Box<TurnRules>,
        /// The reply.
        reply: TurnReply,
    },
}

/// The environment of an agent that is advanced.
pub struct ResumeEnvironment<'run> {
    /// The agent, at its recorded position.
    pub agent: &'run Agent,
    /// The run.
    pub run: &'run RunId,
    /// The facts that the run knows.
    pub facts: &'run KnownFacts,
    /// The settings of the run.
    pub settings: &'run Settings,
    /// The rules that a person has given with answers.
    pub granted_rules: &'run [GrantedRule],
    /// The part of the run's budget that is left; `None` without a budget.
    pub budget_left: Option<Usd>,
    /// The permissions that no state may exceed.
    pub ceiling: &'run PermissionCeiling,
    /// The workflow's files, as the agent's state sees them.
    pub source: &'run dyn WorkflowSource,
    /// The files that have been read.
    pub workflows: &'run WorkflowCache,
    /// The built-in variables: `PWD`, `HOME`.
    pub builtins: &'run Map<String, Value>,
    /// The agent's working directory, if it is not that of the run.
    pub working_dir: Option<String>,
    /// The time limits of a turn. A script has that of a whole turn.
    pub limits: TurnTimeouts,
    /// The path of the file for the results of a join.
    pub results_file: String,
    /// The time.
    pub now: Timestamp,
}

impl ResumeEnvironment<'_> {
    /// Returns a prompt of the agent's folder, taken apart.
    fn document(&self, name: &StateName) -> Result<Rc<ExaminedDocument>, source::Error> {
        self.workflows.document(self.agent.folder().as_ref(), name, self.source)
    }

    /// Returns the results of the agents that were waited for, in the form that prompts use.
    fn join_results(&self) -> Option<JoinResults> {
        let list = self.agent.results()?.clone();
        Some(JoinResults { list, file: self.results_file.clone() })
    }
}

/// The position of an execution while an activity is performed for it.
#[derive(Debug)]
pub enum SuspendedExecution {
    /// The agent's last record: the beginning of its state, or a position.
    Entered,
    /// The agent's recorded position, which names the activity.
    Recorded,
    /// A walk over a graph that is not recorded yet.
    Walk(Box<SuspendedWalk>),
}

/// The outcome of [`resume`].
#[derive(Debug)]
pub enum ResumeOutcome {
    /// An advance, to be recorded.
    Advanced(Box<Advance>),
    /// An activity comes first. Its result is the input of the next call, at this position.
    Needs {
        /// The activity.
        activity: Activity,
        /// The position.
        suspended: SuspendedExecution,
    },
    /// The execution begins; the next call comes after the record of that.
    Begins(Box<ProgramStart>),
    /// A turn of Claude Code is due; it is prepared once it has a permit.
    AwaitsPermit,
    /// The state first waits for agents that were forked.
    JoinDue(Box<Join>),
    /// A turn of Claude Code, with its permit.
    Turn(Box<PreparedTurn>),
    /// The judgement on a reply that decides the agent's transition.
    Judged(Box<JudgedTurn>),
    /// The step failed.
    Failed(TurnFailure),
}

/// Advances an agent as far as possible without the outside world.
pub fn resume(
    workflow: &LoadedWorkflow,
    suspended: SuspendedExecution,
    input: ResumeInput,
    environment: &ResumeEnvironment<'_>,
) -> ResumeOutcome {
    match workflow {
        LoadedWorkflow::Prompts => match (&environment.agent.given_reply, input) {
            (Some(text), ResumeInput::Entered) => given_reply::judge(text, environment),
            (_, input) => resume_prompt(input, environment),
        },
        LoadedWorkflow::Graph(graph) => resume_graph(graph, suspended, input, environment),
        LoadedWorkflow::Program(program, path) => resume_program(program, path, input, environment),
        LoadedWorkflow::Script(script) => resume_script(script, input, environment),
    }
}

/// The consequence of an activity that was ended because the run was stopped.
#[derive(Debug)]
pub enum InterruptedActivity {
    /// The advance up to it is recorded.
    Advanced(Box<Advance>),
    /// It is due again, as the recorded position says.
    StillDue,
    /// The step failed.
    Failed(TurnFailure),
}

/// Returns the consequence of an activity that was ended because the run was stopped.
pub fn interrupted(
    workflow: &LoadedWorkflow,
    suspended: SuspendedExecution,
    activity: &Activity,
) -> InterruptedActivity {
    let message = format!("{} was ended because the run was stopped", activity.name());
    let cause = match activity.class() {
        RecoveryClass::Uncertain => FailureCause::Uncertain,
        RecoveryClass::Read | RecoveryClass::Converges | RecoveryClass::Guarded => {
            FailureCause::Interrupted
        }
    };
    let failure = || InterruptedActivity::Failed(TurnFailure::new(cause, message));
    match (workflow, suspended) {
        (_, SuspendedExecution::Recorded) => InterruptedActivity::StillDue,
        (LoadedWorkflow::Graph(graph), SuspendedExecution::Walk(walk))
            if cause == FailureCause::Interrupted =>
        {
            let kept = interrupted_walk(graph, *walk);
            kept.map_or_else(failure, |advance| InterruptedActivity::Advanced(Box::new(advance)))
        }
        (_, SuspendedExecution::Entered | SuspendedExecution::Walk(_)) => failure(),
    }
}

/// Resumes a state of prompts. It has no activities.
fn resume_prompt(input: ResumeInput, environment: &ResumeEnvironment<'_>) -> ResumeOutcome {
    match input {
        ResumeInput::Entered => turn::enter(environment),
        ResumeInput::Permitted(permit) => turn::prepare(permit, environment),
        ResumeInput::Replied { rules, reply } => turn::judge(*rules, &reply, environment),
        ResumeInput::Activity(_) | ResumeInput::Refused(_) | ResumeInput::Lost(_) => {
            ResumeOutcome::Failed(lost("a prompt performs no activity"))
        }
    }
}

/// Returns the failure of an agent whose activity has an unknown outcome.
fn lost(why: &str) -> TurnFailure {
    TurnFailure::new(FailureCause::Uncertain, why)
}

#[cfg(test)]
mod tests;
