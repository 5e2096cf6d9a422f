//! Programs: checks for one on the PATH, and for a module of python3.

use std::time::Duration;

use serde_json::Value;

use super::context::{OperationContext, OperationProgram, complaint};
use super::outcome::OperationError;
use crate::process::child::exit::ProcessExit;
use crate::process::command::locate;

/// The longest time that python3 may take to look for a module.
const MODULE_SEARCH_TIMEOUT: Duration = Duration::from_mins(1);

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
        return Err(format!("{tool:?} is not the name of a program on the PATH"));
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
            format!("{module:?} is not the name of a module, such as `yaml` or `os.path`").into()
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
