//! The engine `PostgreSQL`: the suite, and what only this engine has.

use std::sync::Arc;

use raymond::engine::Engine;

use crate::postgres::database::Database;

#[macro_use]
#[path = "runs/mod.rs"]
mod runs;
mod addresses;
mod backend;
mod broken;
mod crash;
mod encrypted;
mod fences;
mod many_slots;
mod tables;

/// Returns two connections to a database of their own, and the database.
fn two_machines() -> (Arc<dyn Engine>, Arc<dyn Engine>, Database) {
    let database = Database::new();
    (database.engine(), database.engine(), database)
}

mod keeps {
    each_property!(crate::on_postgres::two_machines);
}
