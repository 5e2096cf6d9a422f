//! The rate at which a process with much memory starts others, compared with one that has little.
//!
//! This program plays raymond here: it starts itself, touches as much memory as it is told, and then starts
//! the fake over and over, in raymond's own way.

use std::fs::File;
use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::Instant;

use raymond::process::transcript::OpenProcessFiles;
use raymond::process::worker::{WorkerProcess, WorkerSpec};

use crate::Fallible;
use crate::bench_folder::BenchFolder;
use crate::goals::{GoalBound, Goals};
use crate::raymond::{FAKE, bare};
use crate::scale::Scale;
use crate::summary::Summary;
use crate::table::Table;

/// The variable that makes this program start others. Its value is a number of megabytes and a number of
/// processes.
const SPAWNER_VARIABLE: &str = "FLOOR_SPAWNS";
const LARGE_MEGABYTES: usize = 1_000;
const ROUNDS: usize = 5;

pub(crate) fn figure(
    place: &BenchFolder,
    scale: &Scale,
    goals: &mut Goals,
) -> Fallible<Vec<Table>> {
    let mut pairs = Vec::new();
    for _ in 0..ROUNDS {
        let small = rate(place, 0, scale.spawns)?;
        pairs.push((small, rate(place, LARGE_MEGABYTES, scale.spawns)?));
    }
    let small = Summary::of(pairs.iter().map(|&(small, _)| small));
    let large = Summary::of(pairs.iter().map(|&(_, large)| large));
    let ratio = Summary::of(pairs.iter().map(|&(small, large)| large / small));
    goals.add(
        "spawn rate of a 1 GB process over a small one",
        ratio.median(),
        GoalBound::AtLeast(0.5),
        "",
    );
    let mut table = Table::new(
        "Processes started and waited for a second, one at a time, median (least–greatest)",
        ["", "small", "1 GB", "1 GB over small"],
    );
    let name = "Process::start".to_owned();
    table.row([name, small.shown(), large.shown(), ratio.shown()]);
    Ok(vec![table])
}

fn rate(place: &BenchFolder, megabytes: usize, count: usize) -> Fallible<f64> {
    let output = bare(Command::new(std::env::current_exe()?))
        .env(SPAWNER_VARIABLE, format!("{megabytes} {count}"))
        .current_dir(place.work())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.trim().parse().map_err(|_| format!("the process that starts others: {text}").into())
}

/// Starts others, if this program is told to.
pub(crate) fn play_if_asked() -> Option<ExitCode> {
    let given = std::env::var(SPAWNER_VARIABLE).ok()?;
    let mut numbers = given.split(' ').map_while(|number| number.parse::<usize>().ok());
    let (megabytes, count) = (numbers.next()?, numbers.next()?);
    let text =
        start_others(megabytes, count).map_or_else(|why| why.to_string(), |rate| format!("{rate}"));
    Some(crate::say(&text))
}

fn start_others(megabytes: usize, count: usize) -> Fallible<f64> {
    let held = black_box(vec![1_u8; megabytes * 1_000_000]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let started = runtime.block_on(async {
        start_and_wait().await?;
        let started = Instant::now();
        for _ in 0..count {
            start_and_wait().await?;
        }
        std::io::Result::Ok(started)
    })?;
    let seconds = started.elapsed().as_secs_f64();
    drop(black_box(held));
    Ok(f64::from(u32::try_from(count)?) / seconds)
}

async fn start_and_wait() -> std::io::Result<()> {
    let files = OpenProcessFiles {
        stdin: Some(File::open("/dev/null")?),
        stdout: File::create("/dev/null")?,
        stderr: File::create("/dev/null")?,
    };
    let name = |name: &str| (name.to_owned(), String::new());
    let start = WorkerSpec {
        program: FAKE.into(),
        arguments: vec!["--version".to_owned()],
        cwd: ".".into(),
        in_tree: false,
        environment: ["FLOOR_A", "FLOOR_B", "FLOOR_C", "FLOOR_D", "FLOOR_E"].map(name).to_vec(),
    };
    WorkerProcess::start(start, files)?.exited().await;
    Ok(())
}
