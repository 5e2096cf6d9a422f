//! The settings of a run, stored with it, so that it resumes with the same settings.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::allowed_address::AllowedAddress;
use super::fork::ForkSettings;
use super::git_exchange::GitExchange;
use super::model::ModelName;
use super::money::Usd;
use super::permission::{RunPermission, StarterConsent};
use super::plugin::PlugIn;
use super::run_origin::RunOrigin;
use super::supervision::SupervisionPolicy;
use super::transition::Variables;
use super::turn_options::{OnDenied, TurnOptions};
use super::turn_order::{PATIENCE_MS, TurnOrder};

/// The answerer of the prompts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AnswererKind {
    /// Claude Code.
    #[default]
    Claude,
    /// The replies in the scope's `replies.yaml`; no model is called.
    Scripted,
    /// The turns of a cassette; no model is called.
    Replay,
}

impl AnswererKind {
    /// Returns whether its turns cost money.
    pub fn costs_money(self) -> bool {
        match self {
            Self::Claude => true,
            Self::Scripted | Self::Replay => false,
        }
    }

    /// Returns the answerer's name for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Scripted => "the script replies.yaml",
            Self::Replay => "a cassette",
        }
    }

    /// Returns a sentence about the costs of a run without a model.
    pub fn note_on_costs(self) -> Option<&'static str> {
        match self {
            Self::Claude => None,
            Self::Scripted => {
                Some("answered by a script: no model was called, the costs are simulated")
            }
            Self::Replay => {
                Some("answered by a cassette: no model was called, the costs are the recorded ones")
            }
        }
    }

    /// Returns whether it calls a model, and so costs money and needs permissions.
    pub fn calls_model(self) -> bool {
        match self {
            Self::Claude => true,
            Self::Scripted | Self::Replay => false,
        }
    }
}

/// The cassette that answers the prompts of a run. The run has a copy of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CassetteSource {
    /// The directory it was copied from.
    pub path: String,
    /// The checksum of the copy.
    #[serde(default)]
    pub checksum: String,
    /// True if a difference from the recording fails the agent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// The last record of the recorded run that it answers for; later turns have the answerer of the run. `None` if it
    /// answers all turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

/// The number of turns that may run at the same time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MaxProcs {
    /// As many as the machine's cores and free memory carry.
    #[default]
    Auto,
    /// A fixed number.
    #[serde(untagged)]
    Count(usize),
}

/// The reaction to the account's usage limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnLimit {
    /// The whole run waits until the limit resets, and resumes by itself.
    #[default]
    Wait,
    /// The run pauses, and can be resumed later.
    Pause,
    /// The agent that met the limit fails.
    Fail,
}

/// The reaction to a budget that is used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnBudget {
    /// The run pauses, and can be resumed with a larger budget.
    #[default]
    Pause,
    /// Each agent ends with an error when its next turn is due.
    End,
}

