//! The settings that are stored with a run, its plug-ins, its forks, and the switch of a warm process to other options.
//!
//! A run resumes with the settings that are stored with it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::turn_options::{EffortLevel, PermissionMode};
use crate::admission::{PATIENCE_MS, TurnOrder};
use crate::agent::AgentOptions;
use crate::allowed_address::AllowedAddress;
use crate::branch::RunOrigin;
use crate::git_exchange::GitExchange;
use crate::id::{Folder, ScopePath, SessionId, StateName, TagTarget};
use crate::model::ModelName;
use crate::money::Usd;
use crate::privilege::{RunPermission, StarterConsent};
use crate::supervision::{SupervisionOverrides, SupervisionPolicy};
use crate::time::Timestamp;
use crate::transition::Variables;
use crate::turn_options::{OnDenied, TurnOptions};

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
        self == Self::Claude
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

// Plug-ins that are programs: the command, the name, and how the run depends on each.

/// The default time limit of a plug-in's answer, in milliseconds.
pub const DEFAULT_DEADLINE_MS: u64 = 2000;

/// The longest name of a plug-in, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// A program that watches a run and may decide on its steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlugIn {
    /// The plug-in's name, unique in a run.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// True if the workflow asked for it, and not the person who runs the workflow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_workflow: bool,
    /// True if the run pauses when the plug-in has failed or does not answer in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// The time limit of its answer, in milliseconds.
    pub deadline_ms: u64,
    /// The points in which its restarts differ from the default of agents.
    #[serde(default, skip_serializing_if = "SupervisionOverrides::is_empty")]
    pub supervision: SupervisionOverrides,
}

impl PlugIn {
    /// Creates a plug-in that the run can do without, with the usual options.
    pub fn new(command: Vec<String>) -> Self {
        Self {
            name: name_of(&command),
            command,
            by_workflow: false,
            required: false,
            deadline_ms: DEFAULT_DEADLINE_MS,
            supervision: SupervisionOverrides::default(),
        }
    }

    /// Returns the policy by which it is restarted.
    pub fn supervision(&self) -> SupervisionPolicy {
        SupervisionPolicy::default().with(&self.supervision)
    }
}

/// Returns whether a text can be the name of a plug-in. The name appears in messages, in records and in the
/// program's environment.
pub fn is_name(text: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// Numbers each plug-in that has the same name as one before it.
pub fn tell_apart(plugins: &mut [PlugIn]) {
    for at in 1..plugins.len() {
        let (before, rest) = plugins.split_at_mut(at);
        let taken = |name: &str| before.iter().any(|other| other.name == name);
        let name = &mut rest[0].name;
        if taken(name) {
            let numbered = (2..).map(|number| format!("{name}-{number}"));
            *name = { numbered }.find(|name| !taken(name)).unwrap_or_default();
        }
    }
}

/// Returns the default name of a command: `budget` for `python3 -u plugins/budget.py 0.50`. It is the first
/// word that names a file by a path or an ending, else the program.
fn name_of(command: &[String]) -> String {
    let is_file = |word: &&String| {
        let ending = word.rsplit_once('.').map_or("", |(_, ending)| ending);
        let has_ending =
            !ending.is_empty() && ending.starts_with(|first: char| first.is_ascii_alphabetic());
        !word.starts_with('-') && (word.contains('/') || has_ending)
    };
    let script = command.iter().skip(1).find(|word| is_file(word));
    let program = command.first().filter(|program| is_file(program) && !is_interpreter(program));
    let word = program.or(script).or(command.first()).map_or("", String::as_str);
    let file = word.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let stem = file.split_once('.').map_or(file, |(stem, _)| stem);
    let plain = stem.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    let name: String = plain.take(MAX_NAME_BYTES / 4).collect();
    if name.is_empty() { "plug-in".to_owned() } else { name }
}

/// Returns whether a program runs scripts; then the script gives the name.
fn is_interpreter(program: &str) -> bool {
    const KNOWN: [&str; 10] =
        ["bash", "bun", "deno", "env", "node", "perl", "python", "ruby", "sh", "uv"];
    let file = program.rsplit('/').next().unwrap_or_default();
    KNOWN.contains(&file.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'))
}

// Agents that one step forks: their maximum number, their start times and their initial settings.
//
// All agents of a step are forked by one record, or none is. Agents of one tag share the beginning of their prompts.
// The first of them starts ahead of the others by the stagger, so that the others find that beginning in the model's
// prompt cache.

/// The limits on forks in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ForkSettings {
    /// The maximum number of agents that one reply may fork, unless the state sets its own.
    pub max_fan_out: u32,
    /// The maximum number of agents alive at the same time.
    pub max_agents: u32,
    /// The head start, in milliseconds, of the first of several agents that one reply forks, unless the
    /// state sets its own.
    pub stagger_ms: u64,
}

impl Default for ForkSettings {
    fn default() -> Self {
        Self { max_fan_out: 1_000, max_agents: 10_000, stagger_ms: 3_000 }
    }
}

/// A state's own limits on the agents that are forked in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ForkRules {
    /// The maximum number of agents that one reply may fork.
    pub max_fan_out: Option<u32>,
    /// The head start of the first of them, in milliseconds.
    pub stagger_ms: Option<u64>,
}

