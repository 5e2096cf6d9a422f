//! Runs that several machines share: their log in an engine, and the copy on this machine.

mod claimed_run;
mod mirror;
mod publish;
mod transcripts;

pub use claimed_run::{ClaimedRun, CommandRole, HeldRun, RunEngine, SilentHosts, silences};
pub(super) use claimed_run::{
    LEASE_TIME, ReportedError, apart, settings_here, until_fixed, until_reached,
};
pub use mirror::{EngineMirror, MirrorThread};
pub(super) use mirror::{FactThread, facts_of_run};
pub(super) use mirror::{HostedCopy, PageSize, fetch_content, host_copy, put_content};
pub use mirror::{facts_of, take_over};
pub(super) use publish::{SharedFiles, fetch_mail, first_home, publish, sighting, store_if_large};
pub use transcripts::{TurnPlace, transcripts};
