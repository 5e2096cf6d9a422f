//! Runs and their agents as they look from outside, for the screens that follow them.

pub mod activity_text;
pub mod agent_entries;
pub mod inbox_view;
pub mod run_watcher;
