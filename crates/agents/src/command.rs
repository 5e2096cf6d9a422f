//! The command of a process: its arguments, its environment, its program. Pure.
//!
//! The folders that Claude Code's own tools must leave alone, as rules that deny. Pure.
//!
//! They hold in every permission mode. They do not bind a command that an agent is allowed to run, so raymond also
//! proves the files that it has to believe.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::turn_arguments::{WorkflowFolders, denied_tools, option_flags};
use crate::turn_arguments::ProtectedFolders;
use raymond_model::id::{AgentId, RunId};
use raymond_model::model::ModelName;
use raymond_model::money::Usd;
use raymond_model::option_switch::ProcessOptions;
use raymond_model::permission::RunPermission;
use raymond_model::session::{Session, SessionOrigin};
use raymond_model::settings::Settings;
use raymond_model::turn_options::PermissionMode;

/// The flag with the spending limit of a process over all its turns, at which they end with an error.
const BUDGET_FLAG: &str = "--max-budget-usd";

/// Lets Claude Code do everything without asking.
const SKIP_ALL: &str = "--dangerously-skip-permissions";

/// The flags that make a process take its turns as messages, until stdin ends.
const STREAMED: [&str; 2] = ["--input-format", "stream-json"];

/// The flag that makes it ask on its output what it would ask a person.
const ASK: [&str; 2] = ["--permission-prompt-tool", "stdio"];

/// The flag that makes it repeat its messages, so that it shows which of them it answers.
const REPEAT_FLAG: &str = "--replay-user-messages";

/// The variable that makes the program report whether its session runs or is idle. Only an idle session ends a turn.
const EMIT_STATES: (&str, &str) = ("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1");

/// The flag that makes the program print a message while it is written, so that a long answer is a sign of life.
const PARTIAL_FLAG: &str = "--include-partial-messages";

/// The variable that makes the program write a session to disk before it reports a turn's end, so that a resumed
/// session has the whole turn.
const EAGER_FLUSH: (&str, &str) = ("CLAUDE_CODE_EAGER_FLUSH", "1");

/// Returns the arguments of a process. It reads its turns as messages if `reads_messages`, else its only turn from a
/// file. A prompt is never among them: it comes on stdin, where it has no limit.
pub fn arguments(
    session: &Session,
    options: &ProcessOptions,
    (settings, folders): (&Settings, &WorkflowFolders),
    reads_messages: bool,
    spending_limit: Option<Usd>,
) -> Vec<String> {
    let mut arguments: Vec<String> =
        ["-p", "--output-format", "stream-json", "--verbose"].map(str::to_owned).into();
    arguments.extend(STREAMED.map(str::to_owned));
    arguments.push(PARTIAL_FLAG.to_owned());
    if reads_messages {
        arguments.push(REPEAT_FLAG.to_owned());
    }
    arguments.extend(origin(session));
    if let Some(model) = &options.model {
        arguments.extend(["--model".to_owned(), model.to_string()]);
    }
    let own_mode = options.turn.permission_mode;
    match &settings.permission {
        _ if own_mode.is_some() => {}
        RunPermission::Mode(mode) => {
            arguments.extend(["--permission-mode".to_owned(), mode.clone()]);
        }
        RunPermission::SkipAll => arguments.push(SKIP_ALL.to_owned()),
    }
    arguments.extend(denied_tools(&options.turn, folders));
    arguments.extend(settings.claude_args.iter().cloned());
    let given = given_spending_limit(&settings.claude_args);
    if let Some(spending_limit) =
        spending_limit.filter(|spending_limit| *spending_limit > Usd::ZERO)
        && given.is_none_or(|given| given > spending_limit)
    {
        // The last value counts, so this one is added only if it is lower than the given one.
        arguments.extend([BUDGET_FLAG.to_owned(), spending_limit.dollars().to_string()]);
    }
    // The options of a state come last, so they override the options of the run.
    match own_mode {
        Some(PermissionMode::BypassPermissions) => arguments.push(SKIP_ALL.to_owned()),
        Some(mode) => arguments.extend(["--permission-mode".to_owned(), mode.name().to_owned()]),
        None => {}
    }
    arguments.extend(option_flags(&options.turn, folders));
    if options.turn.asks_for_approval() {
        arguments.extend(ASK.map(str::to_owned));
    }
    arguments
}

/// Returns the arguments of an interactive process in a session, for a person. It asks them before it uses a tool.
pub fn interactive_arguments(
    session: &Session,
    model: Option<&ModelName>,
    protected: &ProtectedFolders,
) -> Vec<String> {
    let mut arguments = origin(session);
    arguments.extend(["--permission-mode", "default", "--disallowedTools"].map(str::to_owned));
    arguments.extend(protected.deny_rules());
    arguments
        .extend(model.map(|model| ["--model".to_owned(), model.to_string()]).into_iter().flatten());
    arguments
}

