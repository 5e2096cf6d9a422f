//! The processes of a case: raymond itself, and what prepares its run.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use crate::cli::args::cases::TrustSwitches;
use crate::cli::confirm::is_person_at_terminal;
use crate::cli::exit::Error;
use crate::cli::person;
use crate::cli::test::TestSession;
use crate::cli::test::case_dir::CaseDir;
use crate::cli::test::discovery::{LoadedCase, shown};
use crate::cli::test::live_terms::LiveTerms;
use crate::domain::id::RunId;
use crate::fault::STOP_AFTER;
use crate::language::graph::vocabulary::GraphVocabulary;
use crate::process::ancestry;
use crate::process::child::group::ProcessExit;
use crate::process::child::subreaper::ProcessPurpose;
use crate::process::child::{
    ChildEnvironment, ChildProcess, ChildProcessSpec, end_processes_of_run,
};
use crate::process::command::EnvironmentMarker;
use crate::process::helper_environment::{ENGINE, FACTS_ENGINE};
use crate::process::worker_process::StopLevel;
use crate::runtime::error::NO_CHECK_ADVICE;
use crate::runtime::trust::examine;
use crate::runtime::{OTHER_SCRIPT, Workflow, directories, settings_of};
use crate::store::layout::RunsRoot;
use crate::store::trust::FolderTrust;
use crate::store::user_state::UserState;

/// The id of the run of every case.
pub(super) const RUN: &str = "case";

/// The time that a scripted run has to end when its case has taken too long.
const GRACE: Duration = Duration::from_secs(2);

/// The time that a live run has to end: its turns have the time of its option `--shutdown` first.
const LIVE_GRACE: Duration = Duration::from_secs(30);

/// The variables of this process that a scripted run gets.
const PASSED_VARIABLES: [&str; 5] = ["PATH", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// The end of a process of a case.
pub(super) enum CaseEnd {
    Exit(u8),
    Killed,
    TimedOut,
    /// The tests were interrupted.
    Interrupted,
}

/// A case and its directories.
pub(super) struct CaseProcess<'case> {
    pub(super) session: &'case TestSession,
    pub(super) loaded: &'case LoadedCase,
    pub(super) dir: &'case CaseDir,
    /// The terms of a live run; `None` for a scripted one.
    pub(super) live: Option<&'case LiveTerms>,
}

/// A process that is to be run to its end.
struct CaseChild {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: ChildEnvironment,
    limit: Duration,
    grace: Duration,
}

