//! A chain of gotos with the real Claude Code, warm beside one process a step, and with options that change:
//! the time of a step beyond the model, and the number of processes.
//!
//! The figure needs the programs that `tests/run` installs. The model is a stand-in that answers at once, and
//! its time is counted and subtracted. All other time is Claude Code's and raymond's.

pub(crate) mod api;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use self::api::MessagesApi;
use crate::Fallible;
use crate::bench_folder::{BenchFolder, WorkflowFolder};
use crate::chain;
use crate::goals::{GoalBound, Goals};
use crate::raymond::{CLAUDE, RAYMOND, RaymondCommand, bare};
use crate::scale::Scale;
use crate::spent::SpentTime;
use crate::summary::Summary;
use crate::table::{Table, short};

const WHAT: &str = "20 gotos with the real Claude Code: overhead, cold over warm";
const SWITCHES: &str = "processes of 20 gotos that change the model and the effort";
const GOAL: GoalBound = GoalBound::AtLeast(10.0);
const STEPS: usize = 20;
/// The steps with one process each, if time is short; each of these steps is like the others.
const FEWER_STEPS: usize = 5;
/// The time after which a chain is killed.
const CHAIN_TIMEOUT: Duration = Duration::from_mins(3);
/// The versions that the tests pin.
const PINS: [&str; 2] = ["oldest", "newest"];
/// Frontmatter of neighbouring states between which a running process is switched.
const SWITCHED: [&str; 2] =
    ["---\nmodel: haiku\neffort: low\n---\n", "---\nmodel: sonnet\neffort: high\n---\n"];
/// Frontmatter of neighbouring states that each need a process of their own.
const REPLACED: [&str; 2] = ["---\ntools: [Read]\n---\n", "---\ntools: [Read, Grep]\n---\n"];

pub(crate) fn figure(
    place: &BenchFolder,
    scale: &Scale,
    goals: &mut Goals,
) -> Fallible<Vec<Table>> {
    let mut tables = Vec::new();
    for pin in PINS {
        let (what, switches) = (format!("{WHAT} ({pin})"), format!("{SWITCHES} ({pin})"));
        match installed(pin).and_then(|claude| measure(pin, &claude, place, scale)) {
            Ok(measured) => {
                goals.add(what, measured.ratio, GOAL, " times");
                goals.add(switches, measured.processes, GoalBound::AtMost(1.0), "");
                tables.push(measured.table);
            }
            Err(why) => {
                goals.missing(&what, GOAL, " times");
                return Err(why);
            }
        }
    }
    Ok(tables)
}

/// Returns the path of Claude Code for this platform, in the folder of the tests.
pub(crate) fn installed(pin: &str) -> Fallible<PathBuf> {
    let os = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let libc = if Path::new("/etc/alpine-release").exists() { "-musl" } else { "" };
    let packages = format!("tests/claude-code/{pin}/node_modules/@anthropic-ai");
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join(packages);
    let program = packages.join(format!("claude-code-{os}-{machine}{libc}/claude"));
    if program.exists() {
        Ok(program)
    } else {
        Err(format!("{} is missing; tests/run installs it", program.display()).into())
    }
}

/// The measurements of one version.
struct VersionMeasurement {
    table: Table,
    /// The time of a cold step, divided by that of a warm one.
    ratio: f64,
    /// The number of processes for a chain whose changes can all be switched.
    processes: f64,
}

/// The times of a chain beyond the model, in seconds.
struct ChainTimes {
    /// The time of a step, the first and the end included.
    each: f64,
    /// The time of a step that follows another.
    further: Summary,
    /// The number of processes that were started.
    processes: usize,
}

