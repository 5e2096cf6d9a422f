//! Processes that outlive the turn, like a server that a tool started. They only hold what they inherited,
//! and end after a short time, unless the owner of the turn ends them first.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use crate::script::ScriptRule;
use crate::{log, term};

/// The hidden argument of the process that outlives its parent.
pub(crate) const STAY_FLAG: &str = "--fake-helper";
/// The hidden argument of the process that detaches a helper; the pid to log the helper under follows.
pub(crate) const DETACH_FLAG: &str = "--fake-detach";

/// The next argument, if the helper has no environment.
const HIDDEN_FLAG: &str = "hidden";

const HELPER_LIFETIME: Duration = Duration::from_mins(2);

/// Starts the helpers of the rule. Each is in the log when this returns.
pub(crate) fn start_helpers(folder: &Path, rule: &ScriptRule) -> Result<(), String> {
    let pid = std::process::id();
    if rule.helper {
        let helper = own_command(rule).and_then(|mut program| stay(&mut program)).map_err(say)?;
        log::helper(folder, pid, helper)?;
    }
    if let Some(script) = &rule.run {
        let ended = Command::new("/bin/sh").args(["-c", script]).stdout(Stdio::null()).status();
        if !ended.map_err(say)?.success() {
            return Err(format!("fake-claude: `{script}` failed"));
        }
    }
    if rule.detach || rule.hide {
        let started = own_command(rule).and_then(|mut program| {
            let hidden = if rule.hide { HIDDEN_FLAG } else { "" };
            program.args([DETACH_FLAG, &pid.to_string(), hidden]).stdin(Stdio::null()).status()
        });
        if !started.map_err(say)?.success() {
            return Err("fake-claude: helper: it could not be detached".to_owned());
        }
    }
    Ok(())
}

/// Detaches a helper: begins a session of its own and starts the helper in it; then this process ends.
pub(crate) fn detach(arguments: &[String]) -> Result<ExitCode, String> {
    let folder = std::env::var_os("FAKE_CLAUDE").map(PathBuf::from).unwrap_or_default();
    let of = arguments.get(1).and_then(|pid| pid.parse().ok()).unwrap_or_default();
    rustix::process::setsid().map_err(|error| say(error.into()))?;
    let mut program = std::env::current_exe().map(Command::new).map_err(say)?;
    if arguments.get(2).is_some_and(|hidden| hidden == HIDDEN_FLAG) {
        program.env_clear().stdout(Stdio::null()).stderr(Stdio::null());
    }
    let helper = stay(&mut program).map_err(say)?;
    log::helper(&folder, of, helper)?;
    Ok(ExitCode::SUCCESS)
}

/// Waits for the whole lifetime of a helper.
pub(crate) fn outlive() -> ExitCode {
    std::thread::sleep(HELPER_LIFETIME);
    ExitCode::SUCCESS
}

fn own_command(rule: &ScriptRule) -> std::io::Result<Command> {
    let program = std::env::current_exe()?;
    Ok(if rule.ignore_term { term::command_ignoring_term(&program) } else { Command::new(program) })
}

fn stay(program: &mut Command) -> std::io::Result<u32> {
    program.arg(STAY_FLAG).stdin(Stdio::null()).spawn().map(|child| child.id())
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn say(error: std::io::Error) -> String {
    format!("fake-claude: helper: {error}")
}
