//! `raymond.yaml`, the manifest of a workflow: its values, and the inputs and outputs that a folder declares.
//!
//! It is for people who run the workflow, and lies beside the prompts. The file and each of its keys are optional. It
//! supplies values that the command line leaves out. A workflow cannot widen the permissions of its agents: that needs
//! the command line. The programs it asks for as plug-ins are named before they are started, and can be refused.

use raymond_model::host::HostLabel;
use raymond_model::id::StateName;
use raymond_model::model::ModelName;
use raymond_model::money::Usd;
use raymond_model::settings::{MaxProcs, OnBudget, OnLimit, PlugIn};
use raymond_model::supervision::SupervisionOverrides;
use raymond_model::time::millis;
use raymond_model::turn_options::TurnOptions;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::source::WorkflowSource;
use crate::keys::unknown_keys;
use crate::prompt::forking;
use crate::schema::shape;
use crate::source::SourcePlace;
use crate::turn_options::{OptionPlaces, WrittenOptions, model};
use crate::yaml::tree::YamlFileKind;
use crate::yaml::{Error, PlacedValue, YamlContent, YamlEntry, YamlErrors};
use crate::{plugins, yaml};

/// The name of the file.
pub const FILE: &str = "raymond.yaml";

/// The prompt a folder begins with, if its manifest names none.
pub const FIRST_STATE: &str = "START.md";

/// The graph a folder begins with that has no such prompt.
pub const GRAPH: &str = "workflow.yaml";

/// The program a folder begins with, if it has neither.
pub const PROGRAM: &str = "workflow.lisp";

/// The permission modes that a workflow may name. No other mode is allowed, because the rest lets agents do more than
/// edit unasked.
const MODES: [&str; 4] = ["default", "acceptEdits", "plan", "dontAsk"];

/// The arguments that a workflow may pass on. None of them widens permissions or runs a program.
const ARGUMENTS: [&str; 8] = [
    "--append-system-prompt",
    "--disallowed-tools",
    "--disallowedTools",
    "--effort",
    "--fallback-model",
    "--max-budget-usd",
    "--max-turns",
    "--model",
];

/// The manifest of a workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The name of the workflow.
    pub name: Option<String>,
    /// The purpose of the workflow.
    pub description: Option<String>,
    /// The file it begins with.
    pub entry: Option<String>,
    /// The model of states that name none.
    pub model: Option<ModelName>,
    /// The spending limit of a run.
    pub budget: Option<Usd>,
    /// The reaction to a used-up budget.
    pub on_budget: Option<OnBudget>,
    /// The maximum number of turns that run at the same time.
    pub max_procs: Option<MaxProcs>,
    /// The maximum number of agents that one reply may fork.
    pub max_fan_out: Option<u32>,
    /// The head start of the first forked agent, in milliseconds.
    pub stagger_ms: Option<u64>,
    /// The reaction to the account's usage limit.
    pub on_limit: Option<OnLimit>,
    /// The supervision of its agents.
    pub supervision: SupervisionOverrides,
    /// The actions that Claude Code may take without asking.
    pub permission_mode: Option<String>,
    /// The default options of Claude Code's turns, for states that set none themselves.
    pub options: TurnOptions,
    /// Further arguments for Claude Code.
    pub claude_args: Vec<String>,
    /// The programs that are started as plug-ins.
    pub plugins: Vec<PlugIn>,
    /// The values that tags of other folders enter it with.
    pub inputs: Vec<FolderInput>,
    /// The values that its result gives to other folders.
    pub outputs: Vec<FolderOutput>,
    /// True if workflows in the folders below may enter each other.
    pub is_root: bool,
}

/// The keys that only the frontmatter of a state has.
pub(crate) const STATE_KEYS: [&str; 12] = [
    "allowed_transitions",
    "evaluator",
    "force_implicit",
    "forks",
    "host",
    "join",
    "on_failure",
    "on_timeout",
    "rest",
    "snapshots",
    "timeout",
    "worktree",
];

