//! Runs that several machines share, end to end: the real program in several processes, each with a home, a state and a
//! directory of its own, against a real server.
//!
//! A `Cluster` is an engine with its machines and the folder of the stand-in for Claude Code, which counts its turns. All
//! of them end with it.

mod begun_ahead;
mod claude_code;
mod cluster;
mod commands;
mod cut_off;
mod ended;
mod exchange;
mod fake;
mod flows;
mod frozen;
mod full_disk;
mod hostile;
mod labels;
mod large;
mod leftovers;
mod limits;
mod losses;
mod machine;
mod outage;
mod own_network;
mod plug_ins;
mod process;
mod refusals;
mod results;
#[macro_use]
pub(crate) mod samples;
mod shared_facts;
mod shown;
mod statuses;
mod storm;
mod supervisors;
mod versions;
mod without_git;
mod workers;
mod wrong_clocks;
