//! The room of the actors: they translate between the pure rooms and the world, and decide nothing.
//!
//! One arbiter carries them all, because messages between two cost ten times as much: a supervisor
//! that alone owns the run's state, an actor for each live agent, an actor for each running turn's
//! process. Facts and commands are sent without waiting; nothing here ever blocks.

pub mod agent;
pub mod command_tasks;
pub mod context;
mod exchange;
pub mod launch;
pub mod observer;
pub mod process;
pub mod registry;
pub mod replayed;
pub mod runner;
pub mod scripted;
pub mod supervisor;

#[cfg(test)]
pub(crate) mod tests;