listed_keys! {
    /// The keys as they are written.
    pub(crate) struct RawManifest {
        /// The name of the workflow.
        name: Option<String> => shape::text,
        /// The purpose of the workflow.
        description: Option<String> => shape::text,
        /// The file it begins with.
        entry: Option<PlacedValue<String>> => shape::text,
        /// The model of states that name none: opus, sonnet, haiku, or a full name.
        model: Option<PlacedValue<String>> => shape::model,
        /// The spending limit of a run, in US dollars.
        budget: Option<PlacedValue<String>> => shape::positive_dollars,
        /// The reaction to a used-up budget.
        on_budget: Option<PlacedValue<String>> => || shape::one_of(ON_BUDGET.map(|(name, _)| name)),
        /// The maximum number of turns that run at the same time, or auto.
        max_procs: Option<PlacedValue<String>> => shape::max_procs,
        /// The maximum number of agents that one reply may fork.
        max_fan_out: Option<PlacedValue<String>> => shape::count,
        /// The head start of the first forked agent.
        stagger: Option<PlacedValue<String>> => shape::duration,
        /// The reaction to the account's usage limit.
        on_limit: Option<PlacedValue<String>> => || shape::one_of(ON_LIMIT.map(|(name, _)| name)),
        /// The form of an answer, which belongs into the frontmatter of a state and is refused here.
        output: Option<PlacedValue<IgnoredAny>> => shape::refused,
        /// The supervision of the workflow's agents.
        supervision: Option<plugins::RawSupervision> => plugins::RawSupervision::shape,
        /// The actions that Claude Code may take without asking.
        permission_mode: Option<PlacedValue<String>> => || shape::one_of(MODES),
        /// Further arguments for Claude Code.
        claude_args: Option<Vec<PlacedValue<String>>> => || shape::list(shape::text()),
        /// The programs that are started as plug-ins.
        plugins: Option<Vec<PlacedValue<plugins::RawPlugIn>>> => plugins::list_shape,
        /// The values that a tag of another folder has to enter this one with.
        inputs: Option<Vec<PlacedValue<RawFolderInput>>> => inputs_shape,
        /// The names of the values that the result gives to the caller in another folder.
        outputs: Option<Vec<PlacedValue<String>>> => outputs_shape,
        /// True if the workflows in the folders below may enter each other.
        root: Option<bool> => shape::boolean,
    }
}

/// A manifest as far as it can be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExaminedManifest {
    /// The values.
    pub manifest: Manifest,
    /// The place that names the entry file.
    pub entry: Option<SourcePlace>,
    /// The place that names the model.
    pub model: Option<SourcePlace>,
    /// The places of the turn options.
    pub options: OptionPlaces,
    /// The mistakes in the manifest.
    pub errors: YamlErrors,
}

/// Reads a manifest.
///
/// # Errors
/// [`Error`] with line and column.
pub fn parse(text: &str) -> Result<Manifest, Error> {
    let ExaminedManifest { manifest, errors, .. } = examine(text);
    errors.or_else_first(manifest)
}

