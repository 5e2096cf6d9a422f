//! `fake-claude`: a scripted stand-in for Claude Code, as fast as a process can be.
//!
//! It takes the flags raymond gives to the real program, reads the prompt from stdin and prints
//! stream-json. The environment says what it plays:
//!
//! - `FAKE_CLAUDE=FOLDER`: `script.json` there decides (see [`script`]), `calls.jsonl` tells what
//!   happened (see [`log`]), `sessions/` remembers who said what (see [`session`]).
//! - otherwise it logs nothing and answers `FAKE_CLAUDE_REPLY`, or repeats its prompt when that is
//!   not set: this is the process floor that benchmarks compare with.
//!
//! Where the real program's behaviour is known it is repeated to the letter, for a test that passes
//! against a kinder stand-in proves nothing.

mod behaviour;
mod flags;
mod log;
mod script;
mod session;
mod stream;

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use flags::Flags;
use script::Rule;
use session::Refusal;

/// The hidden argument of the process that outlives its parent.
const HELPER: &str = "--fake-helper";
/// Carries the chosen rule over the restart that makes SIGTERM ignored.
const CHOSEN: &str = "FAKE_CLAUDE_RULE";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    match arguments.first().map(String::as_str) {
        Some(HELPER) => return behaviour::outlive(),
        Some("--version") => return say("2.1.197 (Claude Code)\n"),
        _ => {}
    }
    match play(&arguments) {
        Ok(code) => code,
        Err(message) => complain(&message),
    }
}

fn play(arguments: &[String]) -> Result<ExitCode, String> {
    let flags = Flags::parse(arguments)?;
    let mut prompt = Vec::new();
    std::io::stdin()
        .read_to_end(&mut prompt)
        .map_err(|error| format!("fake-claude: stdin: {error}"))?;
    let prompt = String::from_utf8_lossy(&prompt).into_owned();
    match std::env::var_os("FAKE_CLAUDE") {
        Some(folder) => scripted(&PathBuf::from(folder), arguments, &flags, &prompt),
        None if prompt.is_empty() => Ok(ExitCode::SUCCESS),
        None => unscripted(&flags, prompt),
    }
}

/// Benchmark mode: one reply, no file is touched.
fn unscripted(flags: &Flags, prompt: String) -> Result<ExitCode, String> {
    let turn = stream::Turn {
        session: flags
            .session_id
            .clone()
            .or_else(|| flags.resume.clone())
            .unwrap_or_else(|| session::new_id(0)),
        uuid: session::new_id(1),
        model: flags.model.clone().unwrap_or_else(|| "opus".to_owned()),
        permission_mode: flags.permission_mode(),
    };
    let reply = std::env::var("FAKE_CLAUDE_REPLY").unwrap_or(prompt);
    let mut text = turn.init();
    text.extend(turn.assistant(&reply));
    text.extend(turn.result(&reply, 0.0));
    stream::write(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn scripted(
    folder: &Path,
    arguments: &[String],
    flags: &Flags,
    prompt: &str,
) -> Result<ExitCode, String> {
    let (index, rule) = choose(folder, prompt)?;
    if rule.ignore_term && std::env::var_os(CHOSEN).is_none() {
        return Err(restart_ignoring_term(folder, arguments, prompt, index));
    }
    let uuid = session::new_id(1);
    let opened = session::open(&folder.join("sessions"), flags, prompt, &uuid);
    log::started(folder, arguments, prompt, flags, opened.as_ref().ok())?;
    let turn = |session: &str| stream::Turn {
        session: session.to_owned(),
        uuid: uuid.clone(),
        model: rule
            .model
            .clone()
            .or_else(|| flags.model.clone())
            .unwrap_or_else(|| "opus".to_owned()),
        permission_mode: flags.permission_mode(),
    };
    let code = match opened {
        _ if prompt.is_empty() => 0,
        Ok(opened) => behaviour::perform(folder, &rule, &turn(&opened.id))?,
        Err(Refusal::Unknown(id)) => {
            stream::write(&turn(&id).no_such_session())?;
            1
        }
        Err(Refusal::Message(message)) => {
            complain(&message);
            1
        }
    };
    log::done(folder)?;
    Ok(ExitCode::from(code))
}

fn choose(folder: &Path, prompt: &str) -> Result<(usize, Rule), String> {
    let rules = script::load(folder)?;
    let chosen = std::env::var(CHOSEN).ok().and_then(|n| n.parse().ok());
    let index = match chosen {
        Some(index) => index,
        None => script::choose(folder, &rules, prompt)?,
    };
    let rule = rules.into_iter().nth(index);
    rule.map(|rule| (index, rule))
        .ok_or_else(|| format!("fake-claude: script.json has no rule {index}"))
}

/// An ignored signal stays ignored over `exec`, so a shell sets it and becomes this program again,
/// under the same process id. Returns only to say why that failed.
fn restart_ignoring_term(
    folder: &Path,
    arguments: &[String],
    prompt: &str,
    index: usize,
) -> String {
    let again = || -> std::io::Result<std::io::Error> {
        let copy = folder.join(format!("prompt-{}", std::process::id()));
        std::fs::write(&copy, prompt)?;
        let stdin = std::fs::File::open(&copy)?;
        std::fs::remove_file(&copy)?;
        Ok(Command::new("/bin/sh")
            .args(["-c", r#"trap "" TERM; exec "$0" "$@""#])
            .arg(std::env::current_exe()?)
            .args(arguments)
            .env(CHOSEN, index.to_string())
            .stdin(Stdio::from(stdin))
            .exec())
    };
    let (Ok(error) | Err(error)) = again();
    format!("fake-claude: cannot restart: {error}")
}

fn say(text: &str) -> ExitCode {
    match stream::write(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => complain(&message),
    }
}

fn complain(message: &str) -> ExitCode {
    // A closed stderr leaves nobody to tell.
    let _ = writeln!(std::io::stderr(), "{message}");
    ExitCode::FAILURE
}