impl CaseProcess<'_> {
    /// Returns whether its run has begun.
    pub(super) fn has_begun(&self) -> bool {
        RunId::parse(RUN).is_ok_and(|id| self.root().run(&id).journal().is_file())
    }

    /// Returns the directory of its runs.
    pub(super) fn root(&self) -> RunsRoot {
        RunsRoot::new(self.dir.runs())
    }

    /// Executes the raymond that runs the case, which dies after a record if `kill_after` says so.
    pub(super) async fn raymond(
        &self,
        arguments: Vec<OsString>,
        kill_after: Option<u64>,
    ) -> Result<CaseEnd, Error> {
        let program = self.session.program.clone();
        let Some(live) = self.live else {
            let mut variables = self.variables();
            if self.dir.replies().is_file() {
                variables.push((OTHER_SCRIPT.into(), self.dir.replies().into()));
            }
            let kill_after = kill_after.map(|record| record.to_string().into());
            variables.extend(kill_after.map(|record| (STOP_AFTER.into(), record)));
            let environment = ChildEnvironment::Only(variables);
            let limit = Duration::from_millis(self.loaded.case.time_limit_ms);
            return self
                .execute(CaseChild { program, arguments, environment, limit, grace: GRACE })
                .await;
        };
        // Claude Code needs the user's home and login; what bends scripted runs is left out.
        let mut added = self.own_variables();
        added.push(("XDG_STATE_HOME".into(), self.dir.state().into()));
        let removed = vec![OTHER_SCRIPT, STOP_AFTER, ENGINE, FACTS_ENGINE];
        let environment = ChildEnvironment::Inherited { removed, added };
        let child =
            CaseChild { program, arguments, environment, limit: live.limit, grace: LIVE_GRACE };
        let end = self.execute(child).await?;
        if !matches!(end, CaseEnd::Exit(_))
            && let Ok(run) = RunId::parse(RUN)
        {
            end_processes_of_run(&EnvironmentMarker { run, dir: self.dir.runs() }).await;
        }
        Ok(end)
    }

    /// Executes a program that prepares the run.
    pub(super) async fn helper(
        &self,
        program: PathBuf,
        arguments: Vec<OsString>,
    ) -> Result<CaseEnd, Error> {
        let environment = ChildEnvironment::Only(self.variables());
        let limit = Duration::from_millis(self.loaded.case.time_limit_ms);
        self.execute(CaseChild { program, arguments, environment, limit, grace: GRACE }).await
    }

    /// Returns the environment of a scripted run: a home of its own, and little else.
    fn variables(&self) -> Vec<(OsString, OsString)> {
        let mut variables: Vec<(OsString, OsString)> = vec![
            ("HOME".into(), self.dir.home().into()),
            ("XDG_STATE_HOME".into(), self.dir.state().into()),
        ];
        let inherited = PASSED_VARIABLES
            .iter()
            .filter_map(|name| Some((OsString::from(*name), std::env::var_os(name)?)));
        variables.extend(inherited);
        variables.extend(self.own_variables());
        variables
    }

    /// Returns the variables that every raymond of a case gets: the trust, and this process as its owner.
    fn own_variables(&self) -> Vec<(OsString, OsString)> {
        // If the workflow cannot be read, the run says so.
        let is_trusted = is_trusted(self.loaded, &self.session.args.trust).unwrap_or(false);
        let state = UserState::new(self.dir.state().join("raymond"));
        let mut variables = vec![
            ("RAYMOND_TRUST".into(), is_trusted.to_string().into()),
            (ancestry::VARIABLE.into(), std::process::id().to_string().into()),
        ];
        variables.extend(person::proof_of_test(&state, &self.dir.runs()));
        variables
    }

    async fn execute(&self, spec: CaseChild) -> Result<CaseEnd, Error> {
        let CaseChild { program, arguments, environment, limit, grace } = spec;
        let failed = |error| Error::Io { doing: "run a case with", path: program.clone(), error };
        let stderr = File::options()
            .append(true)
            .create(true)
            .open(self.dir.complaints())
            .map_err(failed)?;
        let mut child = ChildProcess::start(ChildProcessSpec {
            program: program.clone(),
            arguments,
            cwd: Some(self.dir.work()),
            environment,
            stdin: Stdio::null(),
            stdout: Stdio::null(),
            stderr: stderr.into(),
            purpose: ProcessPurpose::Beside,
            outlives_handle: false,
        })
        .map_err(failed)?;
        let mut stop = self.session.stop.subscribe();
        let unended = tokio::select! {
            exit = child.exited() => return Ok(match exit {
                ProcessExit::Code(code) => CaseEnd::Exit(u8::try_from(code).unwrap_or(u8::MAX)),
                ProcessExit::Signal(_) | ProcessExit::Unseen => CaseEnd::Killed,
            }),
            () = tokio::time::sleep(limit) => CaseEnd::TimedOut,
            _ = stop.wait_for(|level| *level > StopLevel::None) => CaseEnd::Interrupted,
        };
        // A second interrupt ends it at once.
        let at_once = async move {
            let _ = stop.wait_for(|level| *level == StopLevel::Now).await;
        };
        let ended = tokio::select! {
            () = child.end(grace) => true,
            () = at_once => false,
        };
        if !ended {
            child.end(Duration::ZERO).await;
        }
        Ok(unended)
    }

    /// Forgets what was printed to stderr so far.
    pub(super) fn forget_complaints(&self) {
        let _ = std::fs::write(self.dir.complaints(), "");
    }

    /// Returns what it printed to stderr, without the advice of an option that no case has. The script is named as the case,
    /// not as the file that was made of it.
    pub(super) fn complaints(&self) -> String {
        let bytes = std::fs::read(self.dir.complaints()).unwrap_or_default();
        self.named(&String::from_utf8_lossy(&bytes)).replace(NO_CHECK_ADVICE, "")
    }

    /// Returns a text with the names of the case in place of those of its directories.
    pub(super) fn named(&self, text: &str) -> String {
        let script = self.dir.replies().display().to_string();
        let work = self.dir.work().display().to_string();
        text.replace(&script, &shown(&self.loaded.file)).replace(&work, "WORK")
    }
}

/// Returns whether the workflow of a case is trusted: for this test, or as it is now.
///
/// # Errors
/// [`Error`] if it cannot be examined.
pub(super) fn is_trusted(loaded: &LoadedCase, given: &TrustSwitches) -> Result<bool, Error> {
    if person::trust_origin(&given.consent()).is_some() {
        return Ok(true);
    }
    let workflow = Workflow::open(&loaded.entry_path())?;
    let root = RunsRoot::new(std::env::temp_dir().join("raymond-test"));
    let settings = settings_of(&workflow);
    let examined = examine(&root, &workflow, &settings, &GraphVocabulary::default(), None)?;
    Ok(match examined.trust(&directories::user_state()?)? {
        FolderTrust::Trusted => true,
        FolderTrust::Reworded(_) => is_person_at_terminal(),
        FolderTrust::Lost(_) | FolderTrust::OtherKey | FolderTrust::Never => false,
    })
}
