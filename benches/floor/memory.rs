//! What live agents cost in memory: all but one wait for the permit.

use std::time::Duration;

use crate::Fallible;
use crate::live::{Live, Memory};
use crate::place::Place;
use crate::raymond::Run;
use crate::scale::Scale;
use crate::table::{Table, short, whole};
use crate::tree;

/// What the others are compared with.
const FEW: usize = 8;
/// After the last record: what it caused has happened by then.
const SETTLED: Duration = Duration::from_millis(300);

struct Taken {
    memory: Memory,
    time: Duration,
    steps: f64,
}

#[expect(clippy::unnecessary_wraps, reason = "other figures can fail as a whole")]
pub(crate) fn figure(place: &Place, scale: &Scale) -> Fallible<Vec<Table>> {
    let mut table = Table::new(
        "Memory of raymond while its agents live, one of them with a turn",
        ["live agents", "peak", "now", "peak an agent", "all born after"],
    );
    for (who, counts) in
        [("scripted", scale.live_scripted), ("fake", std::slice::from_ref(&scale.live))]
    {
        let mut few = None;
        for &agents in [FEW].iter().chain(counts) {
            let number = u32::try_from(agents).map_or(f64::NAN, f64::from);
            let what = format!("{}, {who}", whole(number));
            match taken(place, who, agents, scale) {
                Ok(taken) => {
                    let few = *few.get_or_insert(taken.memory.peak);
                    table.row(cells(what, &taken, (taken.memory.peak - few) / number));
                }
                Err(why) => table.note(format!("{what}: not measured: {why}")),
            }
        }
    }
    table.note("VmHWM and VmRSS; an agent's share is the peak beyond that with 8 agents.");
    Ok(vec![table])
}

fn cells(what: String, taken: &Taken, each: f64) -> [String; 5] {
    [
        what,
        megabytes(taken.memory.peak),
        megabytes(taken.memory.now),
        if each > 0.0 { format!("{} B", whole(each)) } else { String::new() },
        format!("{} s, {} steps", short(taken.time.as_secs_f64()), whole(taken.steps)),
    ]
}

fn taken(place: &Place, who: &str, agents: usize, scale: &Scale) -> Fallible<Taken> {
    let tree = tree::grow(place, agents)?;
    let agent = if who == "scripted" { "scripted" } else { "claude" };
    let options = ["--max-procs", "1", "--agent", agent, "--shutdown", "100ms"];
    let mut run = Run::new(place, &tree.workflow, &[], &options)?;
    run.command.env("FAKE_CLAUDE", tree.workflow.path());
    let mut live = Live::start(run)?;
    let time = live.until_records(tree.steps + 1, scale.limit)?;
    std::thread::sleep(SETTLED);
    let steps = u32::try_from(tree.steps).map_or(f64::NAN, f64::from);
    Ok(Taken { memory: live.memory()?, time, steps })
}

fn megabytes(bytes: f64) -> String {
    format!("{:.1} MB", bytes / 1e6)
}
