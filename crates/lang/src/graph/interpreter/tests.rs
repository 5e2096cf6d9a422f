//! Tests walks over graphs, step by step through the records that a run keeps of them.
//!
//! A [`Stage`](stage::Stage) plays a graph as an agent does, with everything around it simulated: each walk
//! is decided and applied, and the next one begins from the new state of the run.

#![expect(clippy::needless_pass_by_value, reason = "JSON is written where it is given")]

mod actions;
mod asks;
mod bounds;
mod companions;
mod conditions;
mod endings;
mod failures;
mod key_order;
mod later;
mod nodes;
mod parallel;
mod paths;
mod play;
mod resume;
mod scope;
mod stage;
