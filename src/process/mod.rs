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
mod api_error;
mod attach;
pub mod cancellation;
pub mod captured_output;
pub mod child;
pub mod classify;
pub mod claude;
pub mod claude_version;
pub mod command;
pub mod config_files;
pub mod copy_check;
pub mod ending_processes;
pub mod file_changes;
pub mod follow;
pub mod foreground_program;
pub mod helper_environment;
pub mod host;
mod launch;
pub mod message;
pub mod model_times;
pub mod no_answer;
pub mod notice;
pub mod on_event_command;
pub mod outcome;
pub mod owner;
pub mod partial_message_removal;
pub mod plugin_process;
pub mod pool;
pub mod process_counts;
pub mod protected;
pub mod registry;
pub mod said_in_session;
pub mod scripted_stream;
pub mod session_files;
mod session_recap;
mod start_failure;
pub mod startup;
mod stderr_file;
pub mod stream;
mod sweep;
pub mod taken_replies;
mod tool_calls;
pub mod transcript;
pub mod turn_arguments;
mod turn_end;
pub mod turn_news;
pub mod turn_proof;
pub mod turn_tail;
pub mod turn_transcript;
pub mod usage_limit;
mod warnings;
pub mod worker;
pub mod worker_process;
pub mod worker_slot;
pub mod working_dirs;
pub mod write_watch;
