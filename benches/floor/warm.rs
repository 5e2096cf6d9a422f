//! A chain of gotos with the real Claude Code, warm against one process a step: what a step takes
//! beyond the model.
//!
//! It needs the program that `tests/run` installs. The model is a stand-in that answers at once, and
//! what even that takes is counted and taken off; all else is the program's and raymond's.

mod api;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use self::api::Api;
use crate::chain;
use crate::goals::{Bound, Goals};
use crate::place::Place;
use crate::raymond::{CLAUDE, RAYMOND, Run, bare};
use crate::scale::Scale;
use crate::summary::Summary;
use crate::table::{Table, short};
use crate::{Fallible, goals};

const WHAT: &str = "20 gotos with the real Claude Code: overhead, cold over warm";
const GOAL: goals::Bound = Bound::AtLeast(10.0);
const STEPS: usize = 20;
/// Where little time is given, one process a step is measured over fewer steps: each is like the others.
const FEWER_STEPS: usize = 5;
/// After this a chain is given up.
const LIMIT: Duration = Duration::from_mins(3);

pub(crate) fn figure(place: &Place, scale: &Scale, goals: &mut Goals) -> Fallible<Vec<Table>> {
    let measured = installed().and_then(|claude| measure(&claude, place, scale));
    match measured {
        Ok((table, ratio)) => {
            goals.add(WHAT, ratio, GOAL, " times");
            Ok(vec![table])
        }
        Err(why) => {
            goals.missing(WHAT, GOAL, " times");
            Err(why)
        }
    }
}

/// The program for this platform, where the tests have theirs.
fn installed() -> Fallible<PathBuf> {
    let os = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let libc = if Path::new("/etc/alpine-release").exists() { "-musl" } else { "" };
    let packages =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/claude-code/node_modules/@anthropic-ai");
    let program = packages.join(format!("claude-code-{os}-{machine}{libc}/claude"));
    if program.exists() {
        Ok(program)
    } else {
        Err(format!("{} is missing; tests/run installs it", program.display()).into())
    }
}

/// What a chain took beyond the model, in seconds.
struct Chain {
    /// A step, the first and the end included.
    each: f64,
    /// A step that follows another.
    further: Summary,
}

fn measure(claude: &Path, place: &Place, scale: &Scale) -> Fallible<(Table, f64)> {
    let whole = scale.rounds >= Scale::full().rounds;
    let rounds = if whole { 3 } else { 1 };
    let api = Api::start()?;
    let warm: Vec<Chain> =
        (0..rounds).map(|_| run(claude, place, &api, STEPS, &[])).collect::<Fallible<_>>()?;
    let steps = if whole { STEPS } else { FEWER_STEPS };
    let cold = [run(claude, place, &api, steps, &["--no-warm"])?];
    let [fast, slow] =
        [&warm[..], &cold].map(|chains| Summary::of(chains.iter().map(|chain| chain.each)));
    let ratio = slow.median() / fast.median();
    let mut table = Table::new(
        "A chain of gotos with the real Claude Code, seconds a step beyond the model",
        ["", "steps", "chain / steps", "a further step", "ratio"],
    );
    for (name, steps, each, chains, ratio) in
        [("one process a step", steps, slow, &cold[..], 1.0), ("warm", STEPS, fast, &warm, ratio)]
    {
        let further = Summary::of(chains.iter().map(|chain| chain.further.median()));
        let cells =
            [name.to_owned(), steps.to_string(), each.shown(), further.shown(), short(ratio)];
        table.row(cells);
    }
    table
        .note("The first column counts the start of the first process and the end of the run too.");
    Ok((table, ratio))
}

/// Runs a chain of states, each of whose text is its transition, which the stand-in repeats.
fn run(claude: &Path, place: &Place, api: &Api, steps: usize, options: &[&str]) -> Fallible<Chain> {
    let (workflow, dir, home) = (chain::alone(place, steps)?, place.folder()?, place.folder()?);
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
    let run = Run { command, dir };
    let journal = run.journal();
    let before = api.spent();
    let spent = run.finish(LIMIT)?;
    let model = api.spent().saturating_sub(before);
    #[expect(clippy::cast_precision_loss, reason = "a few dozen steps")]
    let each = spent.wall.saturating_sub(model).as_secs_f64() / steps as f64;
    Ok(Chain { each, further: further(&journal)? })
}

/// The times between one step's end and the next one's, in seconds.
fn further(journal: &Path) -> Fallible<Summary> {
    let journal = std::fs::read_to_string(journal)?;
    let records = journal.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let steps = records.filter(|record| record["event"] == "step_finished");
    let ends: Vec<jiff::Timestamp> =
        steps.filter_map(|record| record["at"].as_str()?.parse().ok()).collect();
    let between = ends.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs_f64());
    Ok(Summary::of(between))
}
