//! The room of the processes: the only one that starts Claude Code, follows it and ends it; and the
//! programs beside a run: its plug-ins, the command of a hook, and what a graph has run.
//!
//! A process writes its stream into a file, so it owes nothing to the runtime that started it: if
//! that dies, the turn goes on to its end, and the next runtime finds either the running process or
//! its finished transcript. A process that stays for further turns of its session is told them on a
//! pipe; when that breaks it ends after the turn it is at.

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
