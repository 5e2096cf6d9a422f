//! Runs that several machines share: their log in an engine, and the copy on this machine.

mod claimed_run;
mod mirror;
mod run_engine;
mod transcripts;

pub use claimed_run::{ClaimedRun, SilentHosts, silences};
pub(super) use claimed_run::{ToldError, until_mended, until_reached};
pub use mirror::{EngineMirror, MirrorThread};
pub(super) use mirror::{FactThread, facts_of_run};
pub(super) use mirror::{HostedCopy, PageSize, fetch_content, host_copy, put_content};
pub use mirror::{facts_of, take_over};
pub use run_engine::{CommandRole, HeldRun, RunEngine};
pub(super) use run_engine::{
    LEASE_TIME, SharedFiles, apart, fetch_mail, first_home, publish, settings_here, sighting,
    store_if_large,
};
pub use transcripts::{TurnPlace, transcripts};