/// Returns the spending limit that arguments for Claude Code set.
fn given_spending_limit(arguments: &[String]) -> Option<Usd> {
    let mut rest = arguments.iter();
    let mut given = None;
    while let Some(argument) = rest.next() {
        let value = match argument.strip_prefix(BUDGET_FLAG) {
            Some("") => rest.next().map(String::as_str),
            Some(value) => value.strip_prefix('='),
            None => continue,
        };
        given = value.and_then(|value| value.parse().ok()).map(Usd::from_dollars);
    }
    given
}

fn origin(session: &Session) -> Vec<String> {
    let id = session.id.to_string();
    match &session.origin {
        SessionOrigin::Fresh | SessionOrigin::Rebuilt => vec!["--session-id".to_owned(), id],
        SessionOrigin::Resumed => vec!["--resume".to_owned(), id],
        SessionOrigin::Branch { from, at } => {
            let mut arguments: Vec<String> =
                ["--resume", from.as_str(), "--fork-session", "--session-id", &id]
                    .map(str::to_owned)
                    .into();
            if let Some(message) = at {
                arguments.extend(["--resume-session-at".to_owned(), message.to_string()]);
            }
            arguments
        }
    }
}

/// The marks of every process of a run, and of a turn, in its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentMarker {
    /// The run.
    pub run: RunId,
    /// The directory of all runs, as an absolute path.
    pub dir: PathBuf,
}

/// The variable that names the run of a process.
const RUN: &str = "RAYMOND_RUN";

/// The variable that marks a run in the background, so that the turn it was started from leaves it alone.
pub const DETACHED: &str = "RAYMOND_DETACHED";

impl EnvironmentMarker {
    /// Returns the variables that a process gets on top of the caller's environment. `process` is the name
    /// of its files; a process that is started ahead of its first turn has no agent yet.
    pub fn variables(&self, process: &str, agent: Option<&AgentId>) -> [(&'static str, String); 6] {
        [
            (RUN, self.run.to_string()),
            ("RAYMOND_DIR", self.dir.display().to_string()),
            ("RAYMOND_AGENT", agent.map(AgentId::to_string).unwrap_or_default()),
            ("RAYMOND_TURN", process.to_owned()),
            (EAGER_FLUSH.0, EAGER_FLUSH.1.to_owned()),
            (EMIT_STATES.0, EMIT_STATES.1.to_owned()),
        ]
    }

    /// Returns the name of the files of the Claude Code process that a process belongs to, if its
    /// environment bears this run's mark.
    pub fn process_of<'env>(&self, environment: &'env [u8]) -> Option<&'env str> {
        if self.is_on(environment) { value(environment, "RAYMOND_TURN") } else { None }
    }

    /// Returns the name of the plug-in that a process belongs to, if its environment bears this run's mark.
    pub fn plugin_of<'env>(&self, environment: &'env [u8]) -> Option<&'env str> {
        let of_turn = value(environment, "RAYMOND_TURN").is_some();
        if self.is_on(environment) && !of_turn {
            value(environment, "RAYMOND_PLUGIN")
        } else {
            None
        }
    }

    /// Returns whether a process is certainly not of this run's turns: it bears the mark of another run or of a
    /// plug-in, or was started as a run in the background.
    pub fn is_of_others(&self, environment: &[u8]) -> bool {
        if self.is_on(environment) {
            return self.plugin_of(environment).is_some();
        }
        [RUN, DETACHED].iter().any(|name| value(environment, name).is_some())
    }

    fn is_on(&self, environment: &[u8]) -> bool {
        value(environment, RUN) == Some(self.run.as_str())
            && value(environment, "RAYMOND_DIR").is_some_and(|dir| Path::new(dir) == self.dir)
    }
}

/// Returns the value of a variable in an environment in the system's format.
pub(super) fn value<'env>(environment: &'env [u8], name: &str) -> Option<&'env str> {
    environment.split(|&byte| byte == 0).find_map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        pair.strip_prefix(name)?.strip_prefix('=')
    })
}

