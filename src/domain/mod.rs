//! Pure domain logic: runs, their events, and the effects that follow from them.
//!
//! Nothing here reads a file, a clock or a random number, so every decision can be tested with a
//! table and replayed from the journal. Data flows one way: the [`TurnReport`](decide::TurnReport) of a
//! turn is *decided* into events, an event is *applied* to the run, and applying it returns the effects
//! that other modules perform.

pub mod activity;
pub mod admission;
pub mod advance;
pub mod agent;
pub mod agent_status;
pub mod agents;
pub mod allowed_address;
pub mod apply;
pub mod awaited_signal;
pub mod body_command;
pub mod budget;
pub mod budget_shortage;
pub mod call_budget;
pub mod capacity;
pub mod consult;
pub mod decide;
pub mod effect;
pub mod evaluation;
#[macro_use]
pub mod event;
pub mod claude_version;
pub mod fact;
pub mod failures;
pub mod fork;
pub mod graph_execution;
pub mod history;
pub mod id;
pub mod join;
pub mod ledger;
pub mod model;
pub mod money;
pub mod operation;
pub mod option_switch;
pub mod permission;
pub mod plugin;
pub mod policy;
pub mod printable;
pub mod privilege;
pub mod program_execution;
pub mod protocol;
pub mod published_state;
pub mod question;
pub mod recovery_class;
pub mod refusal;
pub mod reminder;
pub mod restart;
pub mod run;
pub mod run_origin;
pub mod sealed_terms;
pub mod session;
pub mod settings;
pub mod shell_command;
pub mod special_address;
pub mod spending;
pub mod supervision;
pub mod time;
pub mod transition;
pub mod tree;
pub mod turn;
pub mod turn_concurrency;
pub mod turn_cost;
pub mod turn_offset;
pub mod turn_options;
pub mod turn_order;
pub mod usage;
pub mod value_path;
pub mod variables;
pub mod verdict;
pub mod wait_reason;
pub mod widening;
pub mod workflow_pins;
pub mod working_dir;
pub mod worktree;
