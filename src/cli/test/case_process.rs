//! The processes and directories of a case: raymond itself, what prepares its run, and the terms of a live run.

use std::ffi::OsString;
use std::fs;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::geteuid;
use uuid::Uuid;

use super::discovery::options;
use crate::cli::args::workflows::{LivePermissions, TrustSwitches};
use crate::cli::exit::Error;
use crate::cli::person;
use crate::cli::run::is_person_at_terminal;
use crate::cli::test::TestSession;
use crate::cli::test::discovery::{LoadedCase, shown};
use crate::domain::budget::LivePart;
use crate::domain::id::RunId;
use crate::domain::model::ModelName;
use crate::domain::money::Usd;
use crate::fault::STOP_AFTER;
use crate::language::cases::CaseSetting;
use crate::language::graph::vocabulary::GraphVocabulary;
use crate::language::manifest::dollars;
use crate::plain_file;
use crate::process::ancestry;
use crate::process::child::subreaper::ProcessPurpose;
use crate::process::child::{
    ChildEnvironment, ChildProcess, ChildProcessSpec, ProcessExit, end_processes_of_run,
};
use crate::process::command::EnvironmentMarker;
use crate::process::plugin_process::{ENGINE, FACTS_ENGINE};
use crate::process::worker::StopLevel;
use crate::runtime::checked_workflow::CapturedWorkflow;
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
    pub(super) fn has_started(&self) -> bool {
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
        let mut added = self.spawn_variables();
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

    /// Returns the environment of a scripted run: a separate home, and little else.
    fn variables(&self) -> Vec<(OsString, OsString)> {
        let mut variables: Vec<(OsString, OsString)> = vec![
            ("HOME".into(), self.dir.home().into()),
            ("XDG_STATE_HOME".into(), self.dir.state().into()),
        ];
        let inherited = PASSED_VARIABLES
            .iter()
            .filter_map(|name| Some((OsString::from(*name), std::env::var_os(name)?)));
        variables.extend(inherited);
        variables.extend(self.spawn_variables());
        variables
    }

    /// Returns the variables that every raymond of a case gets: the trust, and this process as its owner.
    fn spawn_variables(&self) -> Vec<(OsString, OsString)> {
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
        let failed = Error::io("run a case with", &program);
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

    /// Returns what it printed to stderr, without the advice of an option that no case has. The script is named as the
    /// case, not as the file that was made of it.
    pub(super) fn complaints(&self) -> String {
        let bytes = std::fs::read(self.dir.complaints()).unwrap_or_default();
        self.named(&String::from_utf8_lossy(&bytes)).replace(NO_CHECK_ADVICE, "")
    }

    /// Returns a text with the names of the case in place of those of its directories.
    pub(super) fn named(&self, text: &str) -> String {
        let script = self.dir.replies().display().to_string();
        let work = self.dir.work().display().to_string();
        text.replace(&script, &shown(&self.loaded.file)).replace(&work, "the case's own directory")
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
    let files = CapturedWorkflow::read(&root, workflow)?;
    let examined = examine(&files, &settings, &GraphVocabulary::default())?;
    Ok(match examined.trust(&directories::user_state()?)? {
        FolderTrust::Trusted => true,
        FolderTrust::Reworded(_) => is_person_at_terminal(),
        FolderTrust::Lost(_) | FolderTrust::OtherKey | FolderTrust::Never => false,
    })
}

// The directories of the cases: each has its own, and none is left behind.
//
// The directory of all of them has a lock that the tests hold while they run. The system drops it when they die, so the
// next tests find what killed ones have left, and remove it.

/// The beginning of the name of a directory of cases.
const PREFIX: &str = "raymond-test-";

/// The file whose lock the tests hold.
const LOCK: &str = "lock";

/// The longest time that it takes to make the lock.
const LOCK_TIME: Duration = Duration::from_mins(1);

/// The directory of all cases of a test, which is removed with it.
#[derive(Debug)]
pub(super) struct CasesDir {
    path: PathBuf,
    /// The lock, until the directory is gone.
    _lock: File,
}

/// The directories of a case, which are removed with it.
#[derive(Debug)]
pub(super) struct CaseDir(PathBuf);

/// Makes a directory that only the user can enter.
fn make(path: &Path) -> Result<(), Error> {
    let mut builder = fs::DirBuilder::new();
    builder.mode(0o700);
    builder.create(path).map_err(Error::io("make the directory", path))
}

/// Removes the directories whose tests were killed. What cannot be removed stays among the temporary files.
fn remove_abandoned(temporary: &Path) {
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let is_of_tests = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // The directory of temporary files may be everyone's.
        let is_of_user =
            entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw());
        if !is_of_tests || !is_of_user {
            continue;
        }
        let is_abandoned = match plain_file::open(&entry.path().join(LOCK)) {
            Ok(lock) => lock.try_lock().is_ok(),
            // Its test was killed before it made the lock, or is about to.
            Err(error) if error.kind() == ErrorKind::NotFound => is_old(&entry),
            Err(_) => false,
        };
        if is_abandoned {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns whether a directory is there for longer than it takes to make its lock.
fn is_old(entry: &fs::DirEntry) -> bool {
    let made = entry.metadata().and_then(|found| found.modified());
    made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > LOCK_TIME))
}

impl CasesDir {
    /// Makes the directory, where the system has its temporary files, and removes those of tests that were killed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn create() -> Result<Self, Error> {
        let temporary = std::env::temp_dir();
        let temporary = temporary.canonicalize().unwrap_or(temporary);
        remove_abandoned(&temporary);
        loop {
            let unique = Uuid::new_v4().simple().to_string();
            let path = temporary.join(format!("{PREFIX}{}", &unique[..12]));
            make(&path)?;
            let file = path.join(LOCK);
            let lock = File::create_new(&file).map_err(Error::io("make the lock", &file))?;
            // Another test that looks just now for what is abandoned may have it, and then removes the directory.
            if lock.try_lock().is_ok() {
                return Ok(Self { path, _lock: lock });
            }
        }
    }

    /// Makes the directories of a run of a case.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn case(&self, name: &str) -> Result<CaseDir, Error> {
        let dir = CaseDir(self.path.join(name));
        make(&dir.0)?;
        for path in [dir.runs(), dir.work(), dir.home(), dir.state()] {
            make(&path)?;
        }
        Ok(dir)
    }
}

