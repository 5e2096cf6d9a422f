//! Runs that several machines share: their log in an engine, and the copy on this machine.

mod claimed_run;
mod commands;
mod copy;
mod engine_log;
mod mirror;
mod publish;
mod run_engine;
mod silent_hosts;
mod transcripts;

pub use claimed_run::ClaimedRun;
pub(super) use claimed_run::{until_mended, until_reached};
pub(super) use commands::{fetch_mail, store_if_large};
pub use copy::take_over;
pub(super) use copy::{HostedCopy, host_copy};
pub(super) use copy::{fetch_content, put_content};
pub(super) use mirror::PageSize;
pub use mirror::facts_of;
pub use mirror::{EngineMirror, MirrorThread};
pub(super) use mirror::{FactThread, facts_of_run};
pub(super) use publish::{SharedFiles, first_home, publish, sighting};
pub use run_engine::{CommandRole, HeldRun, RunEngine};
pub(super) use run_engine::{LEASE_TIME, apart, settings_here};
pub(super) use silent_hosts::ToldError;
pub use silent_hosts::{SilentHosts, silences};
pub use transcripts::{TurnPlace, transcripts};
