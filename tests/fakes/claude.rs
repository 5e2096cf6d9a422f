//! `fake-claude`: a scripted stand-in for Claude Code, as fast as a process can be.
//!
//! It takes the flags raymond gives to the real program, reads the prompt from stdin (a line for
//! each turn in [`warm`] mode) and prints stream-json. The environment says what it plays:
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

use flags::Flags;
use turn::{Asked, Process};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let played = match arguments.first().map(String::as_str) {
        Some(helper::STAY) => Ok(helper::outlive()),
        Some(helper::DETACH) => helper::detach(&arguments),
        Some("--version") => stream::write(b"2.1.197 (Claude Code)\n").map(|()| ExitCode::SUCCESS),
        _ => play(arguments),
    };
    played.unwrap_or_else(|message| complain(&message))
}

fn play(arguments: Vec<String>) -> Result<ExitCode, String> {
    let flags = Flags::parse(&arguments)?;
    let folder = std::env::var_os("FAKE_CLAUDE").map(PathBuf::from);
    let process = folder.map(|folder| Process { folder, arguments, flags: flags.clone() });
    if flags.warm() {
        return warm::play(process.as_ref(), &flags);
    }
    let mut prompt = Vec::new();
    std::io::stdin()
        .read_to_end(&mut prompt)
        .map_err(|error| format!("fake-claude: stdin: {error}"))?;
    let prompt = String::from_utf8_lossy(&prompt).into_owned();
    match process {
        Some(process) => {
            let played = process.play(&Asked::alone(&prompt, &flags))?;
            return Ok(ExitCode::from(played.end.code()));
        }
        None if prompt.is_empty() => {}
        None => floor::answer(&floor::turn(&flags), prompt)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn complain(message: &str) -> ExitCode {
    // A closed stderr leaves nobody to tell.
    let _ = writeln!(std::io::stderr(), "{message}");
    ExitCode::FAILURE
}
