//! The processes: this module alone starts Claude Code, follows it and ends it, and runs the
//! programs beside a run: its plug-ins, the command of a hook, and the programs of a graph.
//!
//! A process writes its stream into a file, so it does not depend on the runtime that started it: if
//! that dies, the turn continues to its end, and the next runtime finds either the running process or
//! its finished transcript. A process that serves further turns of its session gets them on a
//! pipe; when that breaks it ends after its current turn.

pub mod ancestry;
mod attach;
mod begin;
pub mod census;
pub mod cgroup;
pub mod claude;
pub mod command;
pub mod compaction;
pub mod companion;
pub mod config_files;
pub mod copy_check;
pub mod environment;
mod finish;
pub mod follow;
pub mod group;
pub mod home;
pub mod hook;
mod launch;
pub mod leftover;
pub mod limit;
pub mod machine;
pub mod message;
pub mod notice;
pub mod onlooker;
pub mod option_flags;
pub mod orphan;
pub mod outcome;
pub mod owned;
pub mod pool;
pub mod program;
pub mod protected;
pub mod startup;
pub mod stops;
pub mod stream;
pub mod transcript;
pub mod turn_proof;
pub mod verdict;
pub mod worker;
pub mod write_watch;
