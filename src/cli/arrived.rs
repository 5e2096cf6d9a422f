//! The lines about what has come for a run since it stopped: answers and orders in its inbox, and facts.

use super::exit::Error;
use crate::domain::fact::{Fact, FactChange};
use crate::domain::person_wait::AwaitedSignal;
use crate::domain::run::PauseReason;
use crate::domain::tool_call::printable_line;
use crate::runtime::observing::agent_entries::{InboxItem, apply_commands};
use crate::runtime::{directories, run_facts};
use crate::store::dataspace::{Dataspace, DataspaceWatcher};
use crate::store::inbox;
use crate::store::layout::RunsRoot;
use crate::store::view::RunView;

/// The most commands of an inbox that are named.
const MAX_INBOX_LINES: usize = 12;

/// What has come for a stopped run since it was paused, a line each.
#[derive(Debug, Default)]
struct Arrivals {
    inbox: Vec<String>,
    facts: Vec<String>,
    has_answer: bool,
    has_order: bool,
}

/// Returns a line for each answer, order and fact that has come since the run was paused, and how it goes on; empty if
/// none has.
///
/// # Errors
/// [`Error::Store`] if they cannot be read.
pub(super) fn arrived(root: &RunsRoot, view: &RunView) -> Result<String, Error> {
    let Arrivals { inbox, facts, .. } = found(root, view)?;
    let mut lines = [inbox, facts].concat();
    if !lines.is_empty() {
        lines.push(format!("to continue: raymond resume {}", view.run.workflow_id));
    }
    Ok(lines.into_iter().map(|line| line + "\n").collect())
}

/// Returns what has come for a stopped run, and how it is resumed, in short; `None` if nothing has, or if that cannot
/// be read.
pub(super) fn in_short(root: &RunsRoot, view: &RunView) -> Option<String> {
    let Arrivals { facts, has_answer, has_order, .. } = found(root, view).ok()?;
    // If the run waits for something else, report that reason rather than an order to one agent.
    let is_parked = matches!(view.run.pause, Some(PauseReason::Parked { .. }));
    let what = if has_answer {
        "an answer"
    } else if !facts.is_empty() {
        "a fact"
    } else if is_parked && has_order {
        "an order"
    } else {
        return None;
    };
    Some(format!("{what} has come; resume it: raymond resume {}", view.run.workflow_id))
}

impl Arrivals {
    fn add(&mut self, item: InboxItem) {
        let line = match item {
            InboxItem::Answer(answered) => {
                self.has_answer = true;
                let (agent, name) = (&answered.turn().agent, answered.name());
                format!("{agent}/{name} is answered: {}", answered.given())
            }
            InboxItem::Order(sentence) => {
                self.has_order = true;
                format!("waits in the inbox: {sentence}")
            }
            InboxItem::LateOrder(sentence) => {
                format!("waits in the inbox, but too late: {sentence}")
            }
        };
        self.inbox.push(printable_line(&line));
    }
}

fn found(root: &RunsRoot, view: &RunView) -> Result<Arrivals, Error> {
    let run = &view.run;
    let mut found = Arrivals::default();
    if view.held || !run.can_resume() {
        return Ok(found);
    }
    let (id, key) = (&run.workflow_id, directories::user_state()?.key()?);
    let waiting = inbox::waiting(&root.run(id), &key)?;
    if !waiting.is_empty() {
        for item in apply_commands(&mut run.clone(), &root.run(id), waiting) {
            found.add(item);
        }
    }
    let more = found.inbox.len().saturating_sub(MAX_INBOX_LINES);
    if more > 1 {
        found.inbox.truncate(MAX_INBOX_LINES);
        found.inbox.push(format!("and {more} more"));
    }
    if !matches!(run.pause, Some(PauseReason::Asking { .. } | PauseReason::Waiting { .. })) {
        return Ok(found);
    }
    let read_facts = run_facts::wanted(run);
    let waits = run.external_waits();
    let awaited: Vec<AwaitedSignal> =
        waits.flat_map(|wait| AwaitedSignal::all_in(&wait.awaiting)).collect();
    if !awaited.is_empty() && !read_facts.is_empty() {
        let real = directories::root(root.path())?;
        let space = Dataspace::of(&real).with_key(&key);
        let seen = DataspaceWatcher::new(space).changes(&read_facts, &run.facts)?;
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
