//! Programs: checks for one on the PATH, checks for a module of python3, and runs commands in a shell.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::at_most_once::run_at_most_once;
use super::context::{OperationContext, OperationProgram, complaint};
use super::outcome::OperationError;
use crate::process::child::exit::ProcessExit;
use crate::process::command::locate;

/// The longest time that a command may take.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(30);

/// The longest time that python3 may take to look for a module.
const MODULE_SEARCH_TIMEOUT: Duration = Duration::from_mins(1);

/// The number of bytes that are kept of the beginning of a command's stdout, and of its stderr.
const MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// The number of characters of a command that are shown.
const MAX_SHOWN_CHARS: usize = 60;

/// The script that looks for a module as `import` would, without running the module or the packages around it.
const FIND: &str = "
import sys
path, spec, name = None, None, ''
for part in sys.argv[1].split('.'):
    name = name + '.' + part if name else part
    if name in sys.modules:
        spec = True
        path = getattr(sys.modules[name], '__path__', None)
        continue
    if '.' in name and path is None:
        sys.exit(1)
    found = (finder.find_spec(name, path, None) for finder in sys.meta_path)
    spec = next((spec for spec in found if spec is not None), None)
    if spec is None:
        sys.exit(1)
    path = spec.submodule_search_locations
";

/// Returns whether a program is on the PATH.
pub(super) fn is_available(shared: &OperationContext, tool: &str) -> Result<bool, String> {
    if tool.trim().is_empty() || tool.contains(['/', '\0']) {
        return Err(format!("{tool:?} is no name of a program on the PATH"));
    }
    Ok(locate(tool, shared.place.path()).is_some())
}

/// Returns whether python3 can import a module; false without python3.
pub(super) async fn has_module(
    shared: &OperationContext,
    stem: &str,
    module: &str,
) -> Result<Value, OperationError> {
    let is_name = |part: &str| {
        let letter = |c: char| c == '_' || c.is_alphanumeric();
        part.chars().all(letter) && part.chars().next().is_some_and(|c| !c.is_numeric())
    };
    if !module.split('.').all(is_name) {
        return Err(
            format!("{module:?} is no name of a module, such as `yaml` or `os.path`").into()
        );
    }
    if !is_available(shared, "python3")? {
        return Ok(Value::Bool(false));
    }
    let run = OperationProgram {
        stem,
        program: "python3",
        arguments: ["-c", FIND, module].map(Into::into).into(),
        cwd: shared.root().to_owned(),
        environment: shared.environment(),
        longest: MODULE_SEARCH_TIMEOUT,
        kept: 0,
    };
    let _permit = shared.permit().await?;
    let ended = shared.run(run).await?;
    match ended.exit {
        ProcessExit::Code(0) => Ok(Value::Bool(true)),
        ProcessExit::Code(1) if ended.stderr.last_lines(1).is_empty() => Ok(Value::Bool(false)),
        exit => {
            let reason = complaint(&ended.stderr);
            Err(format!("python3 cannot look for `{module}`: it {exit}{reason}").into())
        }
    }
}

/// Runs a command in a shell, and returns `{exit_code, stdout, stderr}`.
pub(super) async fn shell(
    shared: &Arc<OperationContext>,
    stem: &str,
    command: &str,
    again: bool,
) -> Result<Value, OperationError> {
    if command.trim().is_empty() {
        return Err("the command is empty".to_owned().into());
    }
    let what = format!("the command `{}`", shown(command));
    let run = OperationProgram {
        stem,
        program: "sh",
        arguments: ["-c", command].map(Into::into).into(),
        cwd: shared.root().to_owned(),
        environment: shared.environment(),
        longest: COMMAND_TIMEOUT,
        kept: MAX_OUTPUT_BYTES,
    };
    let work = async {
        let ended = shared.run(run).await?;
        if ended.exit != ProcessExit::Code(0) {
            let reason = complaint(&ended.stderr);
            let stdout = match complaint(&ended.stdout) {
                empty if empty.is_empty() => empty,
                lines => format!(" (stdout{lines})"),
            };
            return Err(format!("{what} {}{reason}{stdout}", ended.exit).into());
        }
        Ok(json!({
            "exit_code": 0,
            "stdout": ended.stdout.text(),
            "stderr": ended.stderr.text(),
        }))
    };
    // The permit comes before the note, because an operation that still waits has not begun.
    let _permit = shared.permit().await?;
    run_at_most_once(shared, stem, again, &what, work).await
}

/// Returns the beginning of a command, on one line.
fn shown(command: &str) -> String {
    let line = command.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
