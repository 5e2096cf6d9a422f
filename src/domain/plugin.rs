//! A plug-in that is a program: its command, its name and how the run depends on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::supervision::{SupervisionOverrides, SupervisionPolicy};

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

#[cfg(test)]
mod tests {
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
