//! What is started for a turn: the program, its arguments, its environment. Pure.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::domain::id::{AgentId, RunId};
use crate::domain::money::Usd;
use crate::domain::session::{Origin, Session};
use crate::domain::settings::{Model, Permission, Settings};

/// The tool a run without a person cannot answer.
const NEVER: &str = "AskUserQuestion";

/// What a process may spend at the most, over all its turns: then they end with an error.
const MOST: &str = "--max-budget-usd";

/// What makes a process take its turns as messages, until there are no more.
const STREAMED: [&str; 2] = ["--input-format", "stream-json"];

/// What makes it repeat them, so that it shows which of them it answers.
const REPEATED: &str = "--replay-user-messages";

/// Has the program say whether its session runs or is idle: only the latter ends a turn.
const STATES: (&str, &str) = ("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1");

/// Has the program write a session to disk before it reports a turn's end, so that whoever goes on
/// with it then finds the whole turn.
const EAGER: (&str, &str) = ("CLAUDE_CODE_EAGER_FLUSH", "1");

/// The arguments of a process, which is `told` its turns, or reads the only one from a file. A prompt is not among them: it comes on stdin, where it has no limit.
#[must_use]
pub fn arguments(
    session: &Session,
    model: Option<Model>,
    settings: &Settings,
    told: bool,
    most: Option<Usd>,
) -> Vec<String> {
    let mut arguments: Vec<String> =
        ["-p", "--output-format", "stream-json", "--verbose"].map(str::to_owned).into();
    arguments.extend(STREAMED.map(str::to_owned));
    if told {
        arguments.push(REPEATED.to_owned());
    }
    arguments.extend(origin(session));
    if let Some(model) = model {
        arguments.extend(["--model".to_owned(), model.name().to_owned()]);
    }
    match &settings.permission {
        Permission::Mode(mode) => arguments.extend(["--permission-mode".to_owned(), mode.clone()]),
        Permission::SkipAll => arguments.push("--dangerously-skip-permissions".to_owned()),
    }
    arguments.extend(["--disallowedTools".to_owned(), NEVER.to_owned()]);
    let own = |argument: &String| argument.starts_with(MOST);
    if let Some(most) = most.filter(|most| *most > Usd::ZERO)
        && !settings.claude_args.iter().any(own)
    {
        arguments.extend([MOST.to_owned(), most.dollars().to_string()]);
    }
    arguments.extend(settings.claude_args.iter().cloned());
    arguments
}

fn origin(session: &Session) -> Vec<String> {
    let id = session.id.to_string();
    match &session.origin {
        Origin::Fresh => vec!["--session-id".to_owned(), id],
        Origin::Resumed => vec!["--resume".to_owned(), id],
        Origin::Branch { from, at } => {
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

/// What marks every process of a run, and of a turn, in its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// The run.
    pub run: RunId,
    /// The directory of all runs, as an absolute path.
    pub dir: PathBuf,
}

impl Marker {
    /// The variables that a process gets on top of the caller's environment. `process` is the name
    /// of its files; the agent is not known of one that is started ahead of its first turn.
    #[must_use]
    pub fn variables(&self, process: &str, agent: Option<&AgentId>) -> [(&'static str, String); 6] {
        [
            ("RAYMOND_RUN", self.run.to_string()),
            ("RAYMOND_DIR", self.dir.display().to_string()),
            ("RAYMOND_AGENT", agent.map(AgentId::to_string).unwrap_or_default()),
            ("RAYMOND_TURN", process.to_owned()),
            (EAGER.0, EAGER.1.to_owned()),
            (STATES.0, STATES.1.to_owned()),
        ]
    }

    /// The name of the files of the Claude Code process that a process belongs to, if its environment bears this run's mark.
    #[must_use]
    pub fn process_of<'env>(&self, environment: &'env [u8]) -> Option<&'env str> {
        if self.is_on(environment) { value(environment, "RAYMOND_TURN") } else { None }
    }

    /// The name of the plug-in that a process belongs to, if its environment bears this run's mark.
    #[must_use]
    pub fn plugin_of<'env>(&self, environment: &'env [u8]) -> Option<&'env str> {
        let of_turn = value(environment, "RAYMOND_TURN").is_some();
        if self.is_on(environment) && !of_turn {
            value(environment, "RAYMOND_PLUGIN")
        } else {
            None
        }
    }

    fn is_on(&self, environment: &[u8]) -> bool {
        value(environment, "RAYMOND_RUN") == Some(self.run.as_str())
            && value(environment, "RAYMOND_DIR").is_some_and(|dir| Path::new(dir) == self.dir)
    }
}