/// The settings of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate switch")]
pub struct Settings {
    /// The answerer of the prompts.
    pub answerer: AnswererKind,
    /// The cassette, if one answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cassette: Option<CassetteSource>,
    /// The model of states that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// The directory that all hosts of the run have under the same path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_dir: Option<String>,
    /// The repository by which its hosts exchange the work of its agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_exchange: Option<GitExchange>,
    /// The budget of the run, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<Usd>,
    /// The reaction when the budget is used up.
    #[serde(default)]
    pub on_budget: OnBudget,
    /// The number of turns that may run, and of Claude Code processes that may live, at the same time.
    #[serde(default)]
    pub max_procs: MaxProcs,
    /// The order in which waiting agents get permits.
    #[serde(default, skip_serializing_if = "TurnOrder::is_usual")]
    pub order: TurnOrder,
    /// The time in milliseconds after which an agent that is next of its line is overdue.
    #[serde(default = "usual_patience", skip_serializing_if = "is_usual_patience")]
    pub patience_ms: u64,
    /// True if a process serves further turns of its session.
    #[serde(default = "default_true")]
    pub warm: bool,
    /// The time an idle process is kept, in milliseconds.
    #[serde(default = "five_minutes")]
    pub warm_for_ms: u64,
    /// The number of processes that are started ahead of fresh turns.
    #[serde(default)]
    pub prestart: usize,
    /// The reaction to the account's usage limit.
    #[serde(default)]
    pub on_limit: OnLimit,
    /// The consequence of a refused tool, where the state does not say.
    #[serde(default, skip_serializing_if = "OnDenied::is_usual")]
    pub on_denied: OnDenied,
    /// The time for which a process waits for the approval of a tool call, in milliseconds.
    #[serde(default = "two_minutes", skip_serializing_if = "is_two_minutes")]
    pub approval_hold_ms: u64,
    /// True if the run counts as failed when any tool was refused in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// The working directory of Claude Code; its sessions belong to it.
    pub cwd: String,
    /// The Claude Code program.
    pub claude: String,
    /// The permission of Claude Code.
    pub permission: RunPermission,
    /// The permissions of its states beyond that.
    #[serde(default, skip_serializing_if = "StarterConsent::is_empty")]
    pub consent: StarterConsent,
    /// The addresses that its graphs may fetch from besides the public internet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_addresses: Vec<AllowedAddress>,
    /// The default options of states for Claude Code.
    #[serde(default, skip_serializing_if = "TurnOptions::is_empty")]
    pub options: TurnOptions,
    /// True if prompts are read afresh at each turn, while someone writes the workflow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub live: bool,
    /// Further arguments for Claude Code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claude_args: Vec<String>,
    /// Values for the placeholders of every state.
    #[serde(default, skip_serializing_if = "Variables::is_empty")]
    pub variables: Variables,
    /// The run's name for people: `@label` of its programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The branch its work is compared with: `@branch` of its programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The values that its programs are given: `@context/x`.
    #[serde(default, skip_serializing_if = "Variables::is_empty")]
    pub context: Variables,
    /// The step of another run that has started this one; `None` if a person has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<RunOrigin>,
    /// Answers given ahead of time, by the name they are asked under, in their order.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<String, Vec<String>>,
    /// The plug-ins, which watch the run and may decide on its steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<PlugIn>,
    /// True if a debug directory is kept.
    #[serde(default)]
    pub debug: bool,
    /// The settings of forks.
    #[serde(default)]
    pub forking: ForkSettings,
    /// The restarts and time limits of turns.
    pub supervision: SupervisionPolicy,
}

impl Settings {
    /// Returns the cassette that answers the first part of the run, and the last recorded record of that part.
    pub fn replayed_part(&self) -> Option<(&CassetteSource, u64)> {
        let source = self.cassette.as_ref()?;
        Some((source, source.until?))
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            answerer: AnswererKind::Claude,
            cassette: None,
            shared_dir: None,
            git_exchange: None,
            model: None,
            budget_usd: None,
            on_budget: OnBudget::Pause,
            max_procs: MaxProcs::Auto,
            order: TurnOrder::Depth,
            patience_ms: usual_patience(),
            warm: true,
            warm_for_ms: five_minutes(),
            prestart: 0,
            on_limit: OnLimit::Wait,
            on_denied: OnDenied::Continue,
            approval_hold_ms: two_minutes(),
            strict: false,
            cwd: ".".to_owned(),
            claude: "claude".to_owned(),
            permission: RunPermission::default(),
            consent: StarterConsent::default(),
            allowed_addresses: Vec::new(),
            options: TurnOptions::default(),
            live: false,
            claude_args: Vec::new(),
            variables: Variables::new(),
            label: None,
            branch: None,
            context: Variables::new(),
            started_by: None,
            answers: BTreeMap::new(),
            plugins: Vec::new(),
            debug: false,
            forking: ForkSettings::default(),
            supervision: SupervisionPolicy::default(),
        }
    }
}

fn default_true() -> bool {
    true
}

fn two_minutes() -> u64 {
    2 * 60 * 1000
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_two_minutes(time: &u64) -> bool {
    *time == two_minutes()
}

fn usual_patience() -> u64 {
    PATIENCE_MS
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_usual_patience(patience_ms: &u64) -> bool {
    *patience_ms == PATIENCE_MS
}

fn five_minutes() -> u64 {
    5 * 60 * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_procs_round_trips_as_number_or_auto() {
        let read = |json: &str| serde_json::from_str::<MaxProcs>(json).ok();
        assert_eq!(read("\"auto\""), Some(MaxProcs::Auto));
        assert_eq!(read("8"), Some(MaxProcs::Count(8)));
        let written = |procs| serde_json::to_string(&procs).expect("written");
        assert_eq!([written(MaxProcs::Auto), written(MaxProcs::Count(8))], ["\"auto\"", "8"]);
    }
}
