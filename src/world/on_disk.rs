//! Executes the operations of a graph on files.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

use super::config;
use super::context::{OperationContext, blocking};
use super::glob::{glob, glob_exists};
use super::outcome::OperationError;
use super::paths::{FileAccess, resolve};
use super::{files, marketplace, plugins, retention, tools};
use crate::domain::operation::Operation;

/// The size in bytes up to which files are read on the current thread: another thread would cost more.
const SMALL: u64 = 64 * 1024;

/// Executes an operation on files, on a thread of its own. `turn` is held until it has ended.
pub(super) async fn on_disk(
    shared: &Arc<OperationContext>,
    stem: &str,
    operation: &Operation,
    turn: Option<OwnedMutexGuard<()>>,
) -> Result<Value, OperationError> {
    let operation = operation.clone();
    // Runs that share a working directory have agents and steps of the same names.
    let stem = format!("{}-{stem}", shared.place.marker.run);
    let work = move |shared: &OperationContext| {
        let _turn = turn;
        perform_on_disk(shared, &stem, operation)
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
        Operation::ConfigExists => files::is_file(root, config::path(root)),
        Operation::IndexExists => files::is_file(root, config::index(root)),
        Operation::FileExists { path } => files::is_file(root, path),
        Operation::DirectoryExists { path } => files::is_directory(root, path),
        Operation::AnyFileExists { paths } => {
            paths.iter().try_fold(false, |found, path| Ok(found || files::is_file(root, path)?))
        }
        Operation::SourceCloned { id } => {
            config::clone_of(id).and_then(|path| files::is_directory(root, &path))
        }
        Operation::ToolAvailable { tool } => tools::is_available(shared, tool),
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
fn perform_on_disk(
    shared: &OperationContext,
    stem: &str,
    operation: Operation,
) -> Result<Value, OperationError> {
    let root = shared.root();
    let done = |()| Value::Null;
    let value = match operation {
        Operation::IndexIsPlaceholder => config::index_is_placeholder(root).map(Value::Bool)?,
        Operation::SourceExists { id } => config::source_exists(root, &id).map(Value::Bool)?,
        Operation::ReadConfig => config::read(root)?,
        Operation::ReadFile { path } => files::read(root, &path).map(Value::String)?,
        Operation::GlobExists { pattern } => glob_exists(root, &pattern).map(Value::Bool)?,
        Operation::DiscoverPlugins { pattern } => plugins::installed(root, &pattern, None)?,
        Operation::DiscoverUserPlugins { pattern, home, user } => {
            plugins::installed(root, &pattern, user.then_some(&*home))?
        }
        Operation::WriteConfig { config } => config::write(root, config, stem).map(done)?,
        Operation::UpdateConfigIndexMetadata { fields } => {
            config::update_index(root, fields, stem).map(done)?
        }
        Operation::UpdateMarketplaceJson { marketplace_path, plugin_name, plugin_path } => {
            marketplace::enter(root, &marketplace_path, &plugin_name, &plugin_path, stem)
                .map(done)?
        }
        Operation::ApplyLogRetention { location, since, count } => {
            retention::remove_old(root, &location, since.as_deref(), count).map(Value::from)?
        }
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
        Operation::WriteConfigEntry { path, value } => {
            config::write_entry(root, &path, value, stem).map(done)?
        }
        Operation::UpdateSource { id, fields } => {
            config::update_source(root, &id, fields, stem).map(done)?
        }
        Operation::AddSource { spec } => config::add_source(root, spec, stem).map(done)?,
        // These operations are quick, start programs, reach other machines, or were added by another program.
        _ => {
            return Err(format!("nothing on the disk does {}", operation.name()).into());
        }
    };
    Ok(value)
}
