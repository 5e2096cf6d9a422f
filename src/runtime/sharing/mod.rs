//! Runs that several machines share: their log in an engine, and the copy on this machine.

mod claimed_run;
mod commands;
mod contents;
mod copy;
mod engine_facts;
mod engine_log;
mod large_mail;
mod lease_keeper;
mod mirror;
mod page_size;
mod patience;
mod publish;
mod run_engine;
mod shared_terms;
mod silent_hosts;
mod told_error;
mod transcripts;

pub use claimed_run::ClaimedRun;
pub(super) use contents::{fetch_content, put_content};
pub use copy::take_over;
pub(super) use copy::{HostedCopy, host_copy};
pub use engine_facts::facts_of;
pub(super) use engine_facts::{FactThread, facts_of_run};
pub(super) use large_mail::{fetch_mail, store_if_large};
pub use mirror::{EngineMirror, MirrorThread};
pub(super) use page_size::PageSize;
pub(super) use patience::{until_mended, until_reached};
pub(super) use publish::{SharedFiles, first_home, publish, sighting};
pub use run_engine::{CommandRole, HeldRun, RunEngine};
pub(super) use run_engine::{LEASE_TIME, apart, settings_here};
pub use silent_hosts::{SilentHosts, silences};
pub(super) use told_error::ToldError;
pub use transcripts::{TurnPlace, transcripts};
