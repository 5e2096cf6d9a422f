//! Ten thousand live agents: the memory they take, the speed of their steps, and the time until they are
//! ready again after a kill.
//!
//! The replies are scripted. With a process for each step, the creation of ten thousand agents would take
//! minutes, and the processes would hide the cost of the agents. All agents loop in one state, a few at a
//! time, and wait for a permit in between.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::Fallible;
use crate::goals::{Bound, Goals};
use crate::live::{Live, Memory};
use crate::place::Place;
use crate::raymond::Run;
use crate::scale::Scale;
use crate::summary::Summary;
use crate::table::{Table, short, whole};
use crate::tree;

/// The number of agents that the many are compared with.
const FEW: usize = 100;
/// The number of turns that run at the same time.
const BESIDE: &str = "16";
const STEP: &str = "\"event\":\"step_finished\"";
/// The wait after the last record, in which its effects happen.
const SETTLED: Duration = Duration::from_millis(300);

/// The directory of a run with so many agents; no raymond runs it.
struct Crowd {
    dir: PathBuf,
    born: Duration,
    peak: f64,
}

struct Watched {
    live: Live,
    born: Duration,
    grown: f64,
    rates: Vec<f64>,
    memory: Option<Memory>,
}

pub(crate) fn figure(place: &Place, scale: &Scale, goals: &mut Goals) -> Fallible<Vec<Table>> {
    let [mut few, mut many] = [watch(place, FEW, scale)?, watch(place, scale.live, scale)?];
    for _ in 0..scale.windows {
        few.window(scale)?;
        many.window(scale)?;
    }
    let number = whole(u32::try_from(scale.live).map_or(f64::NAN, f64::from));
    let ratios = Summary::of(few.rates.iter().zip(&many.rates).map(|(few, many)| many / few));
    goals.add(
        format!("steps/s with {number} live agents over {FEW}"),
        ratios.median(),
        Bound::AtLeast(0.85),
        "",
    );
    let mut table = Table::new(
        "Live agents, 16 of them with a turn, scripted replies",
        ["live agents", "steps/s", "peak", "now", "peak while born", "born within"],
    );
    for (name, watched) in [(FEW.to_string(), &few), (number.clone(), &many)] {
        table.row(cells(name, watched));
    }
    table.note(format!(
        "Steps a second with {number} over {FEW}: {}, pair by pair.",
        ratios.shown()
    ));
    table
        .note("VmHWM and VmRSS. They are born with a permit each, then killed, and go on with 16.");
    let kills = kills(many, scale, &number, goals)?;
    Ok(vec![table, kills])
}

/// Kills raymond several times, and measures the time until it is ready again.
fn kills(many: Watched, scale: &Scale, number: &str, goals: &mut Goals) -> Fallible<Table> {
    let mut peak = many.memory.map_or(f64::NAN, |memory| memory.peak);
    let mut live = many.live;
    let [mut resumed, mut ready] = [Vec::new(), Vec::new()];
    for _ in 0..scale.kills {
        live = Live::start(Run::again(live.kill()?, &["--max-procs", BESIDE])?)?;
        live.until("\"event\":\"run_resumed\"", 1, scale.limit)?;
        resumed.push(live.started.elapsed().as_secs_f64());
        // The first of the records may have been read together with `run_resumed`; those count as well.
        live.until(STEP, 16, scale.limit)?;
        ready.push(live.started.elapsed().as_secs_f64());
        peak = peak.max(live.memory()?.peak);
    }
    let [resumed, ready] = [Summary::of(resumed), Summary::of(ready)];
    goals.add(
        format!("peak memory with {number} live agents"),
        peak / 1e6,
        Bound::AtMost(48.0),
        " MB",
    );
    goals.add(
        format!("{number} agents ready after a kill"),
        ready.median(),
        Bound::AtMost(1.5),
        " s",
    );
    let mut table = Table::new(
        "After kill -9: seconds from `raymond run RUN` until …, median (least–greatest)",
        ["live agents", "all is read", "turns end", "kills"],
    );
    let kills = scale.kills.to_string();
    table.row([number.to_owned(), resumed.shown(), ready.shown(), kills]);
    table.note(
        "Read: the journal says that the run goes on. Turns end: 16 more records of finished",
    );
    table.note(
        "steps are durable, so whoever came first has had a turn; that is held against the goal.",
    );
    Ok(table)
}

fn watch(place: &Place, agents: usize, scale: &Scale) -> Fallible<Watched> {
    let crowd = crowd(place, agents, scale)?;
    // The script has changed since the run began.
    let options = ["--max-procs", BESIDE, "--migrate"];
    let mut live = Live::start(Run::again(crowd.dir, &options)?)?;
    live.until(STEP, scale.window, scale.limit)?;
    live.stand_still(true);
    let (rates, memory) = (Vec::new(), None);
    Ok(Watched { live, born: crowd.born, grown: crowd.peak, rates, memory })
}

fn crowd(place: &Place, agents: usize, scale: &Scale) -> Fallible<Crowd> {
    let tree = tree::grow(place, agents)?;
    let all = (2 * agents).to_string();
    let options = ["--agent", "scripted", "--max-procs", &all];
    let mut live = Live::start(Run::new(place, &tree.workflow, &[], &options)?)?;
    live.until(STEP, tree.steps, scale.limit)?;
    let born = live.started.elapsed();
    std::thread::sleep(SETTLED);
    let peak = live.memory()?.peak;
    let dir = live.kill()?;
    tree.go_round()?;
    Ok(Crowd { dir, born, peak })
}

impl Watched {
    /// Lets raymond continue for a window of steps, and measures their rate.
    fn window(&mut self, scale: &Scale) -> Fallible<()> {
        self.live.stand_still(false);
        // The turns that were under way when it was stopped do not count.
        self.live.until(STEP, 16, scale.limit)?;
        let started = Instant::now();
        let seen = self.live.until(STEP, scale.window, scale.limit)?;
        let seen = u32::try_from(seen).map_or(f64::NAN, f64::from);
        self.rates.push(seen / started.elapsed().as_secs_f64());
        self.memory = Some(self.live.memory()?);
        self.live.stand_still(true);
        Ok(())
    }
}

fn cells(name: String, watched: &Watched) -> [String; 6] {
    let megabytes = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
    let memory =
        |read: fn(Memory) -> f64| watched.memory.map(read).map_or_else(String::new, megabytes);
    [
        name,
        Summary::of(watched.rates.iter().copied()).shown(),
        memory(|memory| memory.peak),
        memory(|memory| memory.now),
        megabytes(watched.grown),
        format!("{} s", short(watched.born.as_secs_f64())),
    ]
}
