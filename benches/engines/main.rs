//! The engines beside a run on one machine: appends, requests with their replies, and whole runs of scripted turns.
//!
//! `cargo bench --features postgres,restate --bench engines` takes 40 minutes; `-- --quick` a part of that, and
//! `-- restate` measures only one engine. It starts servers of its own on loopback, with `fsync`; Restate's has to be
//! installed in `tests/restate`. All processes share this machine, so the figures are a lower bound. It measures and does
//! not judge.

#![expect(clippy::expect_used, reason = "a measurement that cannot be taken stops with its reason")]
#![expect(clippy::print_stdout, reason = "it prints figures")]

mod calls;
mod runs;
mod servers;

#[path = "../../tests/engines/postgres/mod.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod postgres;
#[path = "../../tests/engines/restate/mod.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod restate;
#[path = "../../tests/engines/support.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod support;

use std::time::Duration;

use runs::RunSize;
use servers::{BenchServer, MakeServer};

/// The agents whose cost of a step the others are compared with.
const FEW: usize = 100;

/// The first turns of long-lived agents, which have a figure of their own.
const FIRST_TURNS: usize = 6;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    if !has("--bench") {
        println!("nothing is measured: `cargo bench` does, in a release build");
        return;
    }
    let is_quick = has("--quick");
    let engines: [(&str, MakeServer); 2] =
        [("PostgreSQL", BenchServer::postgres), ("Restate", BenchServer::restate)];
    let is_chosen = |name: &str| {
        let mut names = arguments.iter().filter(|argument| !argument.starts_with("--")).peekable();
        names.peek().is_none() || names.any(|chosen| chosen.eq_ignore_ascii_case(name))
    };
    for (name, make) in engines.into_iter().filter(|(name, _)| is_chosen(name)) {
        calls_of(name, make, Duration::from_secs(if is_quick { 2 } else { 6 }));
        runs_of(name, make, if is_quick { &[FEW, 1_000] } else { &[FEW, 1_000, 10_000] });
        if !is_quick {
            long_turns_of(name, make);
        }
    }
    runs::delete_folders();
}

fn calls_of(name: &str, make: MakeServer, time: Duration) {
    println!("{name}: calls a second, over {} s", time.as_secs());
    for threads in [1, 16] {
        let server = make();
        let appends = calls::appends(&server, threads, time);
        let round_trips = calls::round_trips(&server, threads, time);
        println!(
            "  {threads:>2} threads: {appends:>6.0} appends, {round_trips:>6.0} requests with their replies"
        );
    }
}

fn runs_of(name: &str, make: MakeServer, sizes: &[usize]) {
    println!("{name}: whole runs on two hosts of 8 slots, and on one machine with 16 permits");
    let mut few = None;
    for &agents in sizes {
        let size = RunSize::of_agents(agents);
        let alone = runs::on_one_machine(size);
        let shared = runs::on_two_hosts(make, size);
        let few = *few.get_or_insert(shared);
        println!(
            "  {agents:>6} agents, {} turns: {shared:>6.0} steps/s, on one machine {alone:>6.0}: ratio {:.3}; a step costs {:.2} of one among {FEW} agents",
            size.all_turns(),
            shared / alone,
            few / shared,
        );
    }
}

/// Measures a run that goes on for a quarter of an hour. All agents start at once, so the first turns say how fast many at a time are
/// served, and the whole run says what it costs to serve them for long.
fn long_turns_of(name: &str, make: MakeServer) {
    let size = RunSize { agents: 10_000, turns: 45, seconds: 20 };
    let run = runs::on_hosts(make, size, (10, 1_000));
    println!(
        "{name}: {} agents with turns of {} s on 10 hosts of 1000 slots",
        size.agents, size.seconds
    );
    let part = |turns, time| {
        let ideal = size.ideal(turns);
        format!("{time:.1} s for {ideal:.0} s of turns, {:.1} % of the ideal", 100.0 * ideal / time)
    };
    println!(
        "  the first {FIRST_TURNS} turns of each: {}",
        part(FIRST_TURNS, run.seconds_of(FIRST_TURNS))
    );
    println!("  all {} turns of each: {}", size.turns, part(size.turns, run.seconds));
}
