//! The floor and raymond, side by side: the cost of a durable, supervised step beyond the cost of its
//! process.
//!
//! `cargo bench` takes less than eight minutes, `cargo bench --bench floor -- --quick` less than two. Names
//! after the options choose figures: `steps`, `syncs`, `agents`, `forks`, `fan-out`, `order`, `nodes`, `pictures`,
//! `conversation`, `tags`, `stream`, `spawns`, `launcher`, `warm`, `snapshots`. With `--dir=FOLDER` the runs are written there instead of into the
//! build's folder. At the end each goal stands beside its measurement. A figure that cannot be taken says why
//! and does not stop the others: the benchmark measures and does not judge. Nothing is subtracted from
//! raymond's times.

mod agents;
mod among;
mod bench_folder;
mod chain;
mod compare;
mod conversation;
mod dialogue;
mod disk;
mod fan_out;
mod forks;
mod goals;
mod launcher;
mod live;
mod nodes;
mod order;
mod pictures;
mod raymond;
mod scale;
mod snapshots;
mod spawn;
mod spawns;
mod spent;
mod steps;
mod stream;
mod stream_lines;
mod summary;
mod syncs;
mod table;
mod tags;
mod tree;
mod warm;

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use bench_folder::BenchFolder;
use goals::Goals;
use scale::Scale;
use table::Table;

/// A measurement, or the reason why there is none.
type Fallible<T> = Result<T, Box<dyn Error>>;

type Figure = (&'static str, fn(&BenchFolder, &Scale, &mut Goals) -> Fallible<Vec<Table>>);

const FIGURES: [Figure; 15] = [
    ("steps", steps::figure),
    ("syncs", syncs::figure),
    ("agents", agents::figure),
    ("forks", forks::figure),
    ("fan-out", fan_out::figure),
    ("order", order::figure),
    ("nodes", nodes::figure),
    ("pictures", pictures::figure),
    ("conversation", conversation::figure),
    ("tags", tags::figure),
    ("stream", stream::figure),
    ("spawns", spawns::figure),
    ("launcher", launcher::figure),
    ("warm", warm::figure),
    ("snapshots", snapshots::figure),
];

fn main() -> ExitCode {
    if let Some(played) = spawns::play_if_asked().or_else(stream::play_if_asked) {
        return played;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        return say("nothing is measured: `cargo bench` does, in a release build\n");
    }
    let started = Instant::now();
    match measure(&arguments) {
        Ok(()) => say(&machine(started)),
        Err(why) => {
            say(&format!("{why}\n"));
            ExitCode::FAILURE
        }
    }
}

/// Takes the figures that are asked for, and prints each as soon as it is there.
fn measure(arguments: &[String]) -> Fallible<()> {
    let is_given = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let mut names = arguments.iter().filter(|argument| !argument.starts_with('-'));
    if let Some(unknown) = names.find(|name| FIGURES.iter().all(|(known, _)| name != known)) {
        let known = FIGURES.map(|(name, _)| name).join(", ");
        return Err(format!("there is no figure {unknown}; there are {known}").into());
    }
    let all = FIGURES.iter().all(|(name, _)| !is_given(name));
    let scale = if is_given("--quick") { Scale::quick() } else { Scale::full() };
    let place =
        BenchFolder::new(arguments.iter().find_map(|argument| argument.strip_prefix("--dir=")))?;
    let mut goals = Goals::default();
    for (name, figure) in FIGURES.iter().filter(|(name, _)| all || is_given(name)) {
        let text = match figure(&place, &scale, &mut goals) {
            Ok(tables) => tables.iter().map(Table::to_string).collect(),
            Err(why) => format!("{name}: not measured: {why}\n\n"),
        };
        say(&text);
    }
    say(&goals.table().to_string());
    Ok(())
}

/// Returns the line about the machine at the end of the report.
fn machine(started: Instant) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let model = read("/proc/cpuinfo")
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1).map(str::to_owned))
        .unwrap_or_else(|| "processor unknown".to_owned());
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    format!(
        "Machine: {cores} cores ({model}), {} {}, load at the end {}; measured in {:.0} s.\n",
        std::env::consts::OS,
        kernel.trim(),
        load.split(' ').next().unwrap_or("unknown"),
        started.elapsed().as_secs_f64(),
    )
}

/// Prints a text; a reader that is gone is an error.
fn say(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
