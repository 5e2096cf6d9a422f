//! The store on a faulty disk, and the journal as a faithful copy of a run.

mod disk;
mod faults;
mod fold;
mod story;
