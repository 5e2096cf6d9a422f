//! `raymond clean`: removes runs that have ended, with their seals.
//!
//! A run that is not over, or has worktrees, stays. Each run is locked while it is removed.

use std::collections::BTreeSet;
use std::io::{IsTerminal, stderr, stdin};

use serde::Serialize;

use super::args::readers::CleanArgs;
use super::exit::{CliExitCode, Error};
use super::worktrees::{done, git_runtime};
use super::{output, settings, table};
use crate::actor::context::now;
use crate::cli::run;
use crate::domain::id::RunId;
use crate::domain::run::Run;
use crate::domain::time::Timestamp;
use crate::process::child::orphans;
use crate::process::command::EnvironmentMarker;
use crate::runtime::graphs::{working_dirs, world_of};
use crate::runtime::{directories, seals};
use crate::store::dataspace::Dataspace;
use crate::store::layout::RunsRoot;
use crate::store::user_state::UserState;
use crate::store::view::{ids, last_event_at, load_view};
use crate::store::{self, lock, removal};

/// Runs `raymond clean`.
///
/// # Errors
/// [`Error`] if there is no such run, or it cannot be removed.
pub fn clean(args: &CleanArgs) -> Result<CliExitCode, Error> {
    if args.runs.is_empty() && args.older_than.is_none() {
        return Err(Error::Usage(
            "name the runs to remove, or give --older-than, such as --older-than 7d".to_owned(),
        ));
    }
    let root = args.dir.real_root()?;
    let cleaner = RunCleaner { state: directories::user_state()?, root: &root, args };
    if !args.dry_run
        && let Err(error) = removal::remove_leftovers(&root, Some(&cleaner.state))
    {
        output::warn(&error.to_string());
    }
    let mut report = CleanReport::default();
    let mut removable = Vec::new();
    for id in cleaner.candidates()? {
        match cleaner.examine(&id) {
            Ok(run) => removable.push(run),
            // What was not asked for by its name is not worth a line if it is simply not over.
            Err(CleanRefusal::NotOver(_)) if args.runs.is_empty() => {}
            Err(refusal) => report.keep(id, &refusal),
        }
    }
    if args.dry_run || removable.is_empty() {
        report.removed = removable;
        return cleaner.print(report);
    }
    if !cleaner.is_confirmed(&removable)? {
        output::tell("no run was removed");
        return Ok(CliExitCode::Success);
    }
    for run in removable {
        match cleaner.remove(&run.id) {
            Ok(bytes) => report.removed.push(RemovedRun { bytes, ..run }),
            Err(_) if !root.run(&run.id).path().exists() => {
                output::tell(&format!("another process has removed {} in the meantime", run.id));
            }
            Err(refusal) => report.keep(run.id, &refusal),
        }
    }
    cleaner.print(report)
}

/// The runs that were removed, or would be, and those that stay.
#[derive(Debug, Default, Serialize)]
struct CleanReport {
    dry_run: bool,
    bytes: u64,
    removed: Vec<RemovedRun>,
    kept: Vec<KeptRun>,
}

impl CleanReport {
    fn keep(&mut self, run: RunId, refusal: &CleanRefusal) {
        self.kept.push(KeptRun { run, why: refusal.to_string() });
    }
}

#[derive(Debug, Serialize)]
struct KeptRun {
    run: RunId,
    why: String,
}

#[derive(Debug, Serialize)]
struct RemovedRun {
    #[serde(rename = "run")]
    id: RunId,
    status: &'static str,
    bytes: u64,
    /// True if its directory proves that it has ended.
    proven: bool,
}

