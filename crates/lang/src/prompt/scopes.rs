//! Folders that a tag leads to: each is a separate scope, with a first state and the inputs that it needs.

use raymond_model::id::{ScopePath, StateName};
use raymond_model::policy::{ProtocolViolation, TransitionPolicy};
use raymond_model::transition::{Transition, Variables};

use crate::manifest;
use crate::manifest::{FolderInput, Manifest, PeerManifest};
use crate::source::WorkflowSource;

/// Returns the manifest of a folder; the default one if it has none.
///
/// # Errors
/// The mistake in it.
pub fn manifest_of(source: &dyn WorkflowSource) -> Result<Manifest, String> {
    let name = StateName::parse(manifest::FILE).map_err(|error| error.to_string())?;
    if source.check(&name).is_err() {
        return Ok(Manifest::default());
    }
    let text = source.read(&name).map_err(|error| error.to_string())?;
    manifest::parse(&text).map_err(|error| format!("{}:{error}", source.path(&name)))
}

/// Returns the first state of a folder: the `entry` of its manifest, or the usual one.
///
/// # Errors
/// The reason why there is none.
pub fn first_state(source: &dyn WorkflowSource) -> Result<StateName, String> {
    if let Some(entry) = manifest_of(source)?.entry {
        let state = StateName::parse(&entry).map_err(|error| error.to_string())?;
        return match source.check(&state) {
            Ok(()) => Ok(state),
            Err(error) => Err(format!("its `entry` is {entry}, but {error}")),
        };
    }
    match UsualFirstState::find(source) {
        UsualFirstState::Found(state) => Ok(state),
        UsualFirstState::Several { first, other } => Err(format!(
            "it has {first} and {other}, and nothing says which one comes first; name the first as `entry` in its raymond.yaml"
        )),
        UsualFirstState::Missing => Err(format!(
            "it has no first state; make {USUAL_NAMES} there, name its first file as `entry` in a raymond.yaml there, or let the tag name the file"
        )),
    }
}

/// Gives the folders that a transition enters their default inputs.
///
/// # Errors
/// The input that is missing.
pub(super) fn fill_inputs(
    transition: &mut Transition,
    source: &dyn WorkflowSource,
) -> Result<(), ProtocolViolation> {
    match missing_input(transition, source) {
        None => Ok(()),
        Some(lacking) => Err(ProtocolViolation::NoSuchState {
            asked: transition.to_string(),
            why: lacking.message,
        }),
    }
}

/// Returns the inputs that a folder declares, as far as it can be read.
fn inputs_of(path: &ScopePath, source: &dyn WorkflowSource) -> Vec<FolderInput> {
    let manifest = source.scope(path).ok().and_then(|there| manifest_of(&*there).ok());
    manifest.map(|manifest| manifest.inputs).unwrap_or_default()
}

/// An input that a transition leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LackingInput {
    pub name: String,
    /// The reason, and what to write.
    pub message: String,
}

/// Gives the folders that a transition enters their default inputs; returns the first that is missing.
fn missing_input(transition: &mut Transition, source: &dyn WorkflowSource) -> Option<LackingInput> {
    let mut missing = None;
    transition.change_given(|scope, variables, has_list| {
        let Some(path) = scope else { return };
        for input in inputs_of(path, source) {
            if variables.contains_key(&input.name) {
                continue;
            }
            match input.default {
                Some(value) => drop(variables.insert(input.name, value)),
                None if input.is_required && !has_list => {
                    missing.get_or_insert_with(|| LackingInput {
                        message: lacking(path, &input.name, &input.description),
                        name: input.name,
                    });
                }
                None => {}
            }
        }
    });
    missing
}

/// Returns the message that an input is missing.
fn lacking(path: &ScopePath, name: &str, description: &str) -> String {
    let meaning = if description.is_empty() { String::new() } else { format!(" ({description})") };
    format!("{path} needs the input `{name}`{meaning}; give it as an attribute: {name}=\"…\"")
}

/// Returns the input that a transition leaves out although its folder needs it.
pub fn lacking_input(transition: &Transition, source: &dyn WorkflowSource) -> Option<LackingInput> {
    missing_input(&mut transition.clone(), source)
}

/// Returns a transition as an agent has to write it: with the inputs that its folders require.
pub fn with_required_inputs(transition: &Transition, source: &dyn WorkflowSource) -> Transition {
    let mut shown = transition.clone();
    shown.change_given(|scope, variables, has_list| {
        let Some(path) = scope.filter(|_| !has_list) else { return };
        for input in inputs_of(path, source) {
            let is_lacking = input.default.is_none() && !variables.contains_key(&input.name);
            if input.is_required && is_lacking {
                variables.insert(input.name.clone(), format!("your {}", input.name));
            }
        }
    });
    shown
}

/// Returns a policy whose entries are [as an agent has to write them](with_required_inputs).
pub(super) fn with_inputs_of_folders(
    policy: &TransitionPolicy,
    source: &dyn WorkflowSource,
) -> TransitionPolicy {
    let mut shown = policy.clone();
    for entry in &mut shown.allowed {
        *entry = with_required_inputs(entry, source);
    }
    shown
}

/// Gives a result the outputs of its folder that are fields of its object; returns the first that is missing.
pub(super) fn take_outputs(
    payload: &str,
    variables: &mut Variables,
    source: &dyn WorkflowSource,
) -> Option<String> {
    let outputs = manifest_of(source).ok()?.outputs;
    let fields: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(payload).unwrap_or_default();
    for output in &outputs {
        if let Some(value) =
            fields.get(&output.name).filter(|_| !variables.contains_key(&output.name))
        {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            variables.insert(output.name.clone(), text);
        }
    }
    let output = outputs.into_iter().find(|output| !variables.contains_key(&output.name))?;
    let name = &output.name;
    Some(format!(
        "the result of this folder has to give `{name}`, as its raymond.yaml says; write <result {name}=\"…\">…</result>, or an object with that field"
    ))
}

