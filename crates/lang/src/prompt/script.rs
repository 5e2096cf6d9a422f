//! Scripts as states: files of the folder that are executed, and whose output ends with a tag.

use std::collections::BTreeMap;

use super::state_error::Error;
use crate::source::is_state;
use crate::source::{self, WorkflowSource};
use crate::tag;
use crate::tag::PRINT;
use raymond_model::id::{Folder, StateName};
use raymond_model::operation::Operation;
use raymond_model::transition::{TagName, Variables};

/// The beginning of the name of each variable in a script's environment.
pub const VARIABLE_PREFIX: &str = "RAYMOND_VAR_";

/// The variable with what the script was entered with: an answer, a result, or else the input. The other peer of these
/// workflows has it by this name.
pub const INPUT_VARIABLE: &str = "RAYMOND_INPUT";

/// The most opening tags that are tried for a close.
const MAX_OPENS: usize = 16;

/// The variable with the result that the script was entered with.
pub const RESULT_VARIABLE: &str = "RAYMOND_RESULT";

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
    let mut environment: BTreeMap<String, String> =
        variables.iter().map(|(key, value)| (name(key), text(value))).collect();
    let result = variables.get("result");
    let entered_with = variables.get("answer").or(result).or_else(|| variables.get("input"));
    for (name, value) in [(RESULT_VARIABLE, result), (INPUT_VARIABLE, entered_with)] {
        environment.extend(value.map(|value| (name.to_owned(), text(value))));
    }
    environment
}

/// Returns the programs that have to be installed to execute a script, as far as its text tells.
pub fn programs(name: &StateName, text: &str) -> Vec<String> {
    let mut words = interpreter(name, text).unwrap_or_default();
    let is_env = words.first().is_some_and(|program| program.rsplit('/').next() == Some("env"));
    let argument = words.split_off(words.len().min(1)).pop().filter(|_| is_env);
    words.extend(argument.and_then(|argument| program_of_env(&argument)));
    words
}

