//! The operations of graphs on the outside world: files, git, the web, programs; confined to the workspace.
//!
//! [`perform::WorkspaceExecutor`] executes one [`Operation`](raymond_model::operation::Operation) after another.
//! Reads are repeatable, and most writes are idempotent. Any other operation is noted in the run's own directory
//! before it begins and after it has ended, so that a crash in between is detected.
//!
//! Programs only read: the commits that work is compared with, and the changes
//! since; see [`WorkspaceExecutor::bases`](perform::WorkspaceExecutor::bases).
//!
//! Every path is below the workspace root, even with `..` and symbolic links in it. Programs are
//! started by the module of the processes, without the keys of the account, and with the run's mark.

mod append;
mod changes_since_start;
pub mod context;
pub mod custom_types;
pub mod exchange;
pub mod files;
pub mod gate;
mod git;
mod glob;
mod on_disk;
pub mod outcome;
mod packs;
pub mod perform;
pub mod recorded_files;
mod shell;
mod web;
pub mod worktrees;

#[cfg(test)]
mod tests;
