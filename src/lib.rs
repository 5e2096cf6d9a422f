//! A durable, supervised actor runtime for workflows of Claude Code agents.
//!
//! This is the map of the house. Data flows one way, and each room knows only those below it:
//!
//! ```text
//! cli ─────────────── arguments, stdout, exit codes; the commands that only read, and the screen of a run
//!  ├─ serve ───────── the page of all runs in a browser: requests, streams of events, scripts
//!  └─ runtime ─────── the library: a workflow, options and plug-ins in, an outcome out
//!      ├─ plugin ──── the actors that come with it: console, debug directory, JSON lines,
//!      │              notifications, telemetry, and the actor of an external program
//!      ├─ actor ───── supervisor, agents, processes: they perform what is decided below
//!      │   ├─ world ─ the operations of graphs: files, git, pages and programs, confined to a workspace
//!      │   ├─ store ─ the run directory: journal, snapshot, lock, inbox; the workflow's files
//!      │   ├─ engine  what several machines share of a run: its log, its hosts, their mail
//!      │   ├─ process Claude Code: command, child, transcript, clean-up; and the programs beside a run
//!      │   └─ language text → prompt; reply → transition; graph, program, script → next operation
//!      └─ domain ──── the state of a run, its events and their effects (pure)
//! ```
//!
//! One step, room by room: with a permit of [`domain::admission`], the supervisor has [`language::resume`] prepare the
//! turn from the files that [`store::workflow`] serves. The agent's actor takes it, and a process actor has
//! [`process::process_runner`] run it. [`language::resume`] judges the reply: [`language::tag`] finds its tag, and
//! [`domain::policy`] says whether it is allowed. [`domain::decide`] makes an event of the agent's report,
//! [`domain::apply`] applies it to the run, [`raymond_store::log`] makes it durable. Only then the supervisor performs the
//! effects and publishes the record.
//!
//! Before a run starts, [`language::privileges`] lists what its files ask for, [`runtime::trust`] asks for trust, and
//! [`store::capture`] pins the files. When the run is resumed, [`runtime::seals`] compares its directory with the seal
//! that [`raymond_store::user_state`] keeps, and each step that ran bears a [`proof`]. An operation that is not trusted is refused
//! where it would be performed.
//!
//! An agent in a graph, a program or a script takes the same steps, but [`language::resume`] takes the place of the
//! prompt. The supervisor advances it from the position in its state, without the outside world, until it needs
//! something. The result is an [advance](domain::advance): outputs, a position, and what is next. It is decided,
//! applied and made durable like any report. The agent performs an [activity](domain::activity), regardless of the
//! language.
//!
//! A [script](language::prompt::script) is one activity, and the tag at the end of its output is
//! [judged](language::prompt::judgement) as a reply. A tag may lead to another folder, a
//! [separate scope](language::prompt::scopes).
//!
//! [`language::graph::read`] makes a [graph](language::graph::checked_graph) of the file, and
//! [`language::graph::interpreter`] executes its nodes. Reads run in [`world`] at once. What comes before a write, a
//! question or a turn is recorded first ([`domain::graph_execution`]). After a crash the graph resumes from the record:
//! pure nodes and reads are executed again with the same result, and [`domain::operation`] says what a crash means for
//! each write.
//!
//! A program's roles are further agents. [`language::program::read`] makes a
//! [program](language::program::checked_program) of the file. Its [execution](raymond_model::graph_execution) is advanced by
//! [`language::program::interpreter`] against the facts that the run has seen, so that no fact is missed between looking
//! and waiting. Facts outlive the run in [`store::dataspace`]; the run stores those
//! that it has seen ([`domain::fact`]).
//!
//! One record can fork many agents: [`language::fork_plan`] reads the list of a fork, the agent plans the children,
//! and [`domain::settings`] is what the record says of them. An agent in a state with a join waits as data, without an actor
//! ([`domain::join`]). Each end of a child is counted as it happens, and when the join is decided, one record resumes
//! the agent with the outcomes. An agent has one [working directory](raymond_model::worktree_snapshot) for its whole life:
//! [`process::working_dirs`] knows its path, and [`world::worktrees`] makes its worktree.
//!
//! A plug-in is an actor that [`runtime::PlugIns`] gives its own mailbox and thread. It receives each [`Published`]
//! record, and may be asked a [`Consult`] before a turn starts and before a transition is taken; [`domain::decide`]
//! makes its answer a part of the event. [`plugin::external`] is the actor of a plug-in that is a program, and speaks
//! [`domain::protocol`]. A reader needs no actor: `raymond top` follows the journal by [`store::follow`] and the turns
//! by [`raymond_agents::claude::turn_transcript`]. A browser reads the same through [`serve`], and acts by the code of the
//! commands.
//!
//! A run can branch off another: [`domain::causal_cut`] tells the records that follow from the place from those that
//! stay, [`store::journal_cut`] reads them, and [`runtime::branch`] makes the run. [`domain::run_diff`] compares two.
//!
//! The log of a run can be in an [`engine`], which decides nothing: [`runtime::sharing`] appends to it before the copy on this
//! machine, under a lease. [`domain::placement`] gives each agent a host. Its turns and activities become requests to that host,
//! whose [worker](runtime::worker) carries them out with the runner and the executor that a run on one machine has.
//!
//! The promises rest on four rules:
//!
//! - Everything that happens is an [`Event`](domain::event::Event). Applying it is pure, and recovery applies the same
//!   events again. Time, session ids and costs are in the event.
//! - No effect begins before its record is durable, and nothing is reported before it is done.
//! - A turn has an identity, [`TurnId`](domain::turn::TurnId). A report that comes late or twice changes nothing, and a
//!   request for a turn that already ran is attached to that one.
//! - Claude Code gets its whole prompt before it begins, and writes its stream into a file. So it needs no raymond to
//!   finish a turn that is paid for.
//!
//! Four modules are used everywhere. [`state_kind`] names the languages. [`fault`] names the places where a test may have the process die; they do nothing
//! in a build without the tests' feature. [`plain_file`] opens and replaces files where others can put something in
//! their place. [`proof`] tells what raymond wrote from what others did. Of the actors, plug-ins see only the messages,
//! the [registry](actor::registry) of running turns, and the clock. `tests/rooms.rs` checks the table in
//! `docs/architecture.md`, which lists what each room may use.
//!
//! Where the specification of the languages leaves a case open, the module that decides it says how:
//!
//! - Prompts: tags in [`language::tag`], placeholders in [`language::template`], policies in [`domain::policy`],
//!   evaluators in [`raymond_model::transition`], lists in [`language::fork_plan`], answers that are objects in
//!   [`language::output`], joins in [`domain::join`].
//! - Runs: failures in [`domain::restart`], budgets in [`domain::budget`], sessions in [`domain::session`], plug-ins that
//!   disagree in [`domain::consult`].
//! - Graphs: expressions in [`language::expression`], names and `store_as` in [`language::graph::checked_graph`], types and
//!   their other names in [`language::graph::vocabulary`], where a record is needed in
//!   [`language::graph::interpreter`], the format of an output document in [`language::graph::contract`], crashes in
//!   [`domain::operation`], answers in [`domain::question`], refused operations in [`world`].
//! - Programs: their forms in [`language::program::checked_program`], ends in [`domain::decide`], facts that come too
//!   late in [`language::program::interpreter`], operations that happen once in [`store::dataspace`].
//! - Working directories in [`raymond_model::worktree_snapshot`], worktrees and what is kept of them in [`world::worktrees`] and
//!   [`domain::worktree`].

#![warn(missing_docs)]

pub mod actor;
pub mod cli;
pub mod plugin;
pub mod runtime;
pub mod serve;

pub use raymond_agents as process;
pub use raymond_engine as engine;
pub use raymond_lang as language;
pub use raymond_model as domain;
pub use raymond_model::state_kind;
pub use raymond_store as store;
pub use raymond_store::{fault, plain_file, proof};
pub use raymond_world as world;

pub use actor::observer::{Consult, Published};
pub use domain::consult::{ConsultVerdict, Consultation, StopScope};
pub use domain::operation::{OperationResult, RecoveryClass};
pub use runtime::Runtime;
pub use world::custom_types::CustomType as OwnType;