/// Returns the path of the program: `program` itself if it is a path, else found on the search path.
pub fn locate(program: &str, search_path: Option<&OsStr>) -> Option<PathBuf> {
    if program.contains('/') {
        return is_executable(Path::new(program)).then(|| PathBuf::from(program));
    }
    std::env::split_paths(search_path?)
        .map(|dir| dir.join(program))
        .find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path)
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use raymond_model::id::{MessageId, SessionId};
    use raymond_model::model::ModelName;
    use raymond_model::turn_options::{EffortLevel, TurnOptions};

    fn shown(session: &Session, options: &ProcessOptions, settings: &Settings) -> String {
        arguments(session, options, (settings, &WorkflowFolders::at(Path::new("/w"))), false, None)
            .join(" ")
    }

    const DENIED: &str = "--disallowedTools AskUserQuestion,ScheduleWakeup,CronCreate";

    #[test]
    fn each_session_origin_has_its_flags() {
        let id = SessionId::new;
        let settings = Settings::default();
        let rest = format!("--permission-mode acceptEdits {DENIED}");
        let head = "-p --output-format stream-json --verbose --input-format stream-json --include-partial-messages";
        let none = ProcessOptions::default();
        let line = |session| shown(&session, &none, &settings);
        assert_eq!(line(Session::fresh(id("a"))), format!("{head} --session-id a {rest}"));
        assert_eq!(line(Session::resumed(id("a"), None)), format!("{head} --resume a {rest}"));
        let branch = Session::resumed(id("a"), None).branch(id("b"));
        assert_eq!(line(branch), format!("{head} --resume a --fork-session --session-id b {rest}"));
        let cut = Session::resumed(id("a"), Some(MessageId::new("m"))).branch(id("b"));
        assert!(line(cut).contains("--fork-session --session-id b --resume-session-at m"));
    }

    #[test]
    fn reusable_process_gets_replay_user_messages_flag() {
        let session = Session::fresh(SessionId::new("a"));
        let line = arguments(
            &session,
            &ProcessOptions::default(),
            (&Settings::default(), &WorkflowFolders::at(Path::new("/w"))),
            true,
            None,
        )
        .join(" ");
        assert!(line.starts_with(
            "-p --output-format stream-json --verbose --input-format stream-json --include-partial-messages --replay-user-messages --session-id a"
        ));
    }

    #[test]
    fn run_permission_and_claude_args_are_passed_to_process() {
        let settings = Settings {
            permission: RunPermission::SkipAll,
            claude_args: vec!["--effort".into(), "low".into()],
            ..Settings::default()
        };
        let haiku = ProcessOptions { model: Some(ModelName::HAIKU), ..ProcessOptions::default() };
        let line = shown(&Session::fresh(SessionId::new("a")), &haiku, &settings);
        assert!(line.ends_with(&format!(
            "--model haiku --dangerously-skip-permissions {DENIED} --effort low"
        )));
    }

    #[test]
    fn state_options_come_after_claude_args() {
        let settings =
            Settings { claude_args: vec!["--effort".into(), "low".into()], ..Settings::default() };
        let turn = TurnOptions {
            effort: Some(EffortLevel::High),
            permission_mode: Some(PermissionMode::Plan),
            disallowed_tools: Some(vec!["WebFetch".into()]),
            ..TurnOptions::default()
        };
        let options = ProcessOptions { model: None, turn };
        let line = shown(&Session::fresh(SessionId::new("a")), &options, &settings);
        let expected = format!(
            "--session-id a {DENIED} WebFetch --effort low --permission-mode plan --effort high"
        );
        assert!(line.ends_with(&expected), "{line}");
        let skips = Settings { permission: RunPermission::SkipAll, ..Settings::default() };
        let line = shown(&Session::fresh(SessionId::new("a")), &options, &skips);
        assert!(!line.contains("--dangerously-skip-permissions"), "{line}");
    }

    #[test]
    fn process_is_identified_by_marker_variables() {
        let marker =
            EnvironmentMarker { run: RunId::parse("r").expect("an id"), dir: "/x/.raymond".into() };
        let bytes: Vec<u8> = marker
            .variables("main-2-0", Some(&AgentId::main()))
            .iter()
            .flat_map(|(name, value)| format!("{name}={value}\0").into_bytes())
            .collect();
        assert_eq!(marker.process_of(&bytes), Some("main-2-0"));
        let other = EnvironmentMarker { dir: "/y/.raymond".into(), ..marker };
        assert_eq!(other.process_of(&bytes), None);
        assert_eq!(other.process_of(b""), None);
        let marker = EnvironmentMarker { dir: "/x/.raymond".into(), ..other.clone() };
        assert!(other.is_of_others(&bytes) && !marker.is_of_others(&bytes));
        assert!(!marker.is_of_others(b"") && !marker.is_of_others(b"PATH=/bin\0"));
        assert!(marker.is_of_others(b"RAYMOND_DETACHED=1\0"));
        let plugin = b"RAYMOND_RUN=r\0RAYMOND_DIR=/x/.raymond\0RAYMOND_PLUGIN=p\0";
        assert!(marker.is_of_others(plugin));
    }

    #[test]
    fn program_is_found_on_search_path() {
        assert_eq!(locate("sh", Some(OsStr::new("/nowhere:/bin"))), Some(PathBuf::from("/bin/sh")));
        assert_eq!(locate("sh", None), None);
        assert_eq!(locate("/bin/sh", None), Some(PathBuf::from("/bin/sh")));
        assert_eq!(locate("/etc/passwd", None), None);
    }
}
