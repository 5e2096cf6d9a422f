//! The page of a large run in a real browser: how soon it shows something, and how smooth it scrolls.
//!
//! `cargo bench --bench page` takes some four minutes, `-- --quick` less than two. It makes a run of 10,000 agents with scripted
//! replies, serves it on loopback, and opens it in headless Chromium, each time with a new profile; then one that is live, for many
//! watchers. It measures and does not judge.

#![expect(clippy::expect_used, reason = "a measurement that cannot be taken stops with its reason")]
#![expect(clippy::print_stdout, reason = "it prints figures")]

mod loads;
mod scrolling;
mod served_run;
mod watchers;

#[path = "../../tests/it/in_browser/browser.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod browser;

use served_run::BenchRun;

/// The agents that are forked.
const AGENTS: usize = 10_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    if !has("--bench") {
        println!("nothing is measured: `cargo bench` does, in a release build");
        return;
    }
    let (times, seconds) = if has("--quick") { (5, 3) } else { (15, 10) };
    let run = BenchRun::ended(AGENTS);
    let server = run.serve();
    println!("a run of {AGENTS} agents in headless Chromium, on loopback\n");
    loads::print(&server, times);
    scrolling::print(&server, seconds);
    watchers::print(&BenchRun::live(AGENTS), 2 * seconds);
}
