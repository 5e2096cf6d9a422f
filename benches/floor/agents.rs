//! Ten thousand live agents: the memory they take, the speed of their steps, and the time until they are
//! ready again after a kill.
//!
//! The replies are scripted. With a process for each step, the creation of ten thousand agents would take
//! minutes, and the processes would hide the cost of the agents. All agents loop in one state, a few at a
//! time, and wait for a permit in between.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::Fallible;
use crate::bench_folder::BenchFolder;
use crate::goals::{GoalBound, Goals};
use crate::live::{ProcessMemory, RunningRaymond};
use crate::raymond::RaymondCommand;
use crate::scale::Scale;
use crate::summary::Summary;
use crate::table::{Table, short, whole};
use crate::tree;

/// The number of agents that the many are compared with.
const FEW_AGENTS: usize = 100;
/// The number of turns that run at the same time.
const CONCURRENT_TURNS: &str = "16";
const STEP: &str = "\"event\":\"step_finished\"";
/// The wait after the last record, in which its effects happen.
const SETTLE_TIME: Duration = Duration::from_millis(300);

/// The directory of a run with so many agents; no raymond runs it.
struct LiveAgentsRun {
    dir: PathBuf,
    fork_time: Duration,
    peak: f64,
}

struct ObservedRun {
    live: RunningRaymond,
    fork_time: Duration,
    grown: f64,
    rates: Vec<f64>,
    memory: Option<ProcessMemory>,
}

pub(crate) fn figure(
    place: &BenchFolder,
    scale: &Scale,
    goals: &mut Goals,
) -> Fallible<Vec<Table>> {
    let [mut few, mut many] =
        [observe(place, FEW_AGENTS, scale)?, observe(place, scale.live, scale)?];
    for _ in 0..scale.windows {
        few.window(scale)?;
        many.window(scale)?;
    }
    let number = whole(u32::try_from(scale.live).map_or(f64::NAN, f64::from));
    let ratios = Summary::of(few.rates.iter().zip(&many.rates).map(|(few, many)| many / few));
    goals.add(
        format!("steps/s with {number} live agents over {FEW_AGENTS}"),
        ratios.median(),
        GoalBound::AtLeast(0.90),
        "",
    );
    let born = many.grown / 1e6;
    goals.add("  while they are forked", born, GoalBound::AtMost(56.0), " MB");
    let mut table = Table::new(
        "Live agents, 16 of them with a turn, scripted replies",
        ["live agents", "steps/s", "peak", "now", "peak while forked", "forked within"],
    );
    for (name, watched) in [(FEW_AGENTS.to_string(), &few), (number.clone(), &many)] {
        table.row(cells(name, watched));
    }
    table.note(format!(
        "Steps a second with {number} over {FEW_AGENTS}: {}, pair by pair.",
        ratios.shown()
    ));
    table.note(
        "VmHWM and VmRSS. The agents are forked with a permit each, killed, and resumed with 16.",
    );
    let kills = kill_repeatedly(many, scale, &number, goals)?;
    Ok(vec![table, kills])
}

/// Kills raymond several times, and measures the time until it is ready again.
fn kill_repeatedly(
    many: ObservedRun,
    scale: &Scale,
    number: &str,
    goals: &mut Goals,
) -> Fallible<Table> {
    let mut peak = many.memory.map_or(f64::NAN, |memory| memory.peak);
    let mut live = many.live;
    let [mut resumed, mut ready] = [Vec::new(), Vec::new()];
    for _ in 0..scale.kills {
        live = RunningRaymond::start(RaymondCommand::resume(
            live.kill()?,
            &["--max-procs", CONCURRENT_TURNS],
        )?)?;
        live.read_until("\"event\":\"run_resumed\"", 1, scale.limit)?;
        resumed.push(live.started.elapsed().as_secs_f64());
        // The first of the records may have been read together with `run_resumed`; those count as well.
        live.read_until(STEP, 16, scale.limit)?;
        ready.push(live.started.elapsed().as_secs_f64());
        peak = peak.max(live.memory()?.peak);
    }
    let [resumed, ready] = [Summary::of(resumed), Summary::of(ready)];
    goals.add(
        format!("peak memory with {number} live agents"),
        peak / 1e6,
        GoalBound::AtMost(40.0),
        " MB",
    );
    goals.add(
        format!("{number} agents ready after a kill"),
        ready.median(),
        GoalBound::AtMost(1.5),
        " s",
    );
    let mut table = Table::new(
        "After kill -9: seconds from `raymond run RUN` until …, median (least–greatest)",
        ["live agents", "all is read", "turns end", "kills"],
    );
    let kills = scale.kills.to_string();
    table.row([number.to_owned(), resumed.shown(), ready.shown(), kills]);
    table.note(
        "Read: the record of the resumed run is in the journal. Turns end: 16 more records of",
    );
    table.note(
        "finished steps are durable, so the first agents have had a turn. The goal is about that.",
    );
    Ok(table)
}

fn observe(place: &BenchFolder, agents: usize, scale: &Scale) -> Fallible<ObservedRun> {
    let forked = fork_agents(place, agents, scale)?;
    // The script has changed since the run began.
    let options = ["--max-procs", CONCURRENT_TURNS, "--migrate"];
    let mut live = RunningRaymond::start(RaymondCommand::resume(forked.dir, &options)?)?;
    live.read_until(STEP, scale.window, scale.limit)?;
    live.set_suspended(true);
    let (rates, memory) = (Vec::new(), None);
    Ok(ObservedRun { live, fork_time: forked.fork_time, grown: forked.peak, rates, memory })
}

fn fork_agents(place: &BenchFolder, agents: usize, scale: &Scale) -> Fallible<LiveAgentsRun> {
    let tree = tree::grow(place, agents)?;
    let all = (2 * agents).to_string();
    let options = ["--agent", "scripted", "--max-procs", &all];
    let mut live =
        RunningRaymond::start(RaymondCommand::new(place, &tree.workflow, &[], &options)?)?;
    live.read_until(STEP, tree.steps, scale.limit)?;
    let fork_time = live.started.elapsed();
    std::thread::sleep(SETTLE_TIME);
    let peak = live.memory()?.peak;
    let dir = live.kill()?;
    tree.loop_in_last_state()?;
    Ok(LiveAgentsRun { dir, fork_time, peak })
}

impl ObservedRun {
    /// Lets raymond continue for a window of steps, and measures their rate.
    fn window(&mut self, scale: &Scale) -> Fallible<()> {
        self.live.set_suspended(false);
        // The turns that were under way when it was stopped do not count.
        self.live.read_until(STEP, 16, scale.limit)?;
        let started = Instant::now();
        let seen = self.live.read_until(STEP, scale.window, scale.limit)?;
        let seen = u32::try_from(seen).map_or(f64::NAN, f64::from);
        self.rates.push(seen / started.elapsed().as_secs_f64());
        self.memory = Some(self.live.memory()?);
        self.live.set_suspended(true);
        Ok(())
    }
}

fn cells(name: String, watched: &ObservedRun) -> [String; 6] {
    let megabytes = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
    let memory = |read: fn(ProcessMemory) -> f64| {
        watched.memory.map(read).map_or_else(String::new, megabytes)
    };
    [
        name,
        Summary::of(watched.rates.iter().copied()).shown(),
        memory(|memory| memory.peak),
        memory(|memory| memory.now),
        megabytes(watched.grown),
        format!("{} s", short(watched.fork_time.as_secs_f64())),
    ]
}
