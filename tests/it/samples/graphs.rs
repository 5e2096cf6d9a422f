//! The samples that are graphs, run for real: in a workspace of their own, with a repository and a web site
//! of this machine, to each of the important endings.

mod add_source;
mod release;
mod workspace;

/// The folders of the samples that are graphs.
pub(super) const NAMES: [&str; 2] = ["add-source", "release"];