/// Agents that are forked together into one state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkGroup {
    /// The first state of these agents.
    pub state: StateName,
    /// The other folder that has the state, if it is in another one than the agent that forks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ScopePath>,
    /// The options of these agents.
    #[serde(flatten)]
    pub options: AgentOptions,
    /// The commit their worktrees begin at, if they get worktrees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The time before which only the first of them may start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    pub agents: Vec<ChildSpec>,
}

impl ForkGroup {
    /// Returns the first state of these agents, as a tag names it.
    pub fn target(&self) -> TagTarget {
        TagTarget { scope: self.scope.clone(), state: self.state.clone() }
    }
}

/// One agent of a [`ForkGroup`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChildSpec {
    /// The session of its first turn.
    pub session: SessionId,
    /// The directory its turns run in, below that of its parent; `None` for the parent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Folder>,
    /// The values of its first state's placeholders.
    #[serde(default, skip_serializing_if = "Variables::is_empty")]
    pub variables: Variables,
}

/// Returns the number of agents that a step with these groups forks. Without groups, it is the one agent of a plain
/// fork. A fork over an empty list has a group without agents.
pub fn forked_count(groups: &[ForkGroup]) -> usize {
    if groups.is_empty() { 1 } else { agent_count(groups) }
}

/// Returns the number of agents in all groups together.
pub fn agent_count(groups: &[ForkGroup]) -> usize {
    groups.iter().map(|group| group.agents.len()).sum()
}

// Switches the options of a warm process for the next turn, or decides that a new process is needed.
//
// A process is started with flags. The model, the permission mode and the effort can be switched by a control request
// while it runs. Background work and refused tools are handled outside of the process. All other options are fixed
// when it starts, so a turn with other ones gets a new process, which resumes the session.

/// The options that a process was started with or last switched to, or that a turn needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessOptions {
    /// The model; `None` leaves the choice to Claude Code.
    pub model: Option<ModelName>,
    /// The options of its turns.
    pub turn: TurnOptions,
}

/// A change of a running process, by a control request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessSwitch {
    /// Another model.
    Model(ModelName),
    /// Another permission mode.
    Permission(String),
    /// Another effort.
    Effort(EffortLevel),
}

/// The switch of a warm process to the options of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionSwitch {
    /// The process serves the turn after these changes.
    Switch(Vec<ProcessSwitch>),
    /// It cannot serve the turn: a new process has to resume the session.
    Restart,
}