/// Reads a manifest to its end, even if it has mistakes.
pub fn examine(text: &str) -> ExaminedManifest {
    let mut errors = YamlErrors::default();
    let root = yaml::parse(YamlFileKind::MANIFEST, text, &mut errors);
    let root = root.filter(|root| !root.is_null());
    let raw = root.as_ref().and_then(|root| yaml::examine_tree::<RawManifest>(root, &mut errors));
    let (Some(root), Some(raw)) = (root, raw) else {
        return ExaminedManifest { errors, ..ExaminedManifest::default() };
    };
    errors.add(unknown_keys(&root, RawManifest::KEYS, |name| {
        STATE_KEYS.contains(&name).then_some("the frontmatter of a state")
    }));
    if let Some(output) = raw.output {
        let message = "an `output` is the form of one state's answer, which decides what follows there; put it into the frontmatter of that state";
        errors.wrong(output.at, message);
    }
    let arguments = raw.claude_args.unwrap_or_default();
    let mut before = None;
    for argument in &arguments {
        errors.keep(harmless(argument, before.replace(argument.value.starts_with("--"))));
    }
    let place = raw.entry.as_ref().map(|entry| entry.at);
    let place_of_model = raw.model.as_ref().map(|model| model.at);
    let supervision = raw.supervision.map(plugins::RawSupervision::read).transpose();
    let mode = raw.permission_mode;
    let mut written = WrittenOptions::of(&root);
    // The mode of a run has its own key, whose mistakes are reported below.
    written.options.permission_mode = None;
    written.faults.retain(|fault| Some(fault.at) != mode.as_ref().map(|mode| mode.at));
    errors.add(written.faults);
    let manifest = Manifest {
        name: raw.name,
        description: raw.description,
        entry: errors.value(raw.entry, entry),
        model: errors.value(raw.model, model),
        budget: errors.value(raw.budget, budget),
        on_budget: errors.value(raw.on_budget, |name| plugins::by_name(name, &ON_BUDGET)),
        max_procs: errors.value(raw.max_procs, max_procs),
        max_fan_out: errors.value(raw.max_fan_out, forking::count),
        stagger_ms: errors.value(raw.stagger, millis),
        on_limit: errors.value(raw.on_limit, |name| plugins::by_name(name, &ON_LIMIT)),
        supervision: errors.keep(supervision).flatten().unwrap_or_default(),
        options: written.options,
        permission_mode: errors.value(mode, permission_mode),
        plugins: errors.keep(plugins::read(raw.plugins.unwrap_or_default())).unwrap_or_default(),
        inputs: errors.keep(inputs(raw.inputs.unwrap_or_default())).unwrap_or_default(),
        outputs: errors.keep(outputs(raw.outputs.unwrap_or_default())).unwrap_or_default(),
        is_root: raw.root.unwrap_or_default(),
        claude_args: arguments.into_iter().map(|argument| argument.value).collect(),
    };
    ExaminedManifest {
        manifest,
        entry: place,
        model: place_of_model,
        options: written.places,
        errors,
    }
}

/// Reads a mode that lets the agents do no more than edit without asking.
fn permission_mode(mode: &str) -> Result<String, String> {
    if MODES.contains(&mode) {
        return Ok(mode.to_owned());
    }
    let modes = MODES.join(", ");
    Err(format!(
        "a workflow may name one of {modes}; `{mode}` has to be asked for on the command line"
    ))
}

/// Checks that a workflow may pass on an argument. An argument that is not an option is the value of the option before
/// it. Without an option before it, Claude Code would take it for a prompt.
fn harmless(argument: &PlacedValue<String>, after_option: Option<bool>) -> Result<(), Error> {
    let name = argument.value.split('=').next().unwrap_or_default();
    let is_value = !name.starts_with('-') && after_option == Some(true);
    if is_value || ARGUMENTS.contains(&name) {
        return Ok(());
    }
    let message = format!(
        "a workflow may pass on {}; `{name}` has to be given on the command line, after --",
        ARGUMENTS.join(", ")
    );
    Err(Error::new(argument.at, message))
}

/// The possible reactions to a used-up budget, by name.
pub const ON_BUDGET: [(&str, OnBudget); 2] = [("pause", OnBudget::Pause), ("end", OnBudget::End)];

/// The possible reactions to a usage limit, by name.
pub const ON_LIMIT: [(&str, OnLimit); 3] =
    [("wait", OnLimit::Wait), ("pause", OnLimit::Pause), ("fail", OnLimit::Fail)];

/// Reads the name of a file of the workflow.
fn entry(name: &str) -> Result<String, String> {
    StateName::parse(name).map(|_| name.to_owned()).map_err(|error| error.to_string())
}

/// Reads a label of hosts, or the name of one.
///
/// # Errors
/// A text that says what a label is.
pub fn host_label(text: &str) -> Result<HostLabel, String> {
    HostLabel::parse(text).map_err(|error| error.to_string())
}

/// Reads a number of processes, or `auto`.
///
/// # Errors
/// A text that says what is expected.
pub fn max_procs(text: &str) -> Result<MaxProcs, String> {
    match (text, text.parse::<u16>()) {
        ("auto", _) => Ok(MaxProcs::Auto),
        (_, Ok(count)) if count > 0 => Ok(MaxProcs::Count(count.into())),
        _ => Err("write a number from 1 to 65535, or auto".to_owned()),
    }
}

// Amounts of money as people write them.

