//! The room of the processes: the only one that starts Claude Code, follows it and ends it.
//!
//! A process reads its prompt from a file and writes its stream into a file, so it owes nothing to
//! the runtime that started it: if that dies, the turn goes on to its end, and the next runtime
//! finds either the running process or its finished transcript.

pub mod claude;
pub mod command;
pub mod follow;
pub mod group;
pub mod leftover;
pub mod limit;
pub mod machine;
pub mod notice;
pub mod owned;
pub mod stream;
pub mod transcript;
pub mod verdict;