/// The value of a variable in an environment as the system shows it.
fn value<'env>(environment: &'env [u8], name: &str) -> Option<&'env str> {
    environment.split(|&byte| byte == 0).find_map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        pair.strip_prefix(name)?.strip_prefix('=')
    })
}

/// Where the program is: as it stands if it names a path, else on the search path.
#[must_use]
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
    use crate::domain::id::{MessageId, SessionId};

    fn shown(session: &Session, model: Option<Model>, settings: &Settings) -> String {
        arguments(session, model, settings, false, None).join(" ")
    }

    #[test]
    fn each_origin_has_its_flags() {
        let id = SessionId::new;
        let settings = Settings::default();
        let rest = "--permission-mode acceptEdits --disallowedTools AskUserQuestion";
        let head = "-p --output-format stream-json --verbose --input-format stream-json";
        let line = |session| shown(&session, None, &settings);
        assert_eq!(line(Session::fresh(id("a"))), format!("{head} --session-id a {rest}"));
        assert_eq!(line(Session::resumed(id("a"), None)), format!("{head} --resume a {rest}"));
        let branch = Session::resumed(id("a"), None).branch(id("b"));
        assert_eq!(line(branch), format!("{head} --resume a --fork-session --session-id b {rest}"));
        let cut = Session::resumed(id("a"), Some(MessageId::new("m"))).branch(id("b"));
        assert!(line(cut).contains("--fork-session --session-id b --resume-session-at m"));
    }

    #[test]
    fn a_process_that_stays_is_told_so() {
        let session = Session::fresh(SessionId::new("a"));
        let line = arguments(&session, None, &Settings::default(), true, None).join(" ");
        assert!(line.starts_with(
            "-p --output-format stream-json --verbose --input-format stream-json --replay-user-messages --session-id a"
        ));
    }

    #[test]
    fn permissions_and_further_arguments_are_passed_on() {
        let settings = Settings {
            permission: Permission::SkipAll,
            claude_args: vec!["--effort".into(), "low".into()],
            ..Settings::default()
        };
        let line = shown(&Session::fresh(SessionId::new("a")), Some(Model::Haiku), &settings);
        assert!(line.ends_with(
            "--model haiku --dangerously-skip-permissions --disallowedTools AskUserQuestion --effort low"
        ));
    }

    #[test]
    fn a_process_is_known_by_its_environment() {
        let marker = Marker { run: RunId::parse("r").expect("an id"), dir: "/x/.raymond".into() };
        let bytes: Vec<u8> = marker
            .variables("main-2-0", Some(&AgentId::main()))
            .iter()
            .flat_map(|(name, value)| format!("{name}={value}\0").into_bytes())
            .collect();
        assert_eq!(marker.process_of(&bytes), Some("main-2-0"));
        let other = Marker { dir: "/y/.raymond".into(), ..marker };
        assert_eq!(other.process_of(&bytes), None);
        assert_eq!(other.process_of(b""), None);
    }

    #[test]
    fn a_program_is_found_on_the_search_path() {
        assert_eq!(locate("sh", Some(OsStr::new("/nowhere:/bin"))), Some(PathBuf::from("/bin/sh")));
        assert_eq!(locate("sh", None), None);
        assert_eq!(locate("/bin/sh", None), Some(PathBuf::from("/bin/sh")));
        assert_eq!(locate("/etc/passwd", None), None);
    }
}
