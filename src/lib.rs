//! A durable, supervised actor runtime for workflows of Claude Code agents.
//!
//! This is the map of the house. Data flows one way, and each room knows only those below it:
//!
//! ```text
//! cli ─────────────── flags, stdout, exit codes; the commands that only look, and the screen of a run
//!  └─ runtime ─────── the library: a workflow, options and plug-ins in, an outcome out
//!      ├─ plugin ──── the actors that come with it: console, debug directory, JSON lines,
//!      │              notifications, telemetry, and the one that speaks for a program
//!      ├─ actor ───── supervisor, agents, processes: they carry out what is decided below
//!      │   ├─ world ─ what graphs ask for: files, git, pages and programs, confined to a workspace
//!      │   ├─ store ─ the run directory: journal, snapshot, lock, inbox; the workflow's files
//!      │   ├─ process Claude Code: command, child, transcript, clean-up; and the programs beside a run
//!      │   └─ language text → what to ask; reply → which transition; graph, program → what is needed
//!      └─ domain ──── what a run is, what can happen to it, what is owed then (pure)
//! ```
//!
//! One step, room by room: [`actor::agent`] reads the prompt through [`language::source`], which
//! [`store::workflow`] serves, and [`language::prompt::step::step`] renders it. With a permit of
//! [`domain::admission`] a process actor has [`process::claude`] run the turn. Its final text goes
//! through [`language::tag`] and is judged by [`domain::policy`]; [`domain::decide`] makes a report of
//! it into an event, [`domain::apply`] applies that to the run, [`store::writer`] makes it durable,
//! and then the supervisor performs the effects and publishes the record.
//!
//! Before a run starts, [`language::privileges`] lists what its files ask for and [`runtime::trust`] asks for trust;
//! [`store::capture`] pins the files. When it is resumed, [`runtime::seals`] compares its directory with the seal that
//! [`store::seal`] keeps, and each step that ran bears a [`proof`]. An operation that nobody trusts is refused where
//! it would be performed.
//!
//! An agent in a graph takes the same way with another middle: [`language::graph::read`] makes a
//! [program](language::graph::checked_graph) of the file, and [`language::graph::interpreter`] walks it until it needs
//! something. What only looks is asked of [`world`] at once; before what changes it, a question or a turn,
//! the walk is reported and recorded ([`domain::graph_advance`], [`domain::graph_execution`]), and then the agent comes back to
//! it. The machine stands where the record says, so the same is needed again after a crash; [`domain::operation`]
//! says what that means for each operation. Pure nodes and reads are done again from the last record and
//! come to the same: one record, and one flush, holds all of them.
//!
//! A program is carried out by an agent of its own and served by others: [`language::program::read`] makes a
//! [definition](language::program::checked_program) of the file, and the supervisor has
//! [`language::program::interpreter`] continue from where the [execution](domain::program_execution) stands, against the run's own
//! facts, so that nothing can happen between looking and waiting. What comes of it ([`domain::program_advance`]) is one
//! moment of the journal: requests to its roles, which are agents with a queue, what it says, where it stands.
//! Facts outlive the run in [`store::dataspace`]; the run keeps in its own state what it has seen of them
//! ([`domain::fact`]).
//!
//! Many agents are born of one record: [`language::fork_list`] reads the list of a fan-out, the agent finds out who
//! would be forked, and [`domain::fork`] is what the record says of them. An agent that comes to a state with a
//! join waits as data ([`domain::join`]); the ends of those it has forked are counted as they happen, and when
//! that is decided one more record has it go on with what came of them. Where an agent works is its
//! [working directory](domain::working_dir), for its whole life; [`process::working_dirs`] knows where that is, and [`world`] makes the worktree.
//!
//! A plug-in is an actor that [`runtime::PlugIns`] gives a mailbox and a thread of its own. It is told of
//! each [`Published`] record, and may be asked a [`Consult`] before a turn starts and before a transition
//! is taken; [`domain::decide`] makes what it answers a part of the event. A plug-in that is a program
//! has [`plugin::external`] speak for it, in the words of [`domain::protocol`]. Who only looks needs no
//! actor: `raymond top` follows the journal by [`store::follow`] and the turns by [`process::turn_tail`].
//!
//! What the runtime promises rests on four habits:
//!
//! - Everything that happens is an [`Event`](domain::event::Event); applying it is pure, and recovery
//!   applies the same events again. Time, session ids and costs are in the event.
//! - Nothing is done before its record is durable, and nothing is told before it is done.
//! - A turn has an identity, [`TurnId`](domain::turn::TurnId). What comes late or twice changes
//!   nothing; whoever asks for the same turn again is attached to the one that ran.
//! - Claude Code has heard the whole of its prompt before it begins, and writes its stream into a file,
//!   so it needs no runtime to finish what was paid for.
//!
//! Four things stand beside the rooms. [`fault`] names the places where a test may have the process
//! die; store, process, world and actor come to them, and in a build without the tests' feature they are
//! nothing. [`plain_file`] opens and replaces files where others can put something in their place; [`proof`] tells what raymond
//! wrote from what others did. And plug-ins see of the actors only what is meant for others: the messages, the live
//! picture of [`actor::registry`], and the clock. `tests/rooms.rs` holds the whole table.
//!
//! Where the workflow protocol leaves a case open, the module that decides it says how: tags in
//! [`language::tag`], placeholders in [`language::template`], policies in [`domain::policy`],
//! failures in [`domain::restart`], budgets in [`domain::budget`], sessions in [`domain::session`],
//! evaluators in [`domain::evaluation`], several plug-ins that differ in [`domain::consult`], lists in
//! [`language::fork_list`], answers that are objects in [`language::output`], who is waited for in [`domain::join`], what may go of a worktree in
//! [`domain::worktree`]. For graphs:
//! expressions in [`language::expression`], names and `store_as` in [`language::graph::checked_graph`], types and
//! their other names in [`language::graph::vocabulary`], where a walk is cut in [`language::graph::interpreter`],
//! what a document has to answer in [`language::graph::contract`], crashes in [`domain::operation`], answers in
//! [`domain::question`], and what the world refuses in [`world`]. For homes: where an agent works in
//! [`domain::working_dir`], how its worktree is made and what has to be kept before one goes in [`world::worktrees`] and
//! [`domain::worktree`]. For programs: their forms in
//! [`language::program::checked_program`], ends in [`domain::decide`], what came too late and which fact is taken in
//! [`language::program::interpreter`], what a step changes once in [`store::dataspace`].

pub mod actor;
pub mod cli;
#[macro_use]
pub mod domain;
pub mod fault;
pub mod language;
pub mod plain_file;
pub mod plugin;
pub mod process;
pub mod proof;
pub mod runtime;
pub mod store;
pub mod world;

pub use actor::message::{Consult, Published};
pub use domain::consult::{ConsultVerdict, Consultation, StopScope};
pub use domain::operation::{OperationResult, RecoveryClass};
pub use runtime::Runtime;
pub use world::registry::OwnType;
