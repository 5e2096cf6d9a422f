//! A worker: it performs what supervisors ask its host for.

mod abandoned_runs;
mod hosted_run;
mod hosted_runner;
mod hosted_runs;
mod mail_batches;
mod policy;
mod registration;
mod request_threads;
mod serve;
mod session_keeper;
mod transcripts;
mod work;

pub use abandoned_runs::{SupervisorLauncher, Takeover};
pub use policy::HostPolicy;
pub use registration::WorkerOptions;
pub use serve::serve;