fn measure(
    pin: &str,
    claude: &Path,
    place: &BenchFolder,
    scale: &Scale,
) -> Fallible<VersionMeasurement> {
    let whole = scale.rounds >= Scale::full().rounds;
    let rounds = if whole { 3 } else { 1 };
    let api = MessagesApi::start()?;
    let few = if whole { STEPS } else { FEWER_STEPS };
    let chain = |steps, heads, options: &[&str]| run(claude, place, &api, (steps, heads), options);
    let warm: Vec<ChainTimes> =
        (0..rounds).map(|_| chain(STEPS, ["", ""], &[])).collect::<Fallible<_>>()?;
    let rows = [
        ("one process a step", few, vec![chain(few, ["", ""], &["--no-warm"])?]),
        ("warm", STEPS, warm),
        ("warm, the model and the effort change", STEPS, vec![chain(STEPS, SWITCHED, &[])?]),
        ("warm, the tools change", few, vec![chain(few, REPLACED, &[])?]),
    ];
    let each = |chains: &[ChainTimes]| Summary::of(chains.iter().map(|chain| chain.each));
    let cold = each(&rows[0].2).median();
    let mut table = Table::new(
        &format!(
            "A chain of gotos with the real Claude Code ({pin}), seconds a step beyond the model"
        ),
        ["", "steps", "processes", "chain / steps", "a further step", "ratio"],
    );
    for (name, steps, chains) in &rows {
        let further = Summary::of(chains.iter().map(|chain| chain.further.median()));
        table.row([
            (*name).to_owned(),
            steps.to_string(),
            chains[0].processes.to_string(),
            each(chains).shown(),
            further.shown(),
            short(cold / each(chains).median()),
        ]);
    }
    table.note(
        "The time of a chain counts the start of the first process and the end of the run too.",
    );
    #[expect(clippy::cast_precision_loss, reason = "a few dozen processes")]
    let processes = rows[2].2[0].processes as f64;
    Ok(VersionMeasurement { ratio: cold / each(&rows[1].2).median(), processes, table })
}

/// Runs a chain of states. The text of each is its transition, which the stand-in repeats.
fn run(
    claude: &Path,
    place: &BenchFolder,
    api: &MessagesApi,
    (steps, heads): (usize, [&str; 2]),
    options: &[&str],
) -> Fallible<ChainTimes> {
    let workflow = chain::switching(place, steps, heads)?;
    let before = api.spent();
    let (spent, journal) = run_real(claude, place, &workflow, api, options)?;
    let model = api.spent().saturating_sub(before);
    #[expect(clippy::cast_precision_loss, reason = "a few dozen steps")]
    let each = spent.wall.saturating_sub(model).as_secs_f64() / steps as f64;
    let processes = streams(&journal.with_file_name("steps"))?;
    Ok(ChainTimes { each, further: further(&journal)?, processes })
}

/// Runs a workflow with the real Claude Code and the stand-in for its API; returns its journal.
pub(crate) fn run_real(
    claude: &Path,
    place: &BenchFolder,
    workflow: &WorkflowFolder,
    api: &MessagesApi,
    options: &[&str],
) -> Fallible<(SpentTime, PathBuf)> {
    let (dir, home) = (place.folder()?, place.folder()?);
    let mut command = bare(Command::new(RAYMOND));
    command
        .arg("run")
        .arg(workflow.path())
        .args(["--id", "bench", "--model", "haiku", "--dir"])
        .arg(&dir)
        .arg("--cwd")
        .arg(place.work())
        .arg(CLAUDE)
        .arg(claude)
        .args(options)
        .env("HOME", &home)
        .env("IS_SANDBOX", "1")
        .env("ANTHROPIC_BASE_URL", api.url())
        .env("ANTHROPIC_API_KEY", "bench")
        .envs(
            ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER"]
                .map(|name| (name, "1")),
        )
        .env("DISABLE_TELEMETRY", "1")
        .stdin(Stdio::null())
        .stdout(File::create(dir.join("stdout"))?)
        .stderr(File::create(dir.join("stderr"))?);
    let run = RaymondCommand { command, dir };
    let journal = run.journal();
    Ok((run.finish(CHAIN_TIMEOUT)?, journal))
}

/// Returns the number of processes that have written a stream.
pub(crate) fn streams(steps: &Path) -> Fallible<usize> {
    let names = std::fs::read_dir(steps)?.flatten().map(|entry| entry.path());
    Ok(names.filter(|path| path.extension().is_some_and(|ending| ending == "jsonl")).count())
}

/// Returns the times between the ends of one step and the next, in seconds.
fn further(journal: &Path) -> Fallible<Summary> {
    let journal = std::fs::read_to_string(journal)?;
    let records = journal.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let steps = records.filter(|record| record["event"] == "step_finished");
    let ends: Vec<jiff::Timestamp> =
        steps.filter_map(|record| record["at"].as_str()?.parse().ok()).collect();
    let between = ends.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs_f64());
    Ok(Summary::of(between))
}
