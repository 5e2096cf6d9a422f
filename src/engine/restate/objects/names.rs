//! The names of the objects and of their handlers.

/// The object of a run, by its id.
pub(in crate::engine::restate) const RUN: &str = "RaymondRun";
/// The object of a host, by its name.
pub(in crate::engine::restate) const HOST: &str = "RaymondHost";
/// The index of runs and hosts.
pub(in crate::engine::restate) const INDEX: &str = "RaymondIndex";
/// A content or a piece of one, by its checksum.
pub(in crate::engine::restate) const CONTENT: &str = "RaymondContent";
/// The key of the object of a run that is the log of the changes of facts. It is no id of a run.
pub(in crate::engine::restate) const FACTS: &str = "~facts";
/// The key of the index, of which there is one.
pub(in crate::engine::restate) const ALL: &str = "all";

/// The handler for calls that change an object, one after the other.
pub(in crate::engine::restate) const CHANGE: &str = "change";
/// The handler for questions.
pub(in crate::engine::restate) const LOOK: &str = "look";
/// The handler for those who wait.
pub(in crate::engine::restate) const WAIT: &str = "wait";
