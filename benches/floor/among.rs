//! The effect of many facts: on a conversation whose program looks at them, and on a signal.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Fallible;
use crate::bench_folder::{BenchFolder, WorkflowFolder};
use crate::dialogue::{
    Dialogue, MeasuredTurnCost, OTHERS, RunMoment, SCRIPTED, TURN, real, write_facts,
};
use crate::goals::{GoalBound, Goals};
use crate::live::RunningRaymond;
use crate::raymond::{RAYMOND, RaymondCommand, bare};
use crate::scale::Scale;
use crate::summary::Summary;
use crate::table::{Table, whole};

pub(crate) fn tables(
    place: &BenchFolder,
    scale: &Scale,
    goals: &mut Goals,
) -> Fallible<[Table; 2]> {
    Ok([turns(place, scale, goals)?, signals(place, scale, goals)?])
}

/// The measurements of a conversation among facts.
#[derive(Debug, Clone, Copy)]
struct FactConversationCost {
    cost: MeasuredTurnCost,
    /// Milliseconds until its first turn was over; the facts were looked at before.
    began: f64,
}

fn turns(place: &BenchFolder, scale: &Scale, goals: &mut Goals) -> Fallible<Table> {
    let dialogue = Dialogue { rounds: scale.turns / 5, asserts: false, looks: true };
    let workflow = dialogue.scripted(place)?;
    let mut taken = Vec::new();
    for _ in 0..scale.rounds.min(5) {
        let talk = |number| talk(place, &workflow, dialogue, number, scale);
        taken.push((talk(0)?, talk(scale.facts)?));
    }
    let number = whole(real(scale.facts));
    let title = format!("Among {number} facts that a program looks at each round, in ms");
    let mut table =
        Table::new(&title, ["median (least–greatest)", "without them", "with them", "times"]);
    let mut row = |name: &str, read: fn(&FactConversationCost) -> f64| {
        let [without, with, times] = [
            Summary::of(taken.iter().map(|(without, _)| read(without))),
            Summary::of(taken.iter().map(|(_, with)| read(with))),
            Summary::of(taken.iter().map(|(without, with)| read(with) / read(without))),
        ];
        table.row([name.to_owned(), without.shown(), with.shown(), times.shown()]);
        times.median()
    };
    let wall = row("a turn", |talked| talked.cost.wall);
    let cpu = row("  its processor time", |talked| talked.cost.cpu);
    let first = row("from the start to the first answer", |talked| talked.began);
    goals.add(
        format!("a turn among {number} facts over one without"),
        wall,
        GoalBound::AtMost(1.2),
        "",
    );
    goals.add("  its processor time", cpu, GoalBound::AtMost(1.2), "");
    let name = format!("start to first answer beside {number} facts over one without");
    goals.add(name, first, GoalBound::AtMost(1.5), "");
    table.note("No fact but the one that ends the conversation can matter to it, so none other is on record.");
    Ok(table)
}

fn talk(
    place: &BenchFolder,
    workflow: &WorkflowFolder,
    dialogue: Dialogue,
    number: usize,
    scale: &Scale,
) -> Fallible<FactConversationCost> {
    // The other half is left for the fact that ends the conversation.
    let turns = dialogue.turns() / 2;
    let run = RaymondCommand::new(place, workflow, &[], &SCRIPTED)?;
    write_facts(&run.dir, number)?;
    signal(&run.dir, "0")?;
    let (journal, dir) = (run.journal(), run.dir.clone());
    let mut live = RunningRaymond::start(run)?;
    let start = RunMoment::start(&live);
    let first = start.next(&mut live, 1, scale.limit)?;
    let began = first.at.duration_since(start.at).as_secs_f64() * 1e3;
    let early = first.next(&mut live, turns / 20, scale.limit)?;
    let late = early.next(&mut live, turns * 19 / 20, scale.limit * 4)?;
    signal(&dir, "enough")?;
    live.wait_for_success(scale.limit)?;
    let text = std::fs::read_to_string(journal)?;
    if text.matches(TURN).count() >= dialogue.turns() {
        return Err("the fact that ends the conversation was not seen".into());
    }
    // The key follows the label in facts alone.
    let seen = text.matches(&format!("\"label\":\"{OTHERS}\",\"key\":")).count();
    if seen != 1 {
        return Err(format!("{seen} facts were on record, and one mattered").into());
    }
    Ok(FactConversationCost { cost: late.cost(&early), began })
}

fn signals(place: &BenchFolder, scale: &Scale, goals: &mut Goals) -> Fallible<Table> {
    let [few, many] = [place.folder()?, place.folder()?];
    write_facts(&many, scale.facts)?;
    for dir in [&few, &many] {
        signal(dir, "0")?;
    }
    let mut taken = Vec::new();
    for value in 1..=scale.rounds * 5 {
        let value = value.to_string();
        taken.push((signal(&few, &value)?.as_secs_f64(), signal(&many, &value)?.as_secs_f64()));
    }
    let number = whole(real(scale.facts));
    let mut table = Table::new(
        "One `raymond signal` in ms, median (least–greatest)",
        ["facts there are", "", "times", "signals"],
    );
    let [single, all] = [
        Summary::of(taken.iter().map(|(few, _)| few * 1e3)),
        Summary::of(taken.iter().map(|(_, many)| many * 1e3)),
    ];
    let times = Summary::of(taken.iter().map(|(few, many)| many / few));
    let count = taken.len().to_string();
    table.row(["1".to_owned(), single.shown(), String::new(), count.clone()]);
    table.row([number.clone(), all.shown(), times.shown(), count]);
    let goal = format!("a signal beside {number} facts over one beside 1");
    goals.add(goal, times.median(), GoalBound::AtMost(1.2), "");
    Ok(table)
}

/// Asserts a fact as a person does; returns the time that took.
fn signal(dir: &Path, value: &str) -> Fallible<Duration> {
    let mut command = bare(Command::new(RAYMOND));
    command.args(["signal", OTHERS, "--key", "signalled", "--value", value]);
    command.arg("--dir").arg(dir).env("HOME", dir).stdin(Stdio::null()).stdout(Stdio::null());
    let started = Instant::now();
    let status = command.status()?;
    if !status.success() {
        return Err(format!("raymond signal: {status}").into());
    }
    Ok(started.elapsed())
}