/// Reads an amount in US dollars.
///
/// # Errors
/// A text that says what is expected.
pub fn dollars(text: &str) -> Result<Usd, String> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount >= 0.0 => Ok(Usd::from_dollars(amount)),
        _ => Err("write an amount in US dollars, such as 2 or 0.50".to_owned()),
    }
}

/// Reads a budget, which is above zero.
///
/// # Errors
/// A text that says what is expected.
pub fn budget(text: &str) -> Result<Usd, String> {
    match dollars(text)? {
        Usd::ZERO => {
            Err("write an amount above 0, because nothing can be asked without money".to_owned())
        }
        amount => Ok(amount),
    }
}

// The inputs and outputs that a folder declares in its `raymond.yaml`, for workflows that enter it by a tag.

/// A value that a folder is entered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderInput {
    /// The attribute of the tag, and the placeholder of the folder's first state.
    pub name: String,
    /// The meaning, for people and agents.
    pub description: String,
    /// True if a tag that leaves it out is refused.
    pub is_required: bool,
    /// The value if the tag leaves it out.
    pub default: Option<String>,
}

/// A value that the result of a folder gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderOutput {
    /// The attribute of the result, or the field of its object.
    pub name: String,
}

listed_keys! {
    /// An input as it is written.
    #[derive(Debug)]
    #[serde(deny_unknown_fields)]
    pub struct RawFolderInput {
        /// The attribute of the tag that enters the folder, and the placeholder.
        name: PlacedValue<String> => shape::text,
        /// The meaning of the value.
        description: Option<String> => shape::text,
        /// False if the value may be left out; without a default it is required.
        required: Option<PlacedValue<bool>> => shape::boolean,
        /// The value if the tag leaves it out.
        default: Option<String> => shape::text,
    }
}

/// Returns the list of inputs as JSON Schema.
pub(super) fn inputs_shape() -> Value {
    shape::list(shape::strict_mapping(RawFolderInput::KEYS, &["name"]))
}

/// Returns the list of outputs as JSON Schema.
pub(super) fn outputs_shape() -> Value {
    shape::list(shape::text())
}

/// Reads the inputs.
///
/// # Errors
/// [`Error`] with line and column.
pub(super) fn inputs(written: Vec<PlacedValue<RawFolderInput>>) -> Result<Vec<FolderInput>, Error> {
    let mut inputs: Vec<FolderInput> = Vec::with_capacity(written.len());
    for PlacedValue { value: RawFolderInput { name, description, required, default }, .. } in
        written
    {
        check_name(&name, inputs.iter().map(|input| input.name.as_str()))?;
        if let Some(required) =
            required.as_ref().filter(|required| required.value && default.is_some())
        {
            let message = "an input with a `default` is never missing; leave `required` out";
            return Err(Error::new(required.at, message));
        }
        let is_required = required.map_or(default.is_none(), |required| required.value);
        let description = description.unwrap_or_default();
        inputs.push(FolderInput { name: name.value, description, is_required, default });
    }
    Ok(inputs)
}

/// Reads the outputs.
///
/// # Errors
/// [`Error`] with line and column.
pub(super) fn outputs(written: Vec<PlacedValue<String>>) -> Result<Vec<FolderOutput>, Error> {
    let mut outputs: Vec<FolderOutput> = Vec::with_capacity(written.len());
    for name in written {
        check_name(&name, outputs.iter().map(|output| output.name.as_str()))?;
        outputs.push(FolderOutput { name: name.value });
    }
    Ok(outputs)
}

/// Names with a special meaning: attributes of tags, and placeholders of the runtime.
const TAKEN: [&str; 10] =
    ["return", "next", "each", "as", "cwd", "cd", "keep", "workflow_id", "agent_id", "state"];

fn check_name<'name>(
    name: &PlacedValue<String>,
    mut others: impl Iterator<Item = &'name str>,
) -> Result<(), Error> {
    let text = name.value.as_str();
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_name = begins
        && text.len() <= 64
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    let message = if !is_name {
        format!("`{text}` is not a name for a value; use letters, digits, `_` and `-`")
    } else if TAKEN.contains(&text) {
        format!("`{text}` is reserved; choose another name")
    } else if others.any(|other| other == text) {
        format!("`{text}` is there twice")
    } else {
        return Ok(());
    };
    Err(Error::new(name.at, message))
}

