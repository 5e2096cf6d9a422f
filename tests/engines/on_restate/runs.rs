//! Runs end to end over Restate. What is left out looks into tables, or has nothing to do with the engine.

#[path = "../runs/begun_ahead.rs"]
mod begun_ahead;
#[path = "../runs/claude_code.rs"]
mod claude_code;
#[path = "../runs/cluster.rs"]
mod cluster;
#[path = "../runs/commands.rs"]
mod commands;
#[path = "../runs/cut_off.rs"]
mod cut_off;
#[path = "../runs/ended.rs"]
mod ended;
#[path = "../runs/fake.rs"]
mod fake;
#[path = "../runs/flows.rs"]
mod flows;
#[path = "../runs/frozen.rs"]
mod frozen;
#[path = "../runs/full_disk.rs"]
mod full_disk;
#[path = "../runs/hostile.rs"]
mod hostile;
#[path = "../runs/labels.rs"]
mod labels;
#[path = "../runs/leftovers.rs"]
mod leftovers;
#[path = "../runs/limits.rs"]
mod limits;
#[path = "../runs/losses.rs"]
mod losses;
#[path = "../runs/machine.rs"]
mod machine;
#[path = "../runs/outage.rs"]
mod outage;
#[path = "../runs/own_network.rs"]
mod own_network;
#[path = "../runs/plug_ins.rs"]
mod plug_ins;
#[path = "../runs/process.rs"]
mod process;
#[path = "../runs/results.rs"]
mod results;
#[macro_use]
#[path = "../runs/samples.rs"]
pub(crate) mod samples;
#[path = "../runs/storm.rs"]
mod storm;
#[path = "../runs/supervisors.rs"]
mod supervisors;
#[path = "../runs/versions.rs"]
mod versions;
#[path = "../runs/without_git.rs"]
mod without_git;
#[path = "../runs/workers.rs"]
mod workers;
#[path = "../runs/wrong_clocks.rs"]
mod wrong_clocks;
