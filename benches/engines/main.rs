//! An engine beside the run on one machine: appends, requests with their replies, and whole runs of scripted turns.
//!
//! `cargo bench --features postgres --bench engines` takes some minutes; `-- --quick` a part of that. It starts a `PostgreSQL` server
//! of its own on loopback, with `fsync`. All processes share this machine, so the figures are a lower bound. It measures and
//! does not judge.

#![expect(clippy::expect_used, reason = "a measurement that cannot be taken stops with its reason")]
#![expect(clippy::print_stdout, reason = "it prints figures")]

mod calls;
mod runs;

#[path = "../../tests/engines/postgres/mod.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod postgres;
#[path = "../../tests/engines/support.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod support;

use std::time::Duration;

use postgres::database::Database;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        println!("nothing is measured: `cargo bench` does, in a release build");
        return;
    }
    let is_quick = arguments.iter().any(|argument| argument == "--quick");
    let time = Duration::from_secs(if is_quick { 2 } else { 6 });
    println!("PostgreSQL: calls a second, over {} s", time.as_secs());
    for threads in [1, 16] {
        let database = Database::new();
        let appends = calls::appends(&database, threads, time);
        let round_trips = calls::round_trips(&database, threads, time);
        println!(
            "  {threads:>2} threads: {appends:>6.0} appends, {round_trips:>6.0} requests with their replies"
        );
    }
    let sizes: &[usize] = if is_quick { &[100, 1_000] } else { &[100, 1_000, 10_000] };
    println!("whole runs: two workers with 8 slots each, and one machine with 16 permits");
    for &agents in sizes {
        let alone = runs::on_one_machine(agents);
        let shared = runs::on_two_hosts(agents);
        println!(
            "  {agents:>6} agents, {} turns: {shared:>6.0} steps/s, on one machine {alone:>6.0}: ratio {:.3}",
            runs::turns(agents),
            shared / alone
        );
    }
}
