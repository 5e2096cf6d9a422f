//! The library: a workflow, options and plug-ins go in, an outcome comes out.
//!
//! It connects the other modules, so that a program can do what the command line does. It has no flags and prints
//! nothing: plug-ins produce all output.

pub mod answerer;
pub mod branch;
mod builder;
pub mod check;
pub mod checked_workflow;
pub mod command_name;
pub mod comparison;
mod create;
pub mod directories;
pub mod error;
mod exchange;
pub mod graphs;
mod hosts;
pub mod observing;
mod plugins;
pub mod recording;
mod request;
mod resume;
mod root_capture;
pub mod run_facts;
pub mod seals;
pub mod sharing;
pub mod start_plan;
pub mod supervise;
pub mod trust;
pub mod worker;
pub mod workflow;
mod workflow_starter;

pub use answerer::{OTHER_SCRIPT, build_runner};
pub use builder::{Builder, Runtime};
pub use create::{PreparedRun, RunOutcome, create};
pub use directories::directory;
pub use error::Error;
pub use graphs::RunLauncher;
pub use plugins::{PlugIns, PluginOptions, replace_options};
pub use request::RunRequest;
pub use resume::{check_retry, resume};
pub use supervise::{InterruptReceiver, supervised};
pub use trust::RunStarter;
pub use workflow::{FIRST_STATE, Workflow, settings_of};