/// Returns how a process that `has` some options can serve a turn that `needs` others, under the permissions of the
/// run. If it `is_untouched`, its conversation has not begun, and no switch may leave traces in it.
pub fn switch_options(
    has: &ProcessOptions,
    needs: &ProcessOptions,
    run: &RunPermission,
    is_untouched: bool,
) -> OptionSwitch {
    if fixed(&has.turn) != fixed(&needs.turn) {
        return OptionSwitch::Restart;
    }
    let mut switches = Vec::new();
    match (&has.model, &needs.model) {
        (had, Some(model)) if had.as_ref() != Some(model) => {
            switches.push(ProcessSwitch::Model(model.clone()));
        }
        _ => {}
    }
    if has.turn.permission_mode != needs.turn.permission_mode {
        let wanted = mode_name(needs.turn.permission_mode, run);
        let Some(wanted) = wanted.filter(|mode| may_be_switched_to(mode)) else {
            return OptionSwitch::Restart;
        };
        if mode_name(has.turn.permission_mode, run) != Some(wanted) {
            switches.push(ProcessSwitch::Permission(wanted.to_owned()));
        }
    }
    match (has.turn.effort, needs.turn.effort) {
        (had, wanted) if had == wanted => {}
        (_, Some(effort)) => switches.push(ProcessSwitch::Effort(effort)),
        (_, None) => return OptionSwitch::Restart,
    }
    if is_untouched && !switches.is_empty() {
        return OptionSwitch::Restart;
    }
    OptionSwitch::Switch(switches)
}

/// Returns the name of the mode that a process is in; `None` is everything without asking.
fn mode_name(mode: Option<PermissionMode>, run: &RunPermission) -> Option<&str> {
    match (mode, run) {
        (Some(mode), _) => Some(mode.name()),
        (None, RunPermission::Mode(name)) => Some(name),
        (None, RunPermission::SkipAll) => None,
    }
}

/// Returns whether a process can be switched to a mode, regardless of the mode it was started with.
fn may_be_switched_to(mode: &str) -> bool {
    PermissionMode::from_name(mode).is_some_and(|mode| mode != PermissionMode::BypassPermissions)
}

