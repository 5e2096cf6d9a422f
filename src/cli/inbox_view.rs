//! The commands in the inbox of a run that nobody executes: applied to a view of the run.

use super::accepted_answer::AcceptedAnswer;
use super::exit::Error;
use crate::actor::clock::now;
use crate::domain::apply::apply;
use crate::domain::decide::answer as decide;
use crate::domain::event::{Event, Record, RunCommand};
use crate::domain::run::Run;
use crate::plugin::sentence::sentence;
use crate::proof::ProofKey;
use crate::runtime::directories;
use crate::store::inbox;
use crate::store::layout::{RunDir, RunsRoot};
use crate::store::view::RunView;

/// The commands that a stopped run takes once it is resumed.
#[derive(Debug, Default)]
pub(super) struct InboxCommands {
    /// The answers that it accepts.
    pub(super) answers: Vec<AcceptedAnswer>,
    /// The sentences about the orders to its agents.
    pub(super) orders: Vec<String>,
}

/// Applies the commands in the inbox to this view of the run, and returns them.
///
/// # Errors
/// [`Error::Store`] if the inbox cannot be read.
pub(super) fn taken_from_inbox(
    run: &mut Run,
    dir: &RunDir,
    key: &ProofKey,
) -> Result<InboxCommands, Error> {
    let mut taken = InboxCommands::default();
    let entries =
        if dir.inbox().is_dir() { inbox::list(&dir.inbox(), Some(key))? } else { Vec::new() };
    for entry in entries {
        let Some(command) = entry.command else { continue };
        match command {
            RunCommand::Answer(given) => {
                let accepted = decide(run, &given).ok().and_then(AcceptedAnswer::of);
                if let Some(accepted) = accepted {
                    apply_event(run, accepted.event());
                    taken.answers.push(accepted);
                }
            }
            // Whoever stops a run or lets failed agents live again, does not wait for an answer.
            RunCommand::Stop | RunCommand::Retry(_) => {}
            RunCommand::Tell(_)
            | RunCommand::Hold(_)
            | RunCommand::Release(_)
            | RunCommand::Edit(_)
            | RunCommand::Attach(_)
            | RunCommand::StopAgent { .. } => {
                let order = apply_event(run, Event::CommandReceived { id: entry.name, command });
                taken.orders.push(sentence(&order));
            }
        }
    }
    Ok(taken)
}

/// Applies an event to this view of the run, and returns its record.
pub(super) fn apply_event(run: &mut Run, event: Event) -> Record {
    let record = Record::next(run, now(), event);
    let _ = apply(run, &record);
    record
}

/// Returns the run as it is once it has taken the commands in its inbox. One that somebody executes takes them soon, and
/// an inbox that cannot be read hides nothing: in both cases the run is as its journal says.
pub(super) fn with_inbox(root: &RunsRoot, view: &RunView) -> Run {
    let run = &view.run;
    let taken = || -> Result<Run, Error> {
        let key = directories::user_state()?.key()?;
        let mut taken = run.clone();
        taken_from_inbox(&mut taken, &root.run(&run.workflow_id), &key)?;
        Ok(taken)
    };
    let takes_more = run.can_resume() && !view.held;
    if takes_more { taken().unwrap_or_else(|_| run.clone()) } else { run.clone() }
}
