//! The lines about what has come for a run since it stopped: answers and orders in its inbox, and facts.

use super::exit::Error;
use super::inbox_view::taken_from_inbox;
use crate::domain::awaited_signal::AwaitedSignal;
use crate::domain::fact::{Fact, FactChange};
use crate::domain::printable::printable_line;
use crate::domain::run::PauseReason;
use crate::runtime::{directories, run_facts};
use crate::store::dataspace::{Dataspace, DataspaceWatcher};
use crate::store::layout::RunsRoot;
use crate::store::view::RunView;

/// What has come for a stopped run since it was paused, a line each.
#[derive(Debug, Default)]
struct Arrivals {
    answers: Vec<String>,
    orders: Vec<String>,
    facts: Vec<String>,
}

/// Returns a line for each answer, order and fact that has come since the run was paused, and how it goes on; empty if
/// none has.
///
/// # Errors
/// [`Error::Store`] if they cannot be read.
pub(super) fn arrived(root: &RunsRoot, view: &RunView) -> Result<String, Error> {
    let Arrivals { answers, orders, facts } = found(root, view)?;
    let mut lines = [answers, orders, facts].concat();
    if !lines.is_empty() {
        lines.push(format!("it goes on with: raymond resume {}", view.run.workflow_id));
    }
    Ok(lines.into_iter().map(|line| line + "\n").collect())
}

/// Returns what has come for a stopped run, and how it is resumed, in short; `None` if nothing has, or if that cannot be
/// read.
pub(super) fn in_short(root: &RunsRoot, view: &RunView) -> Option<String> {
    let Arrivals { answers, orders, facts } = found(root, view).ok()?;
    // Of a run that waits for something else, the reason is told rather than an order to one agent.
    let is_parked = matches!(view.run.pause, Some(PauseReason::Parked { .. }));
    let what = if !answers.is_empty() {
        "an answer"
    } else if !facts.is_empty() {
        "a fact"
    } else if is_parked && !orders.is_empty() {
        "an order"
    } else {
        return None;
    };
    Some(format!("{what} has come; resume it: raymond resume {}", view.run.workflow_id))
}

fn found(root: &RunsRoot, view: &RunView) -> Result<Arrivals, Error> {
    let run = &view.run;
    let mut found = Arrivals::default();
    if view.held || !run.can_resume() {
        return Ok(found);
    }
    let (id, key) = (&run.workflow_id, directories::user_state()?.key()?);
    let taken = taken_from_inbox(&mut run.clone(), &root.run(id), &key)?;
    for answered in taken.answers {
        let (agent, name) = (&answered.turn().agent, answered.name());
        let line = format!("{agent}/{name} is answered: {}", answered.given());
        found.answers.push(printable_line(&line));
    }
    let order = |told: &String| printable_line(&format!("in its inbox: {told}"));
    found.orders = taken.orders.iter().map(order).collect();
    if !matches!(run.pause, Some(PauseReason::Asking { .. } | PauseReason::Waiting { .. })) {
        return Ok(found);
    }
    let sought = run_facts::sought(run);
    let waits = run.external_waits();
    let awaited: Vec<AwaitedSignal> =
        waits.flat_map(|wait| AwaitedSignal::all_in(&wait.awaiting)).collect();
    if !awaited.is_empty() && !sought.is_empty() {
        let real = directories::root(root.path())?;
        let space = Dataspace::of(&real).with_key(&key);
        let seen = DataspaceWatcher::new(space).changes(&sought, &run.facts)?;
        for change in seen.changes {
            let FactChange::Asserted(fact) = change else { continue };
            let decided = awaited.iter().find(|signal| signal.is_decided_by(&fact));
            let Some(signal) = decided else { continue };
            let Fact { label, key, value, .. } = &fact;
            let line = if signal.is_for_people() {
                format!("{} is asserted", format!("{label} {key}").trim_end())
            } else {
                format!("the run {key} is {value}")
            };
            found.facts.push(printable_line(&format!("{line} since it stopped")));
        }
    }
    Ok(found)
}
