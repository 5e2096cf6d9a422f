//! The room of the run directory: the only writer of a run's files.
//!
//! The journal is the truth, the snapshot saves reading all of it, the lock keeps a second
//! supervisor out, the inbox takes commands from other processes. Beside the runs lies the dataspace,
//! which all of them share. The workflow's own files are read here too, and never written.

pub mod capture;
pub mod cassette;
pub mod dataspace;
pub mod draft;
pub mod engine_note;
mod error;
pub mod fault;
pub mod files;
pub mod follow;
pub mod inbox;
pub mod journal;
pub mod journal_cut;
pub mod layout;
pub mod lock;
pub mod log;
mod migrate;
pub mod pinned;
pub mod plain_file;
pub mod proof;
pub mod proven_journal;
pub mod record;
pub mod removal;
pub mod run_store;
pub mod shared_copy;
mod snapshot;
mod source_text;
pub mod trust;
pub mod user_state;
pub mod view;
pub mod workflow;

pub use error::Error;

#[cfg(test)]
mod tests;
