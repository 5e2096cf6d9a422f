//! One request at a host: carried out, and answered.

use std::rc::Rc;

use super::hosted_run::HostedRun;
use crate::actor::activity_executor::{ExchangeOutcome, LookupOutcome};
use crate::actor::runner::StopLevel;
use crate::domain::host::Home;
use crate::domain::host_work::{HostAnswer, HostWork, StoredMail};

/// The longest text of a file that a host gives, in bytes, whatever it is asked for.
const LONGEST_TEXT: u64 = 64 * 1024 * 1024;

/// Carries out a request.
pub(super) async fn carried_out(run: &HostedRun, work: HostWork) -> HostAnswer {
    let performer = Rc::clone(&run.performer);
    match work {
        HostWork::Turn { input } => {
            let outcome = Rc::clone(&run.runner).run(*input, Box::new(|_| {})).await;
            HostAnswer::Turn { outcome: Box::new(outcome) }
        }
        HostWork::Perform { step, working_dir, activity, again } => {
            let outcome = performer.perform(step, working_dir, activity.into(), again).await;
            HostAnswer::Activity { outcome }
        }
        HostWork::Text { working_dir, file, max_bytes } => {
            let text = performer.text(working_dir, file, max_bytes.min(LONGEST_TEXT)).await;
            looked(text, |found| HostAnswer::Text { found })
        }
        HostWork::Directory { working_dir } => done(performer.directory(working_dir).await),
        HostWork::Commit { name, working_dir } => {
            let commit = performer.commit(name, working_dir).await;
            looked(commit, |found| HostAnswer::Commit { found })
        }
        HostWork::Worktree { agent, base } => {
            done(performer.worktree(Home::default(), agent, base).await)
        }
        HostWork::Snapshot { tree, turn } => {
            let snapshot = performer.snapshot(Home::default(), tree, turn).await;
            looked(snapshot, |found| HostAnswer::Snapshot { found })
        }
        HostWork::Exchange { tree, direction } => {
            exchanged(performer.exchange(Home::default(), tree, direction).await)
        }
        HostWork::Stop { agent } => {
            run.runner.stop(&agent);
            performer.stop_agent(&agent);
            HostAnswer::Done { outcome: Ok(()) }
        }
        HostWork::KeepCommands { agent, wanted } => {
            performer.keep_commands(&agent, &wanted);
            HostAnswer::Done { outcome: Ok(()) }
        }
        HostWork::StopAll { now } => {
            run.runner.stop_all(if now { StopLevel::Now } else { StopLevel::Patiently });
            performer.begin_no_commands();
            if now {
                performer.stop();
            }
            HostAnswer::Done { outcome: Ok(()) }
        }
        HostWork::Transcript { .. } => {
            // It needs nothing of the run but its files, so it is answered before.
            HostAnswer::Refused { why: "the texts of turns are asked for otherwise".to_owned() }
        }
        HostWork::Stored { mail } => {
            let StoredMail { checksum, bytes } = mail;
            let why = format!(
                "its request of {bytes} bytes, {checksum}, is gone or was changed in the engine"
            );
            HostAnswer::Refused { why }
        }
        HostWork::End => {
            run.runner.stop_all(StopLevel::Now);
            performer.stop();
            Rc::clone(&run.runner).sweep(Vec::new()).await;
            HostAnswer::Done { outcome: Ok(()) }
        }
    }
}

/// Returns whether a request begins something that must not be begun once it was withdrawn.
pub(super) fn begins_something(work: &HostWork) -> bool {
    match work {
        HostWork::Turn { .. } | HostWork::Perform { .. } => true,
        HostWork::Text { .. }
        | HostWork::Directory { .. }
        | HostWork::Commit { .. }
        | HostWork::Worktree { .. }
        | HostWork::Snapshot { .. }
        | HostWork::Exchange { .. }
        | HostWork::Stop { .. }
        | HostWork::KeepCommands { .. }
        | HostWork::StopAll { .. }
        | HostWork::End
        | HostWork::Transcript { .. }
        | HostWork::Stored { .. } => false,
    }
}

fn exchanged(outcome: ExchangeOutcome) -> HostAnswer {
    match outcome {
        ExchangeOutcome::Done(said) => HostAnswer::Exchanged { outcome: Ok(said) },
        ExchangeOutcome::Failed(why) => HostAnswer::Exchanged { outcome: Err(why) },
        ExchangeOutcome::Refused(why) => HostAnswer::Refused { why },
        ExchangeOutcome::Lost(why) => HostAnswer::Lost { why },
        ExchangeOutcome::Ended => HostAnswer::Interrupted,
    }
}

fn done(outcome: LookupOutcome<()>) -> HostAnswer {
    looked(outcome, |outcome| HostAnswer::Done { outcome })
}

fn looked<T>(
    outcome: LookupOutcome<T>,
    answer: impl FnOnce(Result<T, String>) -> HostAnswer,
) -> HostAnswer {
    match outcome {
        LookupOutcome::Done(found) => answer(found),
        LookupOutcome::Stuck(why) => HostAnswer::Stuck { why },
        LookupOutcome::Ended => HostAnswer::Interrupted,
    }
}
