//! The engine Restate: the suite, and what only this engine has.

use std::sync::Arc;

use raymond::engine::Engine;

use crate::restate::server::RestateServer;

mod addresses;
mod backend;
mod broken;
#[path = "on_postgres/crash.rs"]
mod crash;
#[macro_use]
#[expect(dead_code, reason = "other tests use the rest")]
mod runs;
mod fences;
#[path = "on_postgres/many_slots.rs"]
mod many_slots;
mod serving;
mod speed;
mod together;

/// Returns two connections to a server of their own, and the server. The log of facts is one for the whole engine.
fn two_machines() -> (Arc<dyn Engine>, Arc<dyn Engine>, Arc<RestateServer>) {
    let server = backend::own_server();
    (server.engine(), server.engine(), server)
}

mod keeps {
    each_property!(crate::on_restate::two_machines);
}
