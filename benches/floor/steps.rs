//! Durable steps a second beside the floor, and the processor time of a step.

use crate::Fallible;
use crate::bench_folder::BenchFolder;
use crate::chain;
use crate::compare::{ComparisonRounds, rounds};
use crate::goals::{GoalBound, Goals};
use crate::scale::Scale;
use crate::spent::SpentTime;
use crate::table::{Table, whole};

pub(crate) fn figure(
    place: &BenchFolder,
    scale: &Scale,
    goals: &mut Goals,
) -> Fallible<Vec<Table>> {
    let single = rounds(place, &chain::alone(place, 1)?, 1, 1, scale)?;
    let mut taken = Vec::new();
    for &agents in scale.agents {
        let (workflow, steps) = if agents == 1 {
            (chain::alone(place, scale.steps)?, scale.steps)
        } else {
            chain::beside(place, agents, scale.steps / agents)?
        };
        taken.push((agents, rounds(place, &workflow, steps, agents, scale)?));
    }
    for (agents, rounds) in &taken {
        let [_, _, ratio] = rounds.summaries(|spent| 1.0 / spent.wall.as_secs_f64());
        let (goal, own_goal) = if *agents == 1 { (0.75, 0.20) } else { (0.90, 0.12) };
        let name = format!("durable steps/s over the floor's, {agents} at a time");
        goals.add(name, ratio.median(), GoalBound::AtLeast(goal), "");
        let processor_time = |spent: &SpentTime| spent.cpu.map_or(f64::NAN, |cpu| cpu.own_time);
        let beyond = rounds.differences(processor_time).scaled(1e3 / rounds.steps);
        let name = "  own processor time a step beyond the floor's";
        goals.add(name, beyond.median(), GoalBound::AtMost(own_goal), " ms");
    }
    let start_and_end = single.differences(|spent| spent.wall.as_secs_f64() * 1e3);
    let name = "a run of one step beyond its process";
    goals.add(name, start_and_end.median(), GoalBound::AtMost(5.0), " ms");
    Ok(vec![speed(&taken, &single), processor(&taken)])
}

fn speed(taken: &[(usize, ComparisonRounds)], single: &ComparisonRounds) -> Table {
    let mut table = Table::new(
        "Durable steps a second, median (least–greatest)",
        ["", "floor", "raymond", "of the floor", "rounds"],
    );
    for (agents, rounds) in taken {
        let [floor, raymond, ratio] =
            rounds.summaries(|spent| rounds.steps / spent.wall.as_secs_f64());
        table.row([
            format!("{}, {} steps", named(*agents), whole(rounds.steps)),
            floor.shown(),
            raymond.shown(),
            ratio.shown(),
            rounds.len().to_string(),
        ]);
    }
    let [floor, raymond, _] = single.summaries(|spent| spent.wall.as_secs_f64() * 1e3);
    table.note(format!(
        "A run of one step takes {} ms, its process alone {} ms:",
        raymond.shown(),
        floor.shown()
    ));
    table.note("raymond's start and end, which are in the times above.");
    for (agents, rounds) in taken {
        let [file, flush] = [rounds.disk(|disk| disk.file), rounds.disk(|disk| disk.flush)];
        table.note(format!(
            "Beside {}: a new file took {} ms, a flush {} ms.",
            named(*agents),
            file.scaled(1e3).shown(),
            flush.scaled(1e3).shown(),
        ));
    }
    table.note("The floor makes two files a step; raymond makes three, and flushes its record.");
    table
}

fn processor(taken: &[(usize, ComparisonRounds)]) -> Table {
    let mut table = Table::new(
        "Processor time a step in ms, median (least–greatest)",
        ["", "floor", "raymond", "times the floor"],
    );
    for (agents, rounds) in taken {
        let a_step = |seconds: f64| seconds / rounds.steps * 1e3;
        let [floor, raymond, ratio] =
            rounds.summaries(|spent| spent.cpu.map_or(f64::NAN, |cpu| a_step(cpu.total())));
        let [floor_own, own, _] =
            rounds.summaries(|spent| spent.cpu.map_or(f64::NAN, |cpu| a_step(cpu.own_time)));
        table.row([named(*agents), floor.shown(), raymond.shown(), ratio.shown()]);
        let without = String::new();
        table.row(["  without the fake's own".to_owned(), floor_own.shown(), own.shown(), without]);
    }
    table.note("User and system time of all threads and all children, from /proc/<pid>/stat.");
    table
}

fn named(agents: usize) -> String {
    if agents == 1 { "1 agent".to_owned() } else { format!("{agents} agents at a time") }
}