// The state that a folder begins with, if its manifest names none.

/// The names of a first prompt or script. A folder with several of them does not say which one comes first.
pub const STARTS: [&str; 4] = [manifest::FIRST_STATE, "1_START.md", "START.sh", "1_START.sh"];

/// The names of the first file of a folder without such a prompt or script.
const OTHERS: [&str; 2] = [manifest::GRAPH, manifest::PROGRAM];

/// The names of which a folder has one, as a sentence lists them.
pub const USUAL_NAMES: &str = "START.md, START.sh, workflow.yaml or workflow.lisp";

/// The outcome of the search for a first state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsualFirstState {
    /// The folder has one.
    Found(StateName),
    /// The folder has several.
    Several {
        /// The usual one.
        first: StateName,
        /// Another one.
        other: StateName,
    },
    /// The folder has none.
    Missing,
}

impl UsualFirstState {
    /// Returns the state that a folder begins with whose manifest names none.
    pub fn find(source: &dyn WorkflowSource) -> Self {
        let mut starts = there(source, &STARTS);
        match (starts.next(), starts.next()) {
            (Some(first), Some(other)) => Self::Several { first, other },
            (Some(only), None) => Self::Found(only),
            (None, _) => there(source, &OTHERS)
                .find(|name| name.as_str() != manifest::GRAPH || PeerManifest::of(source).is_none())
                .map_or(Self::Missing, Self::Found),
        }
    }
}

/// Returns whether a state has a name that folders usually begin with.
pub fn is_usual(name: &StateName) -> bool {
    let name = name.as_str();
    STARTS.contains(&name) || OTHERS.contains(&name)
}

/// Returns those of the names that are files of a folder.
fn there<'a>(
    source: &'a dyn WorkflowSource,
    names: &'a [&str],
) -> impl Iterator<Item = StateName> + 'a {
    names
        .iter()
        .filter_map(|name| StateName::parse(name).ok())
        .filter(|name| source.check(name).is_ok())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use raymond_model::transition::TagName;

    #[test]
    fn fields_of_result_become_outputs_and_missing_field_is_named() {
        let manifest = "outputs: [verdict, score]\n".to_owned();
        let files: BTreeMap<String, String> = [(manifest::FILE.to_owned(), manifest)].into();
        let mut variables = Variables::new();
        variables.insert("score".to_owned(), "8".to_owned());
        let payload = r#"{"verdict": "publish", "score": 1, "other": 2}"#;
        assert_eq!(take_outputs(payload, &mut variables, &files), None);
        let pairs: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("score", "8"), ("verdict", "publish")]);
        let why = take_outputs("text", &mut Variables::new(), &files).expect("missing");
        assert!(why.contains("`verdict`"), "{why}");
    }

    #[test]
    fn shown_transition_has_the_inputs_that_its_folder_requires() {
        let manifest = "inputs: [{ name: text }, { name: tone, default: kind }]\n";
        let files: BTreeMap<String, String> =
            [("review/raymond.yaml", manifest), ("review/START.md", "x"), ("B.md", "x")]
                .map(|(name, text)| (name.to_owned(), text.to_owned()))
                .into();
        let call = |more: &[(&str, &str)]| {
            let all = [&[("return", "B.md")], more].concat();
            let owned = all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
            Transition::from_parts(TagName::Call, owned, "review/").expect("a call")
        };
        let shown = with_required_inputs(&call(&[]), &files).to_string();
        assert_eq!(shown, "<call return=\"B.md\" text=\"your text\">review/</call>");
        let given = call(&[("text", "x")]);
        assert_eq!(with_required_inputs(&given, &files), given);
        let policy = TransitionPolicy { allowed: vec![call(&[])], ..TransitionPolicy::default() };
        let shown = with_inputs_of_folders(&policy, &files);
        assert_eq!(shown.allowed[0].variables()["text"], "your text");
    }
}

#[cfg(test)]
mod first_state_tests {
    use std::collections::BTreeMap;

    use super::*;

    fn found(names: &[&str]) -> UsualFirstState {
        let files: BTreeMap<String, String> =
            names.iter().map(|&name| (name.to_owned(), "x".to_owned())).collect();
        UsualFirstState::find(&files)
    }

    #[test]
    fn prompts_and_scripts_come_before_graphs_and_programs() {
        let state = |name: &str| StateName::parse(name).expect("a state");
        for name in ["START.md", "1_START.md", "START.sh", "1_START.sh"] {
            let all = [name, "workflow.yaml", "workflow.lisp", "OTHER.md"];
            assert_eq!(found(&all), UsualFirstState::Found(state(name)));
        }
        let graph = UsualFirstState::Found(state("workflow.yaml"));
        assert_eq!(found(&["workflow.lisp", "workflow.yaml"]), graph);
        assert_eq!(found(&["OTHER.md"]), UsualFirstState::Missing);
    }

    #[test]
    fn two_starts_leave_the_first_state_open() {
        let several = UsualFirstState::Several {
            first: StateName::parse("START.md").expect("a state"),
            other: StateName::parse("1_START.sh").expect("a state"),
        };
        assert_eq!(found(&["1_START.sh", "START.md"]), several);
    }
}
