//! Runs and their agents as they look from outside, for the screens that follow them.

pub mod agent_entries;
pub mod run_watcher;
