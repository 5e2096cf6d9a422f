//! The store under what a disk may do to it, and the journal as a faithful copy of a run.

mod disk;
mod faults;
mod fold;
mod story;
