//! A workflow that others keep in one file, taken apart into the files of a folder of prompts.
//!
//! The file is YAML: `states` maps each name to a text, or to a mapping with its `prompt` and the keys of its head.
//! The other keys at the top are those of `raymond.yaml`. Keys that have no meaning here are left out, with a note.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use super::diagnostic::{Diagnostic, Severity};
use super::manifest;
use super::schema::FileSchema;
use super::source::SourcePlace;
use super::yaml::tree::YamlFileKind;
use super::yaml::{self, Error, YamlContent, YamlEntry, YamlValue};
use raymond_model::id::{StateKind, StateName};
use raymond_model::privilege::obeyed_name;
use raymond_model::supervision::SupervisionPolicy;

/// The code of the mistakes in a file that is imported.
const CODE: &str = "RF007";

/// The files of a folder, in the order in which they are written.
#[derive(Debug, Default, PartialEq)]
pub struct ImportedFolder {
    /// The names and the texts.
    pub files: Vec<(StateName, String)>,
    /// The problems that do not keep the folder from being written.
    pub notes: Vec<String>,
    /// The timeout of the workflow, in seconds, if its scripts need another one than the usual: a script has no head.
    script_timeout: Option<f64>,
}

/// The reason why a file is not imported.
pub const REFUSED_NAME: &str = "programs obey hidden files and such names; copy it by hand";

/// The key of a prompt's policy.
const POLICY: &str = "allowed_transitions";

/// The keys of a state that are scripts, with their endings.
const SCRIPTS: [&str; 3] = ["sh", "ps1", "bat"];

/// Takes a file apart; `path` is its name in messages.
///
/// # Errors
/// The first mistake.
pub fn import(path: &str, text: &str) -> Result<ImportedFolder, Diagnostic> {
    taken_apart(text)
        .map_err(|Error { at, message }| Diagnostic::new(path, at, CODE, Severity::Error, message))
}

fn taken_apart(text: &str) -> Result<ImportedFolder, Error> {
    let root = yaml::sound_tree(YamlFileKind::IMPORT, text)?;
    if !matches!(root.value, YamlContent::Map(_)) {
        return Err(Error::new(root.at, needs_states()));
    }
    let mut folder = ImportedFolder::default();
    let mut of_manifest = String::new();
    for entry in root.entries().iter().filter(|entry| &*entry.key != "states") {
        manifest_key(&entry.key, &entry.value, &mut of_manifest, &mut folder.notes);
    }
    let states = root.entry("states").map(|entry| &entry.value.value);
    let Some(YamlContent::Map(states)) = states else {
        return Err(Error::new(SourcePlace::START, needs_states()));
    };
    if states.is_empty() {
        return Err(Error::new(SourcePlace::START, "`states` is empty"));
    }
    if !of_manifest.lines().any(|line| line.starts_with("supervision:")) {
        folder.script_timeout = script_timeout(states);
    }
    if let Some(seconds) = folder.script_timeout {
        let _ = writeln!(of_manifest, "supervision: {{ timeout: {seconds}s }}");
    }
    for state in states.iter() {
        folder.add_state(&state.key, &state.value)?;
    }
    if !of_manifest.is_empty() {
        folder.add(manifest::FILE, of_manifest)?;
        folder.files.rotate_right(1);
    }
    Ok(folder)
}

fn needs_states() -> String {
    "a workflow in one file has the key `states`, which maps the name of each state to its text, or to a mapping with `prompt`".to_owned()
}

/// Adds a key of the manifest, or a note that it is left out.
fn manifest_key(key: &str, value: &YamlValue, text: &mut String, notes: &mut Vec<String>) {
    let renamed = match (key, &value.value) {
        ("default_budget", YamlContent::Number(amount)) if amount.as_f64() > Some(0.0) => "budget",
        _ => key,
    };
    if FileSchema::Manifest.has_key(renamed) {
        let _ = writeln!(text, "{renamed}: {}", written(value));
    } else {
        notes.push(format!("`{key}`: raymond.yaml has no such key; ignored"));
    }
}

impl ImportedFolder {
    fn add(&mut self, name: &str, text: String) -> Result<(), Error> {
        let refuse = |why: String| Error::new(SourcePlace::START, why);
        let name = StateName::parse(name).map_err(|error| refuse(error.to_string()))?;
        if let Some(obeyed) = obeyed_name(Path::new(name.as_str())) {
            return Err(refuse(format!("{}: {REFUSED_NAME}", obeyed.display())));
        }
        let is_taken =
            |(other, _): &(StateName, String)| other.as_str().eq_ignore_ascii_case(name.as_str());
        if self.files.iter().any(is_taken) {
            return Err(refuse(format!("{name}: two states would be this file")));
        }
        self.files.push((name, text));
        Ok(())
    }

