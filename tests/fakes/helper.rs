//! Processes that outlive the turn, like a server that a tool started: they just hold what they
//! inherited. Nothing ends them but their own short life, or whoever owns the turn.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use crate::script::Rule;
use crate::{log, term};

/// The hidden argument of the process that outlives its parent.
pub(crate) const STAY: &str = "--fake-helper";
/// The hidden argument of the process that puts one out of reach; the pid to log it under follows.
pub(crate) const DETACH: &str = "--fake-detach";

/// The argument after that of one whose child has no environment.
const HIDDEN: &str = "hidden";

const LIFE: Duration = Duration::from_mins(2);

/// Leaves behind what the rule says. Each is in the log when this returns.
pub(crate) fn leave(folder: &Path, rule: &Rule) -> Result<(), String> {
    let pid = std::process::id();
    if rule.helper {
        let helper = myself(rule).and_then(|mut program| stay(&mut program)).map_err(say)?;
        log::helper(folder, pid, helper)?;
    }
    if let Some(script) = &rule.run {
        let ended = Command::new("/bin/sh").args(["-c", script]).stdout(Stdio::null()).status();
        if !ended.map_err(say)?.success() {
            return Err(format!("fake-claude: `{script}` failed"));
        }
    }
    if rule.detach || rule.hide {
        let started = myself(rule).and_then(|mut program| {
            let hidden = if rule.hide { HIDDEN } else { "" };
            program.args([DETACH, &pid.to_string(), hidden]).stdin(Stdio::null()).status()
        });
        if !started.map_err(say)?.success() {
            return Err("fake-claude: helper: it could not be detached".to_owned());
        }
    }
    Ok(())
}

/// The life of the process between: a session of its own, a child in it, and gone.
pub(crate) fn detach(arguments: &[String]) -> Result<ExitCode, String> {
    let folder = std::env::var_os("FAKE_CLAUDE").map(PathBuf::from).unwrap_or_default();
    let of = arguments.get(1).and_then(|pid| pid.parse().ok()).unwrap_or_default();
    rustix::process::setsid().map_err(|error| say(error.into()))?;
    let mut program = std::env::current_exe().map(Command::new).map_err(say)?;
    if arguments.get(2).is_some_and(|hidden| hidden == HIDDEN) {
        program.env_clear().stdout(Stdio::null()).stderr(Stdio::null());
    }
    let helper = stay(&mut program).map_err(say)?;
    log::helper(&folder, of, helper)?;
    Ok(ExitCode::SUCCESS)
}

/// The life of the helper.
pub(crate) fn outlive() -> ExitCode {
    std::thread::sleep(LIFE);
    ExitCode::SUCCESS
}

fn myself(rule: &Rule) -> std::io::Result<Command> {
    let program = std::env::current_exe()?;
    Ok(if rule.ignore_term { term::deaf(&program) } else { Command::new(program) })
}

fn stay(program: &mut Command) -> std::io::Result<u32> {
    program.arg(STAY).stdin(Stdio::null()).spawn().map(|child| child.id())
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn say(error: std::io::Error) -> String {
    format!("fake-claude: helper: {error}")
}
