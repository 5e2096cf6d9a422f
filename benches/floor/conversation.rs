//! A conversation of two roles: whether the cost of a turn grows with the length of the conversation or with
//! the number of facts, and that cost beside the cost of a process alone.
//!
//! A script answers the long conversation, so that only raymond is measured. The fake answers the short one,
//! with a process for each turn, as in `steps`.

use crate::Fallible;
use crate::among;
use crate::bench_folder::BenchFolder;
use crate::compare::rounds;
use crate::dialogue::{Dialogue, MeasuredTurnCost, RunMoment, SCRIPTED, real};
use crate::goals::{GoalBound, Goals};
use crate::live::RunningRaymond;
use crate::raymond::RaymondCommand;
use crate::scale::Scale;
use crate::table::{Table, short, whole};

/// The bounds of the two tenths that are compared, in hundredths of all turns; the start and the end are left
/// out.
const TENTHS: [usize; 4] = [1, 11, 89, 99];

pub(crate) fn figure(
    place: &BenchFolder,
    scale: &Scale,
    goals: &mut Goals,
) -> Fallible<Vec<Table>> {
    let mut tables = vec![long(place, scale, goals)?, beside_the_floor(place, scale, goals)?];
    tables.extend(among::tables(place, scale, goals)?);
    Ok(tables)
}

/// The measurements of a long conversation.
struct ConversationMeasurement {
    first: MeasuredTurnCost,
    last: MeasuredTurnCost,
    /// Bytes: of the journal for each turn, and of the snapshot at the end.
    kept: [f64; 2],
}

fn long(place: &BenchFolder, scale: &Scale, goals: &mut Goals) -> Fallible<Table> {
    let ConversationMeasurement { first, last, kept: [journal, state] } = talk(place, scale)?;
    let number = whole(real(scale.turns));
    let title = format!("A conversation of {number} turns, each asserts a fact: a turn in ms");
    let mut table = Table::new(&title, ["", "first tenth", "last tenth", "last over first"]);
    let mut row = |name: &str, first: f64, last: f64| {
        let [early, late, ratio] = [first, last, last / first].map(short);
        table.row([name.to_owned(), early, late, ratio]);
    };
    row("wall", first.wall, last.wall);
    row("processor", first.cpu, last.cpu);
    let name = "a conversation's last tenth over its first";
    goals.add(name, last.wall / first.wall, GoalBound::AtMost(1.2), "");
    goals.add("  its processor time", last.cpu / first.cpu, GoalBound::AtMost(1.2), "");
    let [journal, state] = [journal, state].map(whole);
    table.note(format!(
        "{journal} bytes of the journal a turn; {state} of the snapshot at the end."
    ));
    Ok(table)
}

fn talk(place: &BenchFolder, scale: &Scale) -> Fallible<ConversationMeasurement> {
    let dialogue = Dialogue { rounds: scale.turns / 2, asserts: true, looks: false };
    let run = RaymondCommand::new(place, &dialogue.scripted(place)?, &[], &SCRIPTED)?;
    let (journal, state) = (run.journal(), run.dir.join("runs/bench/state.json"));
    let mut live = RunningRaymond::start(run)?;
    let mut marks = vec![RunMoment::start(&live)];
    for hundredth in TENTHS {
        let turns = scale.turns * hundredth / 100;
        marks.push(marks[marks.len() - 1].next(&mut live, turns, scale.limit * 10)?);
    }
    live.wait_for_success(scale.limit)?;
    let size =
        |path: &std::path::Path| Fallible::Ok(real(usize::try_from(path.metadata()?.len())?));
    let kept = [size(&journal)? / real(dialogue.turns()), size(&state)?];
    Ok(ConversationMeasurement {
        first: marks[2].cost(&marks[1]),
        last: marks[4].cost(&marks[3]),
        kept,
    })
}

fn beside_the_floor(place: &BenchFolder, scale: &Scale, goals: &mut Goals) -> Fallible<Table> {
    let mut table = Table::new(
        "Turns of a conversation a second, median (least–greatest)",
        ["", "floor", "raymond", "of the floor", "rounds"],
    );
    for (name, asserts) in [("each asserts a fact", true), ("none does", false)] {
        let dialogue = Dialogue { rounds: scale.steps / 4, asserts, looks: false };
        let taken = rounds(
            place,
            &dialogue.echoed(place)?,
            dialogue.turns(),
            1,
            &scale.longer(scale.rounds),
        )?;
        let [floor, raymond, ratio] =
            taken.summaries(|spent| taken.steps / spent.wall.as_secs_f64());
        let number = taken.len().to_string();
        if asserts {
            let name = "a conversation's turns that assert, over the floor's";
            goals.add(name, ratio.median(), GoalBound::AtLeast(0.55), "");
        }
        table.row([name.to_owned(), floor.shown(), raymond.shown(), ratio.shown(), number]);
    }
    table.note("As in `steps`: the fake, one process a turn.");
    Ok(table)
}