/// Returns the options that are fixed when a process starts.
fn fixed(options: &TurnOptions) -> TurnOptions {
    TurnOptions {
        permission_mode: None,
        effort: None,
        background: None,
        on_denied: None,
        on_lost_session: None,
        run_command: None,
        ..options.clone()
    }
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

#[cfg(test)]
mod plugin_tests {
    use super::*;

    fn named(command: &str) -> String {
        PlugIn::new(command.split(' ').map(str::to_owned).collect()).name
    }

    #[test]
    fn plugin_is_named_after_script_or_program() {
        let table = [
            ("python3 budget.py 2", "budget"),
            ("python3.11 -u plugins/budget.py 0.50", "budget"),
            ("/usr/bin/python3 ./log.tar.py", "log"),
            ("./log.sh steps.log", "log"),
            ("my-plugin --limit 0.50", "my-plugin"),
            ("watch", "watch"),
            ("/", "plug-in"),
        ];
        for (command, name) in table {
            assert_eq!(named(command), name, "{command}");
        }
    }

    #[test]
    fn duplicate_plugin_names_get_number_suffix() {
        let mut plugins = ["a.py", "b.py", "./a.py", "x/a.py"]
            .map(|command| PlugIn::new(vec!["python3".into(), command.into()]));
        tell_apart(&mut plugins);
        assert_eq!(plugins.map(|plugin| plugin.name), ["a", "b", "a-2", "a-3"]);
    }

    #[test]
    fn unset_plugin_options_are_omitted_from_json() {
        let plugin = PlugIn::new(vec!["x".into()]);
        let json = serde_json::to_string(&plugin).expect("written");
        assert_eq!(json, r#"{"name":"x","command":["x"],"deadline_ms":2000}"#);
        assert_eq!(serde_json::from_str::<PlugIn>(&json).expect("it reads back"), plugin);
    }
}

#[cfg(test)]
mod option_switch_tests {
    use serde_json::json;

    use super::*;

    fn options(model: Option<&str>, turn: serde_json::Value) -> ProcessOptions {
        let model = model.map(|name| ModelName::parse(name).expect("a name"));
        ProcessOptions { model, turn: serde_json::from_value(turn).expect("options") }
    }

    fn between(
        has: (Option<&str>, serde_json::Value),
        needs: (Option<&str>, serde_json::Value),
    ) -> OptionSwitch {
        let run = RunPermission::default();
        switch_options(&options(has.0, has.1), &options(needs.0, needs.1), &run, false)
    }

    fn model(name: &str) -> ProcessSwitch {
        ProcessSwitch::Model(ModelName::parse(name).expect("a name"))
    }

    #[test]
    fn same_options_need_no_switch() {
        let same = || (Some("opus"), json!({ "effort": "low", "tools": ["Read"] }));
        assert_eq!(between(same(), same()), OptionSwitch::Switch(Vec::new()));
        let none = between((Some("opus"), json!({})), (None, json!({ "background": "end" })));
        assert_eq!(none, OptionSwitch::Switch(Vec::new()), "no model is any model");
    }

    #[test]
    fn model_permission_mode_and_effort_switch_without_restart() {
        let found = between(
            (None, json!({})),
            (Some("haiku"), json!({ "effort": "max", "permission_mode": "plan" })),
        );
        let permission = ProcessSwitch::Permission("plan".to_owned());
        let effort = ProcessSwitch::Effort(EffortLevel::Max);
        assert_eq!(found, OptionSwitch::Switch(vec![model("haiku"), permission, effort]));
        let back = between((None, json!({ "permission_mode": "plan" })), (None, json!({})));
        let permission = ProcessSwitch::Permission("acceptEdits".to_owned());
        assert_eq!(back, OptionSwitch::Switch(vec![permission]));
        let same = between((None, json!({ "permission_mode": "acceptEdits" })), (None, json!({})));
        assert_eq!(same, OptionSwitch::Switch(Vec::new()), "the run's own mode by name");
    }

    #[test]
    fn changed_startup_option_requires_restart() {
        let fixed = [
            json!({ "tools": [] }),
            json!({ "allowed_tools": ["Bash"] }),
            json!({ "disallowed_tools": ["Bash"] }),
            json!({ "append_system_prompt": "x" }),
            json!({ "system_prompt_file": "x" }),
            json!({ "mcp_config": [{}] }),
            json!({ "strict_mcp": true }),
            json!({ "settings": {} }),
            json!({ "setting_sources": [] }),
            json!({ "agents": {} }),
            json!({ "add_dirs": ["x"] }),
            json!({ "plugin_dirs": ["x"] }),
            json!({ "max_turns": 1 }),
            json!({ "max_thinking_tokens": 1 }),
            json!({ "env": { "A": "pass" } }),
            json!({ "fallback_model": ["x"] }),
            json!({ "startup": "lean" }),
        ];
        for option in fixed {
            let forth = between((None, json!({})), (None, option.clone()));
            let back = between((None, option.clone()), (None, json!({})));
            assert_eq!((forth, back), (OptionSwitch::Restart, OptionSwitch::Restart), "{option}");
        }
        let effort = between((None, json!({ "effort": "low" })), (None, json!({})));
        assert_eq!(effort, OptionSwitch::Restart, "the model's own effort has no name");
        let bypass = (None, json!({ "permission_mode": "bypassPermissions" }));
        assert_eq!(between((None, json!({})), bypass), OptionSwitch::Restart);
    }

    #[test]
    fn prestarted_process_with_other_options_is_restarted() {
        let (has, needs) = (options(Some("opus"), json!({})), options(Some("haiku"), json!({})));
        let run = RunPermission::default();
        assert_eq!(switch_options(&has, &needs, &run, true), OptionSwitch::Restart);
        assert_eq!(switch_options(&has, &has, &run, true), OptionSwitch::Switch(Vec::new()));
        let skips = switch_options(
            &options(None, json!({ "permission_mode": "plan" })),
            &options(None, json!({})),
            &RunPermission::SkipAll,
            false,
        );
        assert_eq!(skips, OptionSwitch::Restart, "everything without asking is set at the start");
    }
}
