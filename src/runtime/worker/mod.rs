//! A worker: it performs what supervisors ask its host for.

mod hosted_runner;
mod mail_batches;
mod policy;
mod registration;
mod serve;

pub use policy::HostPolicy;
pub use registration::WorkerOptions;
pub use registration::{SupervisorLauncher, Takeover};
pub use serve::serve;