/// Returns the program that `env` looks for; `None` if that needs more than the text.
fn program_of_env(argument: &str) -> Option<String> {
    let Some(list) = argument.strip_prefix("-S") else {
        return Some(argument.to_owned())
            .filter(|word| !word.starts_with('-') && !word.contains('='));
    };
    let mut words = list.split_whitespace();
    if list.contains(['"', '\'', '\\', '$']) || list.contains("PATH=") {
        return None;
    }
    while let Some(word) = words.next() {
        if ["-u", "-C", "--unset", "--chdir"].contains(&word) {
            words.next();
        } else if !word.starts_with('-') && !word.contains('=') {
            return Some(word.to_owned());
        }
    }
    None
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

/// Returns the reply of a script: the tag that ends its output, which may take several lines, and the forks before a
/// fork or directly before a goto. Without such a tag it is the last line that is not blank. Texts to print count
/// anywhere.
pub fn reply(stdout: &str) -> String {
    let output = without_prints(stdout);
    let start = reply_start(output);
    let mut reply = String::new();
    for printed in tag::find(&stdout[..start]).shown {
        reply.extend(["<", PRINT, ">", printed.as_str(), "</", PRINT, ">\n"]);
    }
    reply + stdout[start..].trim()
}

/// Returns a text without the blanks and the texts to print at its end.
fn without_prints(text: &str) -> &str {
    let text = text.trim_end();
    match text.ends_with("</print>").then(|| text.rfind("<print>")).flatten() {
        Some(at) => without_prints(&text[..at]),
        None => text,
    }
}

/// Returns the start of the line on which the reply at the end of a text begins.
fn reply_start(text: &str) -> usize {
    let line_of = |at: usize| text[..at].rfind('\n').map_or(0, |end| end + 1);
    let Some((tag, open)) = last_tag(text) else { return line_of(text.len()) };
    let start = line_of(open);
    let mut before = without_prints(&text[..start]);
    // A script may report on its work between its forks.
    if let Some(close) = before.rfind("</fork").filter(|_| tag == TagName::Fork) {
        before = &before[..before[close..].find('\n').map_or(before.len(), |end| close + end)];
    }
    match last_tag(before) {
        Some((TagName::Fork, _)) if matches!(tag, TagName::Fork | TagName::Goto) => {
            reply_start(before)
        }
        _ => start,
    }
}

/// Returns the tag whose close is the last one on the last line of a text, and where it opens.
fn last_tag(text: &str) -> Option<(TagName, usize)> {
    let last_line = text.rfind('\n').map_or(0, |end| end + 1);
    text[last_line..].rmatch_indices("</").find_map(|(at, _)| {
        let close = last_line + at;
        let (name, _) = text[close + 2..].split_once('>')?;
        let tag = TagName::from_name(name.trim_end())?;
        let end = close + 3 + name.len();
        let open = format!("<{}", name.trim_end());
        let mut opens = text[..close].rmatch_indices(&open).take(MAX_OPENS);
        let is_whole = |start: usize| {
            let found = tag::written(&text[start..end]);
            found.first().is_some_and(|found| found.span == (0..end - start))
        };
        opens.find_map(|(start, _)| is_whole(start).then_some((tag, start)))
    })
}

/// Returns whether a line has a tag with an attribute without quotes, as a shell prints it that has taken them.
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
        assert_eq!(reply("<goto>A.md</goto>\ndone"), "done");
        assert_eq!(reply("see <result>\n<result>x</result>"), "<result>x</result>");
        let two = "<goto>A.md</goto> <goto>B.md</goto>";
        assert_eq!(reply(&format!("<goto>C.md</goto>\n{two}")), two);
    }

    #[test]
    fn tag_over_several_lines_is_reply() {
        let ask = "<ask next=\"B.md\">\nwhat?\n</ask>";
        assert_eq!(reply(&format!("log\n{ask}\n")), ask);
        let open = "<call\n  return=\"B.md\"\n  kind='a'>C.md</call>";
        assert_eq!(reply(&format!("<goto>X.md</goto>\n{open}")), open);
        let result = "<result>\nsee <goto>A.md</goto></result>";
        assert_eq!(reply(&format!("<result> is printed below\n{result}\n\n")), result);
        assert_eq!(
            reply("log <result>\n{\"a\": [1]}\n</result >"),
            "log <result>\n{\"a\": [1]}\n</result >"
        );
    }

    #[test]
    fn forks_of_a_script_are_one_reply() {
        let fork = |item: &str| format!("<fork next=\"N.md\" item=\"{item}\">W.md</fork>");
        let forks = format!("{}\n\n{}", fork("1"), fork("2"));
        assert_eq!(reply(&format!("log\n{forks}\n")), forks);
        assert_eq!(reply(&format!("<goto>A.md</goto>\n{forks}")), forks);
        for text in [
            format!("{}\nlog\n{}", fork("1"), fork("2")),
            format!("{}\n<goto>A.md</goto>", fork("1")),
        ] {
            assert_eq!(reply(&text), text, "no fork is lost");
        }
    }

    #[test]
    fn texts_to_print_count_anywhere() {
        let shown = |stdout: &str| {
            let found = tag::find(&reply(stdout));
            (found.tags.len(), found.shown.join(","))
        };
        let all =
            "<print>a</print>\nlog\n<print>b\nb</print>\n<result>x</result>\n<print>c</print>";
        assert_eq!(shown(all), (1, "a,b\nb,c".to_owned()));
        let fork = "<fork next=\"N.md\">W.md</fork>";
        let between = format!("{fork}\n<print>a</print>\n{fork}\n");
        assert_eq!(shown(&between), (2, "a".to_owned()));
        assert_eq!(shown("<print><goto>A.md</goto></print>"), (0, "<goto>A.md</goto>".to_owned()));
    }

    #[test]
    fn script_has_what_it_was_entered_with() {
        let of = |pairs: &[(&str, &str)]| {
            let owned = pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
            let environment = environment(&owned.collect());
            [INPUT_VARIABLE, RESULT_VARIABLE].map(|name| environment.get(name).cloned())
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of(&[]), [None, None]);
        assert_eq!(of(&[("input", "i")]), [some("i"), None]);
        assert_eq!(of(&[("input", "i"), ("result", "r")]), [some("r"), some("r")]);
        assert_eq!(of(&[("input", "i"), ("answer", "a\0")]), [some("a"), None]);
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
