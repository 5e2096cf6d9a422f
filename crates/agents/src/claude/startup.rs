//! The flags and variables of a lean start: less of Claude Code is loaded, and requests are smaller. Pure.
//!
//! `--bare` leaves out the most, but does not read the login, so it needs a key in the environment. It also offers only
//! the tools Bash, Edit and Read, regardless of `--tools`. If it cannot be used, individual switches leave out as much
//! as possible.

use raymond_model::turn_options::{StartupMode, TurnOptions};

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

#[cfg(test)]
mod startup_tests {
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
