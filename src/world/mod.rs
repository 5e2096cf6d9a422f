//! What graphs ask of the world: files, git, the web, programs; confined to the workspace.
//!
//! [`perform::WorkspaceExecutor`] carries out one [`Operation`](crate::domain::operation::Operation) after another.
//! What it does there is decided by the class of each: what only looks may be asked again, what writes
//! comes to the same when it is done twice, and for the rest there is a note in the run's own directory
//! before it begins and after it has ended, so that a crash in between is not taken for either.
//!
//! What programs ask is only looked up: the commits that work is compared with, and what has changed
//! since; see [`World::bases`](perform::WorkspaceExecutor::bases).
//!
//! Every path is below the workspace root, whatever `..` and symbolic links it has in it. Programs are
//! started by the room of the processes, without the keys of the account, and with the run's mark.

mod address;
mod append;
mod clone;
mod config;
mod edit;
mod fetch;
mod files;
pub mod gate;
mod git;
mod glob;
mod locks;
mod note;
mod once;
pub mod outcome;
mod paths;
pub mod perform;
pub mod place;
pub mod registry;
mod shared;
mod sparing;
mod tools;
pub mod trees;
mod web;
mod work;

#[cfg(test)]
mod tests;
