//! The library: a workflow, options and plug-ins go in, an outcome comes out.
//!
//! It connects the other modules, so that a program can do what the command line does. It knows no flags and
//! prints nothing: plug-ins show whatever is visible.

mod answerer;
pub mod attachment;
pub mod branch;
pub mod branch_draft;
pub mod branch_point;
mod builder;
pub mod check;
pub mod checked_workflow;
pub mod command_name;
pub mod comparison;
mod create;
pub mod directories;
pub mod error;
mod exchange;
pub mod given_reply;
pub mod graphs;
mod hosts;
mod local_executor;
pub mod observing;
mod plugin_programs;
mod plugins;
pub mod recording;
pub mod replay;
mod resume;
mod root_capture;
pub mod run_facts;
pub mod seals;
pub mod sharing;
pub mod start_plan;
mod supervise;
pub mod trust;
pub mod worker;
pub mod workflow;
mod workflow_starter;

pub use answerer::{OTHER_SCRIPT, build_runner};
pub use builder::{Builder, Runtime};
pub use create::{PreparedRun, RunOutcome, RunRequest, create};
pub use directories::directory;
pub use error::Error;
pub use local_executor::RunLauncher;
pub use plugin_programs::replace_own;
pub use plugins::{PlugIns, PluginOptions};
pub use resume::{check_retry, resume};
pub use supervise::{InterruptReceiver, supervised};
pub use trust::RunStarter;
pub use workflow::{FIRST_STATE, Workflow, settings_of};