// The manifest of `ray`, another runtime of prompt folders: a `workflow.yaml` with an `id` beside the states.
//
// It is not a graph. Its `default_budget` is the budget of a run; what has no meaning here is named.

/// The keys that distinguish a graph, or a workflow in one file, from such a manifest.
const OF_OTHERS: [&str; 4] = ["nodes", "start_node", "endings", "states"];

/// Keys that ask for nothing.
const FOR_PEOPLE: [&str; 4] = ["id", "name", "description", "requires_human_input"];

/// What such a manifest says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PeerManifest {
    /// The spending limit of a run.
    pub budget: Option<Usd>,
    /// The keys that have no effect here.
    pub unread: Vec<String>,
}

impl PeerManifest {
    /// Reads the manifest of a folder, if it has one of this kind.
    pub fn of(source: &dyn WorkflowSource) -> Option<Self> {
        let name = StateName::parse(GRAPH).ok()?;
        source.check(&name).ok()?;
        Self::read(&source.read(&name).ok()?)
    }

    fn read(text: &str) -> Option<Self> {
        let root = yaml::sound_tree(YamlFileKind::IMPORT, text).ok()?;
        if root.entry("id").is_none() || OF_OTHERS.iter().any(|key| root.entry(key).is_some()) {
            return None;
        }
        let mut read = Self::default();
        for YamlEntry { key, value, .. } in root.entries() {
            match (&**key, &value.value) {
                ("default_budget", YamlContent::Number(amount)) if amount.as_f64() == Some(0.0) => {
                }
                ("default_budget", YamlContent::Number(amount)) => {
                    read.budget = budget(&amount.to_string()).ok();
                    read.unread.extend(read.budget.is_none().then(|| key.to_string()));
                }
                (name, _) if FOR_PEOPLE.contains(&name) => {}
                _ => read.unread.push(key.to_string()),
            }
        }
        Some(read)
    }
}

impl Manifest {
    /// Returns the manifest with the budget of that of `ray` in the same folder, if it has none.
    pub fn with_peer(mut self, source: &dyn WorkflowSource) -> Self {
        self.budget = self.budget.or_else(|| PeerManifest::of(source)?.budget);
        self
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod budget_tests {
    use super::*;

    #[test]
    fn budget_is_an_amount_above_zero() {
        assert_eq!(budget("$0.50"), Ok(Usd::from_dollars(0.5)));
        for none in ["0", "$0.00", "-1", "lots", "inf", ""] {
            assert!(budget(none).is_err(), "{none}");
        }
        assert_eq!(dollars("0"), Ok(Usd::ZERO));
    }
}

#[cfg(test)]
mod peer_manifest_tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn budget_is_read_and_other_keys_are_named() {
        let text = "id: smoke\nname: Smoke\ndefault_budget: 5.0\ninput: { mode: required }\nbackend: { name: pi }\n";
        let read = PeerManifest::read(text).expect("a manifest");
        assert_eq!(read.budget, Some(Usd::from_dollars(5.0)));
        assert_eq!(read.unread, ["input", "backend"]);
        let read = PeerManifest::read("id: x\ndefault_budget: -1\n").expect("a manifest");
        assert_eq!((read.budget, read.unread), (None, vec!["default_budget".to_owned()]));
        let none = PeerManifest::read("id: x\ndefault_budget: 0\n").expect("a manifest");
        assert_eq!(none, PeerManifest::default());
        for other in ["id: x\nnodes: {}\n", "id: x\nstates: {}\n", "name: x\n", "[id]", "id: {"] {
            assert_eq!(PeerManifest::read(other), None, "{other}");
        }
    }

    #[test]
    fn manifest_of_folder_comes_before_that_of_peer() {
        let peer = "id: x\ndefault_budget: 5\n".to_owned();
        let files: BTreeMap<String, String> = [(super::GRAPH.to_owned(), peer)].into();
        let with = |budget| Manifest { budget, ..Manifest::default() }.with_peer(&files).budget;
        let limit = Some(Usd::from_dollars(1.0));
        assert_eq!((with(limit), with(None)), (limit, Some(Usd::from_dollars(5.0))));
    }
}
