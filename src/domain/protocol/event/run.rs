//! Public events of the start of a run and the steps of agents.

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::agent::AgentOptions;
use crate::domain::branch::{BranchOrigin, BranchedAgent};
use crate::domain::evaluation::OverruledTransition;
use crate::domain::event::{PermanentRestart, ProgramDefined};
use crate::domain::fork::ForkGroup;
use crate::domain::id::{Folder, MessageId, RunId, SessionId, StateName};
use crate::domain::money::Usd;
use crate::domain::settings::Settings;
use crate::domain::transition::{Transition, Variables};
use crate::domain::turn::TurnId;
use crate::domain::turn_cost::TurnCost;

mirror_of_event! {
    /// The run began.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
    #[schemars(rename = "RunStarted")]
    pub struct PublicRunStarted of RunStarted {
        /// The run's id.
        pub workflow_id: RunId,
        /// The directory of the workflow's files.
        pub scope_dir: String,
        /// The workflow's folder below that directory, if it is another one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub folder: Option<Folder>,
        /// The state the first agent starts in.
        pub entry: StateName,
        /// The session of its first turn.
        pub session: SessionId,
        /// Values for the placeholders of that state.
        #[serde(default, skip_serializing_if = "Variables::is_empty")]
        pub variables: Variables,
        /// The program that agent runs, if its state is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub definition: Option<Box<ProgramDefined>>,
        /// The settings of that agent's whole life.
        #[serde(flatten)]
        pub options: AgentOptions,
        /// The settings of the run.
        pub settings: Settings,
    }
}

mirror_of_event! {
    /// The run branches off another.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
    #[schemars(rename = "RunBranched")]
    pub struct PublicRunBranched of RunBranched {
        /// The id of the new run.
        pub run: RunId,
        /// The place where it branches off.
        pub origin: BranchOrigin,
        /// Its agents, with their new sessions.
        pub agents: Vec<BranchedAgent>,
        /// The settings from now on.
        pub settings: Settings,
    }
}

mirror_of_event! {
    /// An agent took a transition.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
    #[schemars(rename = "StepFinished")]
    pub struct PublicStepFinished of StepFinished {
        /// The agent, its step and the last turn.
        #[serde(flatten)]
        pub turn: TurnId,
        /// The state it ran in.
        pub state: StateName,
        /// The transition.
        pub transition: Transition,
        /// The reply had no tag and the policy left only one way.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub implicit: bool,
        /// The transition that was asked for instead, and the evaluator or plug-in that overruled it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub overruled: Option<Box<OverruledTransition>>,
        /// Claude Code was not asked: a plug-in decided before, or the evaluator's budget was spent.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub without_turn: bool,
        /// The evaluator's prompt, if this was its turn; the cost is then the evaluator's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub evaluator: Option<StateName>,
        /// The cost of the turn.
        #[serde(flatten)]
        pub cost: TurnCost,
        /// The session it ran in.
        pub session_id: SessionId,
        /// The last message of the turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub message: Option<MessageId>,
        /// The texts that the reply shows to people.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub shown: Vec<String>,
        /// The id of the session this transition opens: the agent's own, or its child's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub new_session: Option<SessionId>,
        /// The settings of the child of a plain fork.
        #[serde(flatten)]
        pub options: Box<AgentOptions>,
        /// The children of any other fork.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub children: Vec<ForkGroup>,
        /// The budget of the call that the transition makes, if the called state gives one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub call_budget_usd: Option<Usd>,
        /// The restart of a permanent agent after its result, in the session that is opened.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub restarted: Option<PermanentRestart>,
    }
}