    /// Adds the file of a state, or those of its scripts.
    fn add_state(&mut self, name: &str, state: &YamlValue) -> Result<(), Error> {
        let refuse =
            |why: String| Err(Error::new(SourcePlace::START, format!("states.{name}: {why}")));
        let (mut head, mut prompt, mut scripts) = (String::new(), None, Vec::new());
        let mut timeout = None;
        match &state.value {
            YamlContent::Text(text) => prompt = Some(&text.text),
            YamlContent::Map(_) => {}
            _ => return refuse("a state is a text, or a mapping with `prompt`".to_owned()),
        }
        for YamlEntry { key, value, .. } in state.entries() {
            match (&**key, &value.value) {
                ("prompt", YamlContent::Text(text)) => prompt = Some(&text.text),
                ("prompt", _) => return refuse("`prompt` is a text".to_owned()),
                (ending, YamlContent::Text(text)) if SCRIPTS.contains(&ending) => {
                    scripts.push((ending, &text.text));
                }
                ("timeout", YamlContent::Number(seconds)) => timeout = seconds.as_f64(),
                (key, _) => self.head_key(name, key, value, &mut head),
            }
        }
        if timeout == Some(0.0) {
            self.notes.push(format!(
                "states.{name}: a state must have a time limit; `timeout: 0` is ignored"
            ));
        }
        let timeout = timeout.filter(|seconds| *seconds > 0.0);
        let usual = self.script_timeout.map(|_| usual_timeout());
        if scripts.is_empty()
            && !head.contains("supervision:")
            && let Some(seconds) = timeout.or(usual)
        {
            let _ = writeln!(head, "supervision: {{ timeout: {seconds}s }}");
        }
        match (prompt, scripts.is_empty()) {
            (Some(_), false) => refuse("a state is a prompt or a script, not both".to_owned()),
            (None, true) => refuse("a state needs a `prompt`".to_owned()),
            (Some(text), true) if head.is_empty() => self.add(&file_of(name), ended(text)),
            (Some(text), true) => {
                self.add(&file_of(name), format!("---\n{head}---\n{}", ended(text)))
            }
            (None, false) => {
                if !head.is_empty() {
                    self.notes.push(format!(
                        "states.{name}: a script has no frontmatter; its other keys are ignored"
                    ));
                }
                let limit = self.script_timeout.or(Some(usual_timeout()));
                if let Some(seconds) = timeout.filter(|_| timeout != limit) {
                    self.notes.push(format!(
                        "states.{name}: a script cannot have its own `timeout` ({seconds}s); `supervision.timeout` of {} holds for all scripts",
                        manifest::FILE
                    ));
                }
                scripts.into_iter().try_for_each(|(ending, text)| {
                    self.add_script(&format!("{name}.{ending}"), text)
                })
            }
        }
    }

    /// Adds the file of a script, and a note if it can be no state.
    fn add_script(&mut self, file: &str, text: &str) -> Result<(), Error> {
        let is_state = text.starts_with("#!")
            || StateName::parse(file).is_ok_and(|name| name.is_state_by_ending());
        if !is_state {
            let endings = StateKind::Script.endings().join(", .");
            self.notes.push(format!(
                "{file}: this is not a state, because scripts here end in .{endings}; it is kept as a file beside them"
            ));
        }
        self.add(file, ended(text))
    }

    /// Adds a key of a prompt's head, or a note that it is left out.
    fn head_key(&mut self, state: &str, key: &str, value: &YamlValue, head: &mut String) {
        if !FileSchema::Frontmatter.has_key(key) {
            self.notes.push(format!(
                "states.{state}: the frontmatter of a prompt has no key `{key}`; ignored"
            ));
            return;
        }
        match &value.value {
            YamlContent::List(entries) if key == POLICY => {
                let _ = writeln!(head, "{key}:");
                for entry in entries.iter() {
                    let _ = writeln!(head, "  - {}", written(entry));
                }
            }
            _ => {
                let _ = writeln!(head, "{key}: {}", written(value));
            }
        }
    }
}

/// Returns the usual time limit of a state, in seconds.
fn usual_timeout() -> f64 {
    Duration::from_millis(SupervisionPolicy::default().timeout_ms).as_secs_f64()
}

/// Returns the longest time limit of the scripts, in seconds, if it is not the usual one.
fn script_timeout(states: &[YamlEntry]) -> Option<f64> {
    let of_script = |state: &YamlEntry| {
        let is_script = SCRIPTS.iter().any(|key| state.value.entry(key).is_some());
        let seconds = match state.value.entry("timeout").map(|entry| &entry.value.value) {
            Some(YamlContent::Number(seconds)) => seconds.as_f64(),
            _ => None,
        };
        let seconds = seconds.filter(|seconds| *seconds > 0.0);
        is_script.then(|| seconds.unwrap_or_else(usual_timeout))
    };
    let longest = states.iter().filter_map(of_script).reduce(f64::max)?;
    Some(longest).filter(|longest| longest.total_cmp(&usual_timeout()).is_ne())
}

/// Returns the file of a state: the name itself if it has the ending of a state.
fn file_of(name: &str) -> String {
    let is_file = StateName::parse(name).is_ok_and(|name| name.is_state_by_ending());
    if is_file { name.to_owned() } else { format!("{name}.md") }
}

/// Returns a text with a line break at its end.
fn ended(text: &str) -> String {
    format!("{}\n", text.strip_suffix('\n').unwrap_or(text))
}

/// Writes a value as YAML on one line.
fn written(value: &YamlValue) -> String {
    match &value.value {
        YamlContent::Null => "null".to_owned(),
        YamlContent::Bool(value) => value.to_string(),
        YamlContent::Number(number) => number.to_string(),
        YamlContent::Text(text) => written_text(&text.text),
        YamlContent::List(entries) => {
            let entries: Vec<String> = entries.iter().map(written).collect();
            format!("[{}]", entries.join(", "))
        }
        YamlContent::Map(entries) => {
            let entry = |entry: &YamlEntry| {
                format!("{}: {}", written_text(&entry.key), written(&entry.value))
            };
            let entries: Vec<String> = entries.iter().map(entry).collect();
            format!("{{ {} }}", entries.join(", "))
        }
    }
}

/// Writes a text as YAML: in quotes, unless it is plain.
fn written_text(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

/// Returns whether YAML reads a text as that text without quotes: a name of a file, or a word.
fn is_plain(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let words = ["true", "false", "yes", "no", "on", "off", "null", "y", "n", "inf", "nan"];
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(is_part)
        && !words.contains(&text.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests;
