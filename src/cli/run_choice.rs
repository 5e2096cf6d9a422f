//! The run that a command is about: by its id, by the beginning of one, as the last, or by asking at the terminal.
//!
//! A run that this process is to supervise, opened: on this machine, or taken over from an engine.

use std::io::{IsTerminal, stderr, stdin};

use crate::actor::context::now;
use crate::cli::args::NamedRunArgs;
use crate::cli::exit::Error;
use crate::cli::runs_dir::DirArgs;
use crate::cli::{age, engine, list, output, runs_dir};
use crate::domain::id::RunId;
use crate::domain::time::Timestamp;
use crate::runtime::sharing::{ClaimedRun, RunEngine, take_over};
use crate::runtime::{self, directories};
use crate::store::layout::RunsRoot;
use crate::store::run_store::{LockedRun, RecoveredRun};
use crate::store::user_state::UserState;
use crate::store::view::{ids_beginning, newest_first, no_such_run};

/// The most runs that an error or a question lists.
const MAX_CANDIDATES: usize = 10;
const MAX_CHOICES: usize = 20;

/// Returns the run that is named; asks for one on a terminal if none is.
///
/// # Errors
/// [`Error::Usage`] if none is named and nobody can be asked, or the beginning of an id fits several runs;
/// [`Error::Store`] if there is no such run.
pub(super) fn chosen(named: &NamedRunArgs, root: &RunsRoot) -> Result<RunId, Error> {
    if let Some(run) = &named.run {
        return find(root, run);
    }
    let runs = newest_first(root)?;
    let Some((last, _)) = runs.first() else { return Err(no_runs(root)) };
    if named.last {
        return Ok(last.clone());
    }
    if stdin().is_terminal() && stderr().is_terminal() {
        return ask(root, &runs);
    }
    Err(Error::Usage(
        "name a run, or give --last for the run that was started last; `raymond list` shows all runs".to_owned(),
    ))
}

/// Returns the run of this id, else the only one whose id begins with it.
///
/// # Errors
/// As [`chosen`].
pub(super) fn find(root: &RunsRoot, beginning: &RunId) -> Result<RunId, Error> {
    match ids_beginning(root, beginning)?.as_slice() {
        [] => Err(match runs_dir::elsewhere(root, beginning) {
            Some(other) => Error::Usage(format!(
                "no run {beginning} in {}; there is one in {other}: give --dir {other}",
                std::path::absolute(root.runs()).unwrap_or(root.runs()).display(),
            )),
            None => no_such_run(root, beginning).into(),
        }),
        [one] => Ok(one.clone()),
        several => Err(Error::Usage(ambiguous(beginning, several))),
    }
}

/// Returns the error for a directory without runs.
pub(super) fn no_runs(root: &RunsRoot) -> Error {
    Error::Usage(format!("no runs in {}; start one: raymond run PATH", root.runs().display()))
}

fn ambiguous(beginning: &RunId, candidates: &[RunId]) -> String {
    let shown: Vec<&str> = candidates.iter().take(MAX_CANDIDATES).map(RunId::as_str).collect();
    let more = match candidates.len().saturating_sub(MAX_CANDIDATES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "{} runs begin with {beginning}: {}{more}; write more of the id",
        candidates.len(),
        shown.join(", ")
    )
}

/// Asks the person at the terminal which of the newest runs they mean.
fn ask(root: &RunsRoot, runs: &[(RunId, Timestamp)]) -> Result<RunId, Error> {
    let shown = &runs[..runs.len().min(MAX_CHOICES)];
    let now = now();
    let row = |(number, (id, started)): (usize, &(RunId, Timestamp))| {
        let age = age::text(now.since(*started));
        vec![format!("{:>2}", number + 1), id.to_string(), list::word_of(root, id).to_owned(), age]
    };
    let rows: Vec<Vec<String>> = shown.iter().enumerate().map(row).collect();
    let question = match shown.len() {
        1 => "which run? 1, or an id (empty: none):".to_owned(),
        count => format!("which run? 1-{count}, or an id (empty: none):"),
    };
    output::tell_lines(&format!("{}{question}", output::table(&rows)));
    let mut line = String::new();
    let read = stdin().read_line(&mut line);
    read.map_err(|error| Error::Io { doing: "read the choice from", path: "stdin".into(), error })?;
    let answer = line.trim();
    if answer.is_empty() {
        return Err(Error::Usage("no run was chosen".to_owned()));
    }
    let numbered =
        answer.parse::<usize>().ok().and_then(|number| shown.get(number.checked_sub(1)?));
    match numbered {
        Some((id, _)) => Ok(id.clone()),
        None => find(root, &RunId::parse(answer)?),
    }
}

/// The place that a run is opened from.
#[derive(Debug)]
pub(super) struct RunAccess<'a> {
    root: &'a RunsRoot,
    /// The engine, and the state with the key that proves the copy.
    engine: Option<(RunEngine, UserState)>,
}

/// A run that was opened.
pub(super) struct OpenedRun {
    pub(super) store: LockedRun,
    pub(super) recovered: RecoveredRun,
    /// The right to supervise it in its engine.
    pub(super) held: Option<ClaimedRun>,
}

impl<'a> RunAccess<'a> {
    /// Returns the access for the directory or the engine that was named.
    ///
    /// # Errors
    /// [`Error`] if the engine cannot be reached.
    pub(super) fn of(dir: &DirArgs, root: &'a RunsRoot) -> Result<Self, Error> {
        let engine = match engine::of_run(dir)? {
            Some(engine) => Some((engine, directories::user_state()?)),
            None => None,
        };
        Ok(Self { root, engine })
    }

    /// Opens a run.
    ///
    /// # Errors
    /// [`runtime::Error`] if there is no such run, another raymond supervises it, or it cannot be recovered.
    pub(super) fn open(&self, id: &RunId) -> Result<OpenedRun, runtime::Error> {
        if let Some((engine, state)) = &self.engine {
            let (store, recovered, held) = take_over(engine, id, self.root, state)?;
            return Ok(OpenedRun { store, recovered, held: Some(held) });
        }
        let (store, recovered) = LockedRun::open(self.root, id)?;
        Ok(OpenedRun { store, recovered, held: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambiguous_beginning_lists_ten_candidates() {
        let run = |name: String| RunId::parse(&name).expect("an id");
        let two = [run("tour-1".into()), run("tour-2".into())];
        assert_eq!(
            ambiguous(&run("tour".into()), &two),
            "2 runs begin with tour: tour-1, tour-2; write more of the id"
        );
        let many: Vec<RunId> = (0..12).map(|number| run(format!("t{number}"))).collect();
        assert_eq!(
            ambiguous(&run("t".into()), &many),
            "12 runs begin with t: t0, t1, t2, t3, t4, t5, t6, t7, t8, t9 and 2 more; write more of the id"
        );
    }
}
