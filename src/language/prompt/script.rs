//! Scripts as states: files of the folder that are executed, and whose last line of output is a tag.

use std::collections::BTreeMap;

use super::state_error::Error;
use crate::domain::id::{Folder, StateName};
use crate::domain::operation::Operation;
use crate::domain::transition::{TagName, Variables};
use crate::language::source::{self, WorkflowSource};
use crate::language::state_files::is_state;

/// The beginning of the name of each variable in a script's environment.
pub const VARIABLE_PREFIX: &str = "RAYMOND_VAR_";

/// A script, ready to be executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedScript {
    file: String,
    interpreter: Vec<String>,
}

impl PreparedScript {
    /// Reads a script.
    ///
    /// # Errors
    /// [`Error`] if its file is missing, or does not say what executes it.
    pub fn read(
        name: &StateName,
        folder: Option<&Folder>,
        source: &dyn WorkflowSource,
    ) -> Result<Self, Error> {
        let interpreter = match source.read(name) {
            Ok(_) if !is_state(name, source) => {
                return Err(Error::NotAPrompt { path: source.path(name) });
            }
            Ok(text) => interpreter(name, &text)
                .ok_or_else(|| Error::NoInterpreter { path: source.path(name) })?,
            // A program for the machine needs no other one.
            Err(source::Error::NotText { .. }) if source.is_executable(name) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let file = folder.map_or_else(|| name.to_string(), |folder| format!("{folder}/{name}"));
        Ok(Self { file, interpreter })
    }

    /// Returns the operation that executes it, with these variables in its environment.
    #[must_use]
    pub fn operation(&self, variables: &Variables, timeout_ms: u64) -> Operation {
        Operation::RunScript {
            file: self.file.clone(),
            interpreter: self.interpreter.clone(),
            environment: environment(variables),
            timeout_ms,
        }
    }
}

/// Returns the variables as a script sees them. Each has a prefix, because an agent chooses their names: it must not be
/// able to set `PATH`. Characters that a shell takes in no name become `_`.
fn environment(variables: &Variables) -> BTreeMap<String, String> {
    let name = |name: &str| {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        format!("{VARIABLE_PREFIX}{}", name.chars().map(plain).collect::<String>())
    };
    // A process can be given no NUL.
    let text = |text: &str| text.replace('\0', "");
    variables.iter().map(|(own, value)| (name(own), text(value))).collect()
}

/// Returns the program that executes a file, and its first argument: as its `#!` line says, else by its ending.
fn interpreter(name: &StateName, text: &str) -> Option<Vec<String>> {
    if let Some(line) = text.strip_prefix("#!") {
        let line = line.lines().next().unwrap_or_default().trim();
        let (program, argument) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let words = [program, argument.trim()].into_iter().filter(|word| !word.is_empty());
        // A relative path would be one of the workspace, which agents write.
        let is_safe = !program.contains('/') || program.starts_with('/');
        return Some(words.map(str::to_owned).collect())
            .filter(|words: &Vec<_>| is_safe && !words.is_empty());
    }
    let ending = name.as_str().rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    let program = match ending.as_deref() {
        Some("sh") => "sh",
        Some("bash") => "bash",
        Some("py") => "python3",
        _ => return None,
    };
    Some(vec![program.to_owned()])
}

/// Returns the reply of a script: the last line of its output that is not blank.
#[must_use]
pub fn reply(stdout: &str) -> &str {
    stdout.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// Returns whether a line has a tag with an attribute without quotes, as a shell prints it that has taken them.
#[must_use]
pub fn has_lost_quotes(line: &str) -> bool {
    line.split('<').skip(1).any(|tag| {
        let open = tag.split('>').next().unwrap_or_default();
        let (name, attributes) = open.split_once(' ').unwrap_or((open, ""));
        let mut values = attributes.split('=').skip(1);
        TagName::from_name(name).is_some()
            && values.any(|value| !value.trim_start().starts_with(['"', '\'']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, text: &str) -> Option<Vec<String>> {
        interpreter(&StateName::parse(name).expect("a name"), text)
    }

    #[test]
    fn first_line_decides_interpreter_before_ending() {
        let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
        assert_eq!(of("a.sh", "echo"), words(&["sh"]));
        assert_eq!(of("a.PY", "print()"), words(&["python3"]));
        assert_eq!(of("a.sh", "#!/bin/bash -eu\n"), words(&["/bin/bash", "-eu"]));
        assert_eq!(of("a", "#! /usr/bin/env -S uv run\n"), words(&["/usr/bin/env", "-S uv run"]));
        assert_eq!((of("a", "text"), of("a.rb", "puts"), of("a.sh", "#!\n")), (None, None, None));
        assert_eq!(of("a.sh", "#!tools/run"), None);
    }

    #[test]
    fn last_line_that_is_not_blank_is_reply() {
        assert_eq!(reply("log\n<goto>A.md</goto>\r\n\n  \n"), "<goto>A.md</goto>");
        assert_eq!(reply("\n \n"), "");
    }

    #[test]
    fn tag_without_quotes_has_lost_them() {
        for line in ["<call return=B.md>A.md</call>", "x <ask next=\"B.md\" timeout=1h>so?</ask>"] {
            assert!(has_lost_quotes(line), "{line}");
        }
        for line in ["<call return=\"B.md\">A.md</call>", "<goto>A.md</goto> x=1", "<b x=1>y</b>"] {
            assert!(!has_lost_quotes(line), "{line}");
        }
    }

    #[test]
    fn variables_get_prefix_and_plain_names() {
        let variables: Variables = [("PATH", "x"), ("a-b.c", "1\0 2")]
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .into_iter()
            .collect();
        let environment = environment(&variables);
        let pairs: Vec<(&str, &str)> =
            environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("RAYMOND_VAR_PATH", "x"), ("RAYMOND_VAR_a_b_c", "1 2")]);
    }
}
