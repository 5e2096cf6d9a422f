//! One parent that forks many agents one after another: whether the cost of a fork depends on the number of
//! agents before it.
//!
//! Each child has one turn and ends. The floor starts as many processes and waits for them. Processor time is
//! compared, because a cost that grows with the number of agents shows there.

use crate::Fallible;
use crate::bench_folder::BenchFolder;
use crate::chain;
use crate::compare::rounds;
use crate::goals::{GoalBound, Goals};
use crate::scale::Scale;
use crate::table::{Table, whole};

/// The number of turns that run at the same time, the parent's among them.
const CONCURRENT_TURNS: usize = 16;

pub(crate) fn figure(
    place: &BenchFolder,
    scale: &Scale,
    goals: &mut Goals,
) -> Fallible<Vec<Table>> {
    let mut table = Table::new(
        "Agents forked one after another by one parent: processor ms a process",
        [
            "agents",
            "floor",
            "raymond",
            "times the floor",
            "steps/s of floor",
            "of raymond",
            "rounds",
        ],
    );
    let mut all = Vec::new();
    for &(agents, most) in scale.forks {
        let (workflow, steps) = chain::forked(place, agents)?;
        let rounds = rounds(place, &workflow, steps, CONCURRENT_TURNS, &scale.longer(most))?;
        let a_step = |seconds: f64| seconds / rounds.steps * 1e3;
        let [floor, raymond, ratio] =
            rounds.summaries(|spent| spent.cpu.map_or(f64::NAN, |cpu| a_step(cpu.total())));
        let [floor_rate, rate, _] =
            rounds.summaries(|spent| rounds.steps / spent.wall.as_secs_f64());
        let agents = u32::try_from(agents).map_or(f64::NAN, f64::from);
        let name = format!("{} agents forked by one: CPU over the floor's", whole(agents));
        goals.add(name, ratio.median(), GoalBound::AtMost(1.2), "");
        all.push(ratio.median());
        table.row([
            whole(agents),
            floor.shown(),
            raymond.shown(),
            ratio.shown(),
            whole(floor_rate.median()),
            whole(rate.median()),
            rounds.len().to_string(),
        ]);
    }
    if let [few, .., many] = all[..] {
        goals.add(
            "  flat: the ratio with many over that with few",
            many / few,
            GoalBound::AtMost(1.1),
            "",
        );
    }
    table
        .note("User and system time of raymond or the floor with all its children: for each agent");
    table.note(format!(
        "one process that forks it and one that plays it; {CONCURRENT_TURNS} at a time. Flat is meant within"
    ));
    table.note("a tenth.");
    Ok(vec![table])
}
