//! Executes the operations of a graph on files, and checks for programs.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

use crate::context::{OperationContext, OperationProgram, blocking, complaint};
use crate::files;
use crate::glob::{FileAccess, glob, glob_exists, resolve};
use crate::outcome::OperationError;
use raymond_agents::child::ProcessExit;
use raymond_agents::command::locate;
use raymond_model::operation::Operation;

/// The size in bytes up to which files are read on the current thread: another thread would cost more.
const SMALL: u64 = 64 * 1024;

/// Does work on files for an operation, on a separate thread. The work gets the stem of its drafts. `turn` is held
/// until the work has ended.
pub(super) async fn on_disk(
    shared: &Arc<OperationContext>,
    stem: &str,
    turn: Option<OwnedMutexGuard<()>>,
    work: impl FnOnce(&OperationContext, &str) -> Result<Value, OperationError> + Send + 'static,
) -> Result<Value, OperationError> {
    // Runs that share a working directory have agents and steps of the same names.
    let stem = format!("{}-{stem}", shared.place.marker.run);
    let work = move |shared: &OperationContext| {
        let _turn = turn;
        work(shared, &stem)
    };
    blocking(shared, work).await?
}

/// Executes an operation that is too quick to need another thread; `None` for others.
pub(super) fn perform_inline(
    shared: &OperationContext,
    operation: &Operation,
) -> Option<Result<Value, String>> {
    let root = shared.root();
    let answer = match operation {
        Operation::FileExists { path } => files::is_file(root, path),
        Operation::DirectoryExists { path } => files::is_directory(root, path),
        Operation::AnyFileExists { paths } => {
            paths.iter().try_fold(false, |found, path| Ok(found || files::is_file(root, path)?))
        }
        Operation::ToolAvailable { tool } => is_available(shared, tool),
        Operation::ReadFile { path } => {
            let found = resolve(root, path, FileAccess::Read).ok()?;
            let is_small = |size: u64| size <= SMALL;
            let small = std::fs::metadata(found).is_ok_and(|file| is_small(file.len()));
            return small.then(|| files::read(root, path).map(Value::String));
        }
        _ => return None,
    };
    Some(answer.map(Value::Bool))
}

/// Executes an operation on files.
pub(super) fn perform_on_disk(
    shared: &OperationContext,
    stem: &str,
    operation: Operation,
) -> Result<Value, OperationError> {
    let root = shared.root();
    let done = |()| Value::Null;
    let value = match operation {
        Operation::ReadFile { path } => files::read(root, &path).map(Value::String)?,
        Operation::GlobExists { pattern } => glob_exists(root, &pattern).map(Value::Bool)?,
        Operation::GlobFiles { pattern } => glob(root, &pattern).map(Value::from)?,
        Operation::GlobCount { pattern } => glob(root, &pattern).map(|found| found.len().into())?,
        Operation::WriteFile { path, content } => {
            files::write(root, &path, &content, stem).map(done)?
        }
        Operation::CacheWebContent { content, dest } => {
            files::write(root, &dest, &content, stem).map(|()| Value::String(dest))?
        }
        Operation::CreateDirectory { path } => files::create_directory(root, &path).map(done)?,
        Operation::DeleteFile { path } => files::delete(root, &path).map(done)?,
        // These operations are quick, start programs, reach other machines, or are of another program or a pack.
        Operation::FileExists { .. }
        | Operation::DirectoryExists { .. }
        | Operation::AnyFileExists { .. }
        | Operation::ToolAvailable { .. }
        | Operation::PythonModuleAvailable { .. }
        | Operation::GetSha { .. }
        | Operation::GitFetch { .. }
        | Operation::GitPull { .. }
        | Operation::CloneRepo { .. }
        | Operation::WebFetch { .. }
        | Operation::AppendToFile { .. }
        | Operation::BashExec(_)
        | Operation::BashCheck { .. }
        | Operation::RunScript { .. }
        | Operation::Own { .. }
        | Operation::Pack(_) => {
            return Err(format!("nothing on the disk does {}", operation.name()).into());
        }
    };
    Ok(value)
}

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
