//! All processes: Claude Code, plug-ins, commands of hooks, programs of graphs.
//!
//! This room alone starts, follows and ends them.
//!
//! A process writes its stream into a file, so it does not depend on the runtime that started it: if
//! that dies, the turn continues to its end, and the next runtime finds either the running process or
//! its finished transcript. A process that serves further turns of its session gets them on a
//! pipe; when that breaks it ends after its current turn.

mod acquire;
pub mod ancestry;
pub mod approvals;
pub mod attach;
pub mod background;
pub mod captured_output;
pub mod child;
pub mod claude;
pub mod command;
pub mod config_files;
pub mod dialogue;
pub mod follow;
pub mod host;
pub mod launch;
pub mod on_event_command;
mod outcome;
pub mod plugin_process;
mod pool;
pub mod process_runner;
pub mod registry;
pub mod runner;
pub mod scripted_stream;
mod sweep;
mod tool_calls;
pub mod transcript;
pub mod turn_event;
pub mod turn_progress;
pub mod worker;
mod worker_slot;
pub mod working_dirs;
mod write_watch;