/// The reason why a run stays.
#[derive(Debug, thiserror::Error)]
enum CleanRefusal {
    #[error("it is {0}; only runs that have ended are removed")]
    NotOver(&'static str),
    #[error("it cannot be read: {0}")]
    Unreadable(store::Error),
    #[error("its directory does not prove that it has ended; name the run to remove it")]
    Unproven,
    #[error(
        "it has worktrees; `raymond worktrees {0} --prune` removes them, and with --all keeps their work in git"
    )]
    Worktrees(RunId),
    #[error(
        "its directory does not prove how old it is; name it without --older-than to remove it"
    )]
    AgeUnproven,
    #[error("its last event is not old enough")]
    TooYoung,
    #[error("another raymond has locked it, which resumes or removes it")]
    Locked,
    #[error("its directory is a symbolic link")]
    Link,
    #[error("some of its processes are left; `raymond resume {0}` ends them")]
    Processes(RunId),
    #[error("{0}")]
    Other(Error),
}

impl From<Error> for CleanRefusal {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl From<store::Error> for CleanRefusal {
    fn from(error: store::Error) -> Self {
        Self::Other(error.into())
    }
}

struct RunCleaner<'run> {
    state: UserState,
    root: &'run RunsRoot,
    args: &'run CleanArgs,
}

