//! `fake-claude`: a scripted stand-in for Claude Code, as fast as a process can be.
//!
//! It takes the flags that raymond gives to the real program, reads the prompt from stdin (in [`warm`] mode
//! one line for each turn) and prints stream-json. The environment decides how it answers:
//!
//! - With `FAKE_CLAUDE=FOLDER`, `script.json` in the folder has the rules (see [`script`]), `calls.jsonl` is
//!   the log (see [`log`]), and `sessions/` has the prompts of each session (see [`session`]).
//! - Otherwise it logs nothing, and answers `FAKE_CLAUDE_REPLY`, or repeats its prompt if that is not set.
//!   This is the process floor that benchmarks compare with.
//!
//! The known behaviour of the real program is repeated exactly, because a test that passes with a kinder
//! stand-in proves nothing.

mod asked;
mod behaviour;
mod flags;
mod floor;
mod helper;
mod inbox;
mod log;
mod refused;
mod script;
mod session;
mod stream;
mod term;
mod turn;
mod usage;
mod warm;

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use flags::ClaudeFlags;
use turn::{FakeProcess, TurnRequest};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let played = match arguments.first().map(String::as_str) {
        Some(helper::STAY_FLAG) => Ok(helper::outlive()),
        Some(helper::DETACH_FLAG) => helper::detach(&arguments),
        Some("--version") => stream::write(b"2.1.197 (Claude Code)\n").map(|()| ExitCode::SUCCESS),
        _ => play(arguments),
    };
    played.unwrap_or_else(|message| complain(&message))
}

fn play(arguments: Vec<String>) -> Result<ExitCode, String> {
    let flags = ClaudeFlags::parse(&arguments)?;
    let folder = std::env::var_os("FAKE_CLAUDE").map(PathBuf::from);
    let process = folder.map(|folder| FakeProcess { folder, arguments, flags: flags.clone() });
    if flags.is_warm() {
        return warm::play(process.as_ref(), &flags);
    }
    let mut prompt = Vec::new();
    std::io::stdin()
        .read_to_end(&mut prompt)
        .map_err(|error| format!("fake-claude: stdin: {error}"))?;
    let prompt = String::from_utf8_lossy(&prompt).into_owned();
    match process {
        Some(process) => {
            let played = process.play(&TurnRequest::alone(&prompt, &flags))?;
            return Ok(ExitCode::from(played.end.code()));
        }
        None if prompt.is_empty() => {}
        None => floor::answer(&floor::turn(&flags), prompt)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn complain(message: &str) -> ExitCode {
    // If stderr is closed, there is no reader.
    let _ = writeln!(std::io::stderr(), "{message}");
    ExitCode::FAILURE
}
