//! Stored events of the start of a run and the steps of agents.

use serde::{Deserialize, Serialize};

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

two_way_mirror_of_event! {
    /// The run began.
    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct StoredRunStarted of RunStarted {
        /// The run's id.
        workflow_id: RunId,
        /// The directory of the workflow's files.
        scope_dir: String,
        /// The workflow's folder below that directory, if it is another one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<Folder>,
        /// The state the first agent starts in.
        entry: StateName,
        /// The session of its first turn.
        session: SessionId,
        /// Values for the placeholders of that state.
        #[serde(default, skip_serializing_if = "Variables::is_empty")]
        variables: Variables,
        /// The program that agent runs, if its state is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        definition: Option<Box<ProgramDefined>>,
        /// The settings of that agent's whole life.
        #[serde(flatten)]
        options: AgentOptions,
        /// The settings of the run.
        settings: Settings,
    }
}

two_way_mirror_of_event! {
    /// The run branches off another.
    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct StoredRunBranched of RunBranched {
        /// The id of the new run.
        run: RunId,
        /// The place where it branches off.
        origin: BranchOrigin,
        /// Its agents, with their new sessions.
        agents: Vec<BranchedAgent>,
        /// The settings from now on.
        settings: Settings,
    }
}

two_way_mirror_of_event! {
    /// An agent took a transition.
    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct StoredStepFinished of StepFinished {
        /// The agent, its step and the last turn.
        #[serde(flatten)]
        turn: TurnId,
        /// The state it ran in.
        state: StateName,
        /// The transition.
        transition: Transition,
        /// The reply had no tag and the policy left only one way.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        implicit: bool,
        /// The transition that was asked for instead, and the evaluator or plug-in that overruled it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        overruled: Option<Box<OverruledTransition>>,
        /// Claude Code was not asked: a plug-in decided before, or the evaluator's budget was spent.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        without_turn: bool,
        /// The evaluator's prompt, if this was its turn; the cost is then the evaluator's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evaluator: Option<StateName>,
        /// The cost of the turn.
        #[serde(flatten)]
        cost: TurnCost,
        /// The session it ran in.
        session_id: SessionId,
        /// The last message of the turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<MessageId>,
        /// The texts that the reply shows to people.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        shown: Vec<String>,
        /// The id of the session this transition opens: the agent's own, or its child's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        new_session: Option<SessionId>,
        /// The settings of the child of a plain fork.
        #[serde(flatten)]
        options: Box<AgentOptions>,
        /// The children of any other fork.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        children: Vec<ForkGroup>,
        /// The budget of the call that the transition makes, if the called state gives one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_budget_usd: Option<Usd>,
        /// The restart of a permanent agent after its result, in the session that is opened.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        restarted: Option<PermanentRestart>,
    }
}
