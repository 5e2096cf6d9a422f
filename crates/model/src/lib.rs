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
pub mod approval;
pub mod branch;
pub mod budget;
pub mod budget_shortage;
pub mod capacity;
pub mod cassette;
pub mod causal_cut;
pub mod consult;
pub mod decide;
pub mod ended_turns;
#[macro_use]
pub mod event;
pub mod claude_version;
pub mod exchange_branches;
pub mod fact;
pub mod git_exchange;
pub mod graph_execution;
pub mod graph_types;
pub mod hash;
pub mod hexadecimal;
pub mod history;
pub mod host;
pub mod host_work;
pub mod id;
pub mod join;
pub mod json_mistake;
pub mod killed_run;
pub mod ledger;
pub mod live_results;
pub mod log_line;
pub mod model;
pub mod money;
pub mod mutex;
pub mod observed_run;
pub mod operation;
pub mod percent;
pub mod person_wait;
pub mod placement;
pub mod policy;
pub mod privilege;
pub mod protocol;
pub mod question;
pub mod refusal;
pub mod restart;
pub mod retry;
pub mod run;
pub mod run_diff;
pub mod run_trace;
pub mod sealed_terms;
pub mod session;
pub mod settings;
pub mod state_kind;
pub mod supervision;
#[cfg(any(test, feature = "test-fakes"))]
pub mod tests;
pub mod time;
pub mod tool_call;
pub mod transition;
pub mod tree;
pub mod turn;
pub mod turn_options;
pub mod usage;
pub mod variables;
pub mod views;
pub mod widening;
pub mod words;
pub mod worktree;
pub mod worktree_snapshot;
