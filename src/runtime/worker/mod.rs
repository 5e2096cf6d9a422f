//! A worker: it performs what supervisors ask its host for.

mod abandoned_runs;
mod busy_count;
mod hosted_run;
mod hosted_runner;
mod hosted_runs;
mod large_mail;
mod mail_batches;
mod options;
mod placed_results;
mod policy;
mod registration;
mod request_threads;
mod run_slot;
mod serve;
mod session_keeper;
mod transcripts;
mod waiting_turns;
mod work;

pub use abandoned_runs::{SupervisorLauncher, Takeover};
pub use options::WorkerOptions;
pub use policy::HostPolicy;
pub use serve::serve;
