//! The library: a workflow, options and plug-ins go in, an outcome comes out.
//!
//! It connects the other modules, so that a program can do what the command line does. It knows no flags and
//! prints nothing: plug-ins show whatever is visible.

mod answerer;
pub mod branch;
mod branch_draft;
pub mod branch_error;
pub mod branch_point;
pub mod branch_request;
mod branch_sessions;
mod branch_worktrees;
mod builder;
pub mod check;
pub mod comparison;
mod create;
pub mod directories;
mod error;
mod fact_activity;
mod file_differences;
mod given_reply;
pub mod graphs;
mod hosts;
mod inputs;
mod local_executor;
mod operation_checks;
mod outcome;
mod own_types;
mod plugin_programs;
mod plugins;
mod preflight;
mod prepared_run;
mod published_label;
pub mod reachable_errors;
pub mod recording;
pub mod replay;
mod request;
mod resume;
pub mod run_facts;
mod run_launcher;
pub mod run_root;
pub mod seals;
mod settings;
pub mod sharing;
pub mod start_plan;
mod supervise;
pub mod trust;
pub mod worker;
mod workflow;
pub mod workflow_errors;
mod workflow_starter;

pub use answerer::{OTHER_SCRIPT, build_runner};
pub use builder::{Builder, Runtime};
pub use create::create;
pub use directories::directory;
pub use error::Error;
pub use outcome::RunOutcome;
pub use plugin_programs::replace_own;
pub use plugins::{PlugIns, PluginOptions};
pub use prepared_run::PreparedRun;
pub use request::RunRequest;
pub use resume::{check_retry, resume};
pub use run_launcher::RunLauncher;
pub use settings::settings_of;
pub use supervise::{InterruptReceiver, supervised};
pub use trust::RunStarter;
pub use workflow::{FIRST_STATE, Workflow};