impl RunCleaner<'_> {
    /// Returns the runs that are named, else all; only those that are old enough.
    fn candidates(&self) -> Result<Vec<RunId>, Error> {
        let named = &self.args.runs;
        let mut candidates = if named.is_empty() {
            ids(self.root)?
        } else {
            let found = named.iter().map(|run| settings::find(self.root, run));
            found.collect::<Result<BTreeSet<RunId>, Error>>()?.into_iter().collect()
        };
        if named.is_empty() {
            candidates.retain(|id| self.is_old_enough(id));
        }
        Ok(candidates)
    }

    /// Returns whether the last event of a run is as old as was asked for, by its record.
    fn is_old_enough(&self, id: &RunId) -> bool {
        let last = || last_event_at(&self.root.run(id));
        let is_old = |age| last().is_some_and(|at: Timestamp| now().since(at) >= age);
        self.args.older_than.is_none_or(is_old)
    }

    /// Returns the run if it may be removed.
    fn examine(&self, id: &RunId) -> Result<RemovedRun, CleanRefusal> {
        let view = load_view(self.root, id).map_err(CleanRefusal::Unreadable)?;
        let status = table::word(&view);
        if view.held {
            return Err(CleanRefusal::NotOver("running"));
        }
        let proven = self.check(id, &view.run, status)?;
        let bytes = removal::size(self.root, id).map_err(CleanRefusal::Unreadable)?;
        Ok(RemovedRun { id: id.clone(), status, bytes, proven })
    }

    /// Checks that a run that no raymond holds may be removed; returns whether its directory proves that it has ended.
    fn check(&self, id: &RunId, run: &Run, status: &'static str) -> Result<bool, CleanRefusal> {
        if run.can_resume() {
            return Err(CleanRefusal::NotOver(status));
        }
        if self.root.run(id).path().is_symlink() {
            return Err(CleanRefusal::Link);
        }
        if run.workflow_id != *id {
            return Err(CleanRefusal::NotOver("a copy of another run"));
        }
        if !self.is_old_enough(id) {
            return Err(CleanRefusal::TooYoung);
        }
        let is_proven = seals::check_ended(&self.state, self.root, run).is_ok();
        if !is_proven && self.args.runs.is_empty() {
            return Err(CleanRefusal::Unproven);
        }
        if !is_proven && self.args.older_than.is_some() {
            return Err(CleanRefusal::AgeUnproven);
        }
        // What is recorded of worktrees is not proven, so they are not removed on the way.
        if self.root.worktrees(id).symlink_metadata().is_ok()
            && working_dirs(self.root, id, &run.settings).count() > 0
        {
            return Err(CleanRefusal::Worktrees(id.clone()));
        }
        let marker = EnvironmentMarker { run: id.clone(), dir: self.root.path().to_owned() };
        if !orphans::find(&marker).is_empty() {
            return Err(CleanRefusal::Processes(id.clone()));
        }
        Ok(is_proven)
    }

    /// Returns whether the runs are to be removed: it was said, or the person at the terminal says so.
    fn is_confirmed(&self, runs: &[RemovedRun]) -> Result<bool, Error> {
        if self.args.yes {
            return Ok(true);
        }
        if !(stdin().is_terminal() && stderr().is_terminal()) {
            return Err(Error::Usage(format!(
                "cannot ask whether to remove {} without a terminal; use --yes to remove without asking, or --dry-run to only show",
                amount(runs)
            )));
        }
        output::tell_lines(&table::text(&runs.iter().map(row).collect::<Vec<_>>()));
        let question = format!("Type yes to remove {}: ", amount(runs));
        Ok(run::is_answered_yes(&question))
    }

    /// Removes a run, and returns the number of bytes of its files.
    fn remove(&self, id: &RunId) -> Result<u64, CleanRefusal> {
        let _lock = match lock::acquire(&self.root.run(id).lock(), id) {
            Err(store::Error::Held { .. }) => return Err(CleanRefusal::Locked),
            lock => lock?,
        };
        // It may be another run by now, or have been resumed while the question stood.
        let run = load_view(self.root, id).map_err(CleanRefusal::Unreadable)?.run;
        self.check(id, &run, "resumed")?;
        Dataspace::of(self.root).with_key(&self.state.key()?).ended(id)?;
        self.remove_snapshots(id, &run)?;
        Ok(removal::remove(self.root, id, Some(&self.state))?)
    }

    /// Removes the refs of the snapshots of a run's worktrees. They stay if git cannot remove them.
    fn remove_snapshots(&self, id: &RunId, run: &Run) -> Result<(), CleanRefusal> {
        if run.worktrees.is_empty() && !self.root.worktrees(id).exists() {
            return Ok(());
        }
        let world = world_of(self.root, id, &run.settings);
        let removed = git_runtime(self.root, id)?.block_on(world.remove_snapshots());
        if let Err(error) = done(removed) {
            output::warn(&format!("the snapshots of the worktrees of {id} stay in git: {error}"));
        }
        Ok(())
    }

    fn print(&self, mut report: CleanReport) -> Result<CliExitCode, Error> {
        let exit = if report.kept.is_empty() || self.args.runs.is_empty() {
            CliExitCode::Success
        } else {
            CliExitCode::Usage
        };
        if self.args.json {
            report.dry_run = self.args.dry_run;
            report.bytes = report.removed.iter().map(|run| run.bytes).sum();
            output::print_json(&report)?;
            return Ok(exit);
        }
        output::print(&table::text(&report.removed.iter().map(row).collect::<Vec<_>>()))?;
        for KeptRun { run, why } in &report.kept {
            output::tell(&format!("{run} stays: {why}"));
        }
        let outcome = match (report.removed.as_slice(), self.args.dry_run) {
            ([], _) => "no run was removed".to_owned(),
            (runs, true) => format!("{} would be removed", amount(runs)),
            (runs, false) => format!("{} removed", amount(runs)),
        };
        output::tell(&outcome);
        Ok(exit)
    }
}

fn row(run: &RemovedRun) -> Vec<String> {
    let unproven = if run.proven { "" } else { "its directory does not prove that it has ended" };
    vec![run.id.to_string(), run.status.to_owned(), size(run.bytes), unproven.to_owned()]
}

/// Returns the number and the size of runs.
fn amount(runs: &[RemovedRun]) -> String {
    let bytes = runs.iter().map(|run| run.bytes).sum();
    format!("{} of {}", output::counted(runs.len(), "run"), size(bytes))
}

/// Returns a number of bytes in a unit that people read.
fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "kB")];
    let unit = UNITS.iter().find(|(unit, _)| bytes >= *unit);
    unit.map_or_else(
        || format!("{bytes} bytes"),
        |(unit, name)| format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_is_shown_in_a_fitting_unit() {
        let sizes = [0, 999, 1000, 3_450_000, 12_000_000_000].map(size);
        assert_eq!(sizes, ["0 bytes", "999 bytes", "1.0 kB", "3.4 MB", "12.0 GB"]);
    }
}