impl Drop for CasesDir {
    fn drop(&mut self) {
        // What cannot be removed is among the temporary files all the same.
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl CaseDir {
    /// Returns the directory of the runs.
    pub(super) fn runs(&self) -> PathBuf {
        self.0.join("runs")
    }

    /// Returns the working directory.
    pub(super) fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    /// Returns the home of the user that the run has.
    pub(super) fn home(&self) -> PathBuf {
        self.0.join("home")
    }

    /// Returns the directory of that user's state.
    pub(super) fn state(&self) -> PathBuf {
        self.0.join("state")
    }

    /// Returns the script, if it is not the workflow's own.
    pub(super) fn replies(&self) -> PathBuf {
        self.0.join("replies.yaml")
    }

    /// Returns the file for what the run prints to stderr.
    pub(super) fn complaints(&self) -> PathBuf {
        self.0.join("stderr")
    }
}

impl Drop for CaseDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

// The terms of a live run of a case: the model, the money, the time, and what the person allows.

/// The time that the turns of a live run have to end after an interrupt.
const SHUTDOWN: &str = "5s";

/// The terms of a live run.
#[derive(Debug, Clone)]
pub(super) struct LiveTerms {
    /// The model of states that name none; `None` for that of the workflow.
    pub(super) model: Option<ModelName>,
    /// The part of the money.
    pub(super) part: LivePart,
    /// The time after which the run fails.
    pub(super) limit: Duration,
    /// The permissions that the person gives.
    pub(super) permissions: LivePermissions,
}

impl LiveTerms {
    /// Returns the arguments of `raymond run`: the settings of the case, as far as they are within the terms, and the
    /// terms.
    pub(super) fn arguments(&self, settings: &[CaseSetting]) -> Vec<OsString> {
        let is_replaced = |setting: &CaseSetting| match &*setting.name {
            "model" => self.model.is_some(),
            // Money that runs out has to pause the run, so that it is known that it was cut off.
            "on_budget" => !self.is_case_budget(settings),
            "budget" | "shutdown" => true,
            _ => setting.permission().is_some(),
        };
        let kept: Vec<CaseSetting> =
            settings.iter().filter(|setting| !is_replaced(setting)).cloned().collect();
        let mut arguments = options(&kept);
        arguments.extend(self.model.iter().map(|model| format!("--model={model}").into()));
        arguments.push(format!("--budget={}", self.budget(settings).dollars()).into());
        arguments.push(format!("--shutdown={SHUTDOWN}").into());
        arguments.extend(self.permissions.arguments());
        arguments
    }

    /// Returns whether the run is held to the budget of the case itself.
    pub(super) fn is_case_budget(&self, settings: &[CaseSetting]) -> bool {
        budget_of(settings).is_some_and(|budget| budget <= self.part.run_budget())
    }

    fn budget(&self, settings: &[CaseSetting]) -> Usd {
        let part = self.part.run_budget();
        budget_of(settings).map_or(part, |budget| budget.min(part))
    }
}

fn budget_of(settings: &[CaseSetting]) -> Option<Usd> {
    let budget = settings.iter().find(|setting| setting.name == "budget")?;
    dollars(budget.value.as_deref()?).ok()
}

#[cfg(test)]
mod live_terms_tests {
    use super::*;
    use crate::domain::budget::{LiveBudget, LiveBudgetAnswer};
    use crate::language::source::SourcePlace;

    fn shown(settings: &[(&str, &str)], model: Option<&str>) -> String {
        let mut budget = LiveBudget::new(Usd::from_dollars(1.0));
        let LiveBudgetAnswer::Part(part) = budget.reserve(1, Usd::ZERO) else {
            panic!("there is money")
        };
        let model = model.map(|model| ModelName::parse(model).expect("a model"));
        let permissions = LivePermissions::default();
        let terms = LiveTerms { model, part, limit: Duration::ZERO, permissions };
        let setting = |(name, value): &(&str, &str)| CaseSetting {
            name: (*name).to_owned(),
            at: SourcePlace::START,
            value: Some((*value).to_owned()),
        };
        let settings: Vec<CaseSetting> = settings.iter().map(setting).collect();
        let words = terms.arguments(&settings);
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn case_spends_and_does_at_most_what_its_terms_allow() {
        assert_eq!(shown(&[], None), "--budget=0.5 --shutdown=5s");
        assert_eq!(
            shown(&[("model", "opus"), ("max_agents", "3")], Some("haiku")),
            "--max-agents=3 --model=haiku --budget=0.5 --shutdown=5s"
        );
        assert_eq!(
            shown(&[("model", "opus"), ("budget", "0.10"), ("on_budget", "end")], None),
            "--model=opus --on-budget=end --budget=0.1 --shutdown=5s"
        );
        assert_eq!(
            shown(&[("budget", "20"), ("on_budget", "end"), ("allow_tools", "Bash")], None),
            "--budget=0.5 --shutdown=5s"
        );
    }
}
