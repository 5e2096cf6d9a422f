//! The flags and variables of a lean start: less of Claude Code is loaded, and requests are smaller. Pure.
//!
//! `--bare` leaves out the most, but reads no login: it needs a key in the environment. It also offers no other tools
//! than Bash, Edit and Read, whatever `--tools` says. If it cannot be used, single switches leave out as much as
//! possible.

use std::ffi::OsString;
use std::future::pending;
use std::time::Duration;

use crate::domain::turn_options::{StartupMode, TurnOptions};
use crate::process::captured_output::ProcessSpec;

/// The tools of a lean process, if neither the state nor the starter of the run names others.
const TOOLS: [&str; 3] = ["Bash", "Edit", "Read"];

/// Variables that show that Claude Code needs no login.
const CREDENTIALS: [&str; 5] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
];

/// The flag that leaves out everything but the tools of a lean process.
const BARE: &str = "--bare";

/// The variables that leave out `CLAUDE.md` files and memory.
const WITHOUT_MEMORY: [(&str, &str); 2] =
    [("CLAUDE_CODE_DISABLE_CLAUDE_MDS", "1"), ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1")];

/// Flags and variables with which a process starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartupFlags {
    /// The arguments.
    pub arguments: Vec<String>,
    /// The environment variables.
    pub variables: Vec<(String, String)>,
}

/// Returns the flags and variables for the startup mode of a state. `given` are the arguments for Claude Code that
/// the run was started with; `is_set` tells whether the process will have an environment variable.
pub fn startup_flags(
    options: &TurnOptions,
    given: &[String],
    is_set: impl Fn(&str) -> bool,
) -> StartupFlags {
    match options.startup {
        None | Some(StartupMode::Normal) => StartupFlags::default(),
        Some(StartupMode::Lean) => lean_flags(options, given, CREDENTIALS.into_iter().any(is_set)),
    }
}

fn lean_flags(options: &TurnOptions, given: &[String], has_credentials: bool) -> StartupFlags {
    let is_bare_enough = |tools: &Vec<String>| tools.iter().all(|tool| TOOLS.contains(&&**tool));
    if has_credentials && options.tools.as_ref().is_none_or(is_bare_enough) {
        return StartupFlags { arguments: vec![BARE.to_owned()], variables: Vec::new() };
    }
    let mut arguments =
        ["--disable-slash-commands", "--strict-mcp-config"].map(str::to_owned).to_vec();
    // The last of several flags counts, so no flag is added that would replace the starter's choice of tools.
    let has_given_tools = given.iter().any(|flag| flag.split('=').next() == Some("--tools"));
    if options.tools.is_none() && !has_given_tools {
        arguments.extend(["--tools".to_owned(), TOOLS.join(",")]);
    }
    let variable = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    StartupFlags { arguments, variables: WITHOUT_MEMORY.map(variable).to_vec() }
}

/// The time for the answer; the program only prints it.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The number of bytes that are kept of the answer.
const KEPT: usize = 200;

/// Returns the version that a program says of itself in this environment, such as `2.1.330`; `None` if there is no such
/// program, or it says nothing.
pub async fn claude_version(
    program: &str,
    environment: Vec<(OsString, OsString)>,
) -> Option<String> {
    let asked = ProcessSpec {
        path: program.into(),
        arguments: vec!["--version".into()],
        cwd: "/".into(),
        environment,
        longest: ANSWER_LIMIT,
        kept: KEPT,
    };
    let output = asked.run(pending()).await.ok()?;
    first_word(&output.stdout.text())
}

fn first_word(text: &str) -> Option<String> {
    let word = text.split_whitespace().next()?;
    word.starts_with(|first: char| first.is_ascii_digit()).then(|| word.chars().take(40).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lean(tools: Option<&[&str]>) -> TurnOptions {
        let tools = tools.map(|tools| tools.iter().map(|&tool| tool.to_owned()).collect());
        TurnOptions { startup: Some(StartupMode::Lean), tools, ..TurnOptions::default() }
    }

    #[test]
    fn lean_start_with_api_key_is_bare() {
        let has_key = |name: &str| name == "ANTHROPIC_API_KEY";
        for tools in [None, Some(&["Read"][..]), Some(&[])] {
            assert_eq!(
                startup_flags(&lean(tools), &[], has_key).arguments,
                ["--bare"],
                "{tools:?}"
            );
        }
    }

    #[test]
    fn lean_start_without_key_or_with_own_tools_uses_single_switches() {
        let flags = startup_flags(&lean(None), &[], |_| false);
        let switches = ["--disable-slash-commands", "--strict-mcp-config"];
        assert_eq!(flags.arguments[..2], switches);
        assert_eq!(flags.arguments[2..], ["--tools", "Bash,Edit,Read"]);
        assert_eq!(flags.variables.len(), 2);
        let flags = startup_flags(&lean(Some(&["Grep"])), &[], |_| true);
        assert_eq!(flags.arguments, switches, "the state names its tools itself");
    }

    #[test]
    fn lean_start_does_not_override_tools_flag_of_run() {
        for given in [&["--tools=Read"][..], &["--tools", "Read"]] {
            let given: Vec<String> = given.iter().map(|&flag| flag.to_owned()).collect();
            let flags = startup_flags(&lean(None), &given, |_| false);
            assert!(!flags.arguments.iter().any(|flag| flag == "--tools"), "{flags:?}");
        }
    }

    #[test]
    fn normal_start_has_no_flags() {
        for startup in [None, Some(StartupMode::Normal)] {
            let options = TurnOptions { startup, ..TurnOptions::default() };
            assert_eq!(startup_flags(&options, &[], |_| true), StartupFlags::default());
        }
    }
}

#[cfg(test)]
mod claude_version_tests {
    use super::*;

    #[test]
    fn version_is_the_first_word() {
        assert_eq!(first_word("2.1.330 (Claude Code)\n").as_deref(), Some("2.1.330"));
        for other in ["", "claude 2", "  \n"] {
            assert_eq!(first_word(other), None, "{other:?}");
        }
    }

    #[tokio::test]
    async fn program_that_is_not_there_has_no_version() {
        assert_eq!(claude_version("/no/such/program", Vec::new()).await, None);
        let shell = claude_version("/bin/sh", Vec::new()).await;
        assert_eq!(shell, None, "an error is no version");
    }
}
