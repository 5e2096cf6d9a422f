//! The engine `PostgreSQL`: the logs, hosts and mail of runs in the schema `raymond` of a database.
//!
//! Each call is one statement that commits by itself, so a cut connection leaves it done or not done, and never half.
//! A statement that writes for a run or a host locks the row of that run or host in the epoch of its lease or claim. A
//! claim changes that row, so it waits for what is under way, and nothing with the old epoch follows.
//!
//! No statement is prepared by its client, and nothing is set for a session: a pooler that lends a connection for one
//! transaction may stand between. The statements of each step are functions of the schema. `NOTIFY` only makes waiting
//! shorter, and nothing depends on it.

#[macro_use]
mod fence;
mod calls;
mod engine;
mod facts;
mod failure;
mod hosts;
mod log;
mod mailbox;
mod received_mail;
mod schema;
mod settings;

pub(super) use engine::PostgresEngine;
