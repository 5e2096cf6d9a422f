//! A case: it is run, compared, and killed after each of its records if that is asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::cli::exit::Error;
use crate::cli::output;
use crate::cli::test::case_process::{CaseDir, CaseEnd, CaseProcess, LiveTerms, RUN};
use crate::cli::test::discovery::{LoadedCase, options};
use crate::cli::test::report::{CaseReport, KillDifference, KillSweep};
use crate::cli::test::{TestSession, discovery, report};
use crate::domain::git_exchange::FIXED_SETTINGS;
use crate::domain::id::RunId;
use crate::domain::killed_run::{AgentEndings, killed_records, resumed_difference};
use crate::domain::observed_run::ObservedRun;
use crate::domain::time::{format_duration, millis_of};
use crate::language::cases::{CaseTexts, mismatches};
use crate::process::claude::turn_transcript::for_each_started;
use crate::store::dataspace::Dataspace;
use crate::store::layout::RunsRoot;
use crate::store::user_state::UserState;
use crate::store::view::story;
use crate::world::recorded_files::{ScriptedFiles, read_text};

/// Runs a case, and compares it.
pub(super) async fn run_case(
    session: &TestSession,
    loaded: LoadedCase,
    number: usize,
) -> Result<CaseReport, Error> {
    let permit = session.permits.acquire().await;
    let begin = Instant::now();
    let mut report = CaseReport::new(loaded);
    match attempt(session, &report.loaded, &format!("{number}"), AttemptKind::Scripted).await? {
        Ok((run, texts)) => {
            report.mismatches = mismatches(&report.loaded.case.expected, &run, &texts);
            (report.run, report.texts) = (run, texts);
        }
        Err(failed) => (report.error, report.run) = (Some(failed.why), failed.run),
    }
    if session.args.update {
        let mut mismatches = std::mem::take(&mut report.mismatches);
        mismatches.retain(|mismatch| !report::is_renewed(&report, mismatch));
        report.mismatches = mismatches;
    }
    drop(permit);
    if session.args.kill_sweep && report.has_passed() {
        match sweep(session, &report, number).await? {
            Ok(sweep) => report.sweep = Some(sweep),
            Err(why) => report.error = Some(why),
        }
    }
    report.duration = begin.elapsed();
    Ok(report)
}

/// The largest file that is compared, in bytes.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

impl CaseProcess<'_> {
    /// Returns the run as its directory tells it, and the texts that it is compared by.
    pub(super) fn observed(&self) -> (ObservedRun, CaseTexts) {
        let mut run = ObservedRun::default();
        let root = self.root();
        let Ok(id) = RunId::parse(RUN) else { return (run, CaseTexts::default()) };
        if let Ok(view) = story(&root, &id, |_, record| run.observe(record)) {
            run.finish(&view.run);
        }
        run.rename(|text| self.named(text));
        let mut turns = BTreeSet::new();
        let _ = for_each_started(&root.run(&id).steps(), |stem| {
            turns.insert(stem.to_owned());
        });
        run.turns = turns.len() as u64;
        let mut texts = CaseTexts::default();
        for (_, expectation) in &self.loaded.case.expected {
            if let Some(path) = expectation.file() {
                let text = read_text(&self.dir.work(), path, MAX_FILE_BYTES);
                texts.files.extend(text.map(|text| (path.to_owned(), text)));
            }
            if let Some((name, _)) = expectation.golden(&run, &CaseTexts::default()) {
                let text = read_text(&self.loaded.beside(""), name, MAX_FILE_BYTES);
                texts.goldens.extend(text.map(|text| (name.to_owned(), text)));
            }
        }
        texts.facts = self.facts(&root).unwrap_or_default();
        (run, texts)
    }

    fn facts(&self, root: &RunsRoot) -> Option<BTreeMap<String, Vec<String>>> {
        let key = UserState::new(self.dir.state().join("raymond")).key().ok()?;
        let mut facts = BTreeMap::<String, Vec<String>>::new();
        for fact in Dataspace::of(root).with_key(&key).facts().ok()?.facts {
            facts.entry(fact.label).or_default().push(fact.value);
        }
        Some(facts)
    }
}

// The working directory of a case before its run: files, a repository, facts.

/// The configuration of git in a case that has no other user.
const GIT_CONFIG: &str =
    "[user]\n\tname = Test\n\temail = test@localhost\n[init]\n\tdefaultBranch = main\n";

/// The commands that make a repository of the files. A live run has the home of the user, who may have no name there.
const GIT_COMMANDS: [&[&str]; 5] = [
    &["init", "--quiet"],
    &["config", "user.name", "Test"],
    &["config", "user.email", "test@localhost"],
    &["add", "--all"],
    &["commit", "--quiet", "--allow-empty", "--message", "The files of the case"],
];

impl CaseProcess<'_> {
    /// Writes the files of the case, makes its repository, and asserts its facts.
    ///
    /// # Errors
    /// The part that failed, and the reason.
    pub(super) async fn prepare(&self) -> Result<(), String> {
        let case = &self.loaded.case;
        // A case comes with a workflow that may be untrusted: what it writes is confined as a reply's files are.
        let files = case.files.iter().map(|(path, text)| (path.as_str().to_owned(), text.clone()));
        let files = ScriptedFiles { write: files.collect(), delete: Vec::new() };
        files.apply(&self.dir.work(), &[], RUN).map_err(|why| format!("files: {why}"))?;
        let script = discovery::script(self.loaded)?.filter(|_| self.live.is_none());
        if let Some(text) = script {
            write(&self.dir.replies(), &text)?;
        }
        if case.git {
            self.make_repository().await?;
        }
        self.assert_facts().await
    }

    async fn make_repository(&self) -> Result<(), String> {
        write(&self.dir.home().join(".gitconfig"), GIT_CONFIG)?;
        for words in GIT_COMMANDS {
            let safe = FIXED_SETTINGS.iter().map(|(key, value)| format!("{key}={value}"));
            let safe = safe.flat_map(|setting| ["-c".into(), setting.into()]);
            let arguments = safe.chain(words.iter().map(OsString::from)).collect();
            let exit = self.helper("git".into(), arguments).await;
            if !matches!(exit, Ok(CaseEnd::Exit(0))) {
                return Err(format!("git {} failed: {}", words[0], self.complaints().trim()));
            }
        }
        Ok(())
    }

    async fn assert_facts(&self) -> Result<(), String> {
        for fact in &self.loaded.case.facts {
            let key = fact.key.as_deref().unwrap_or(RUN);
            let words =
                ["signal", &fact.label, "--key", key, "--append", "--value", &fact.value, "--dir"];
            let mut arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
            arguments.push(self.dir.runs().into());
            let exit = self.helper(self.session.program.clone(), arguments).await;
            if !matches!(exit, Ok(CaseEnd::Exit(0))) {
                let (label, why) = (&fact.label, self.complaints());
                return Err(format!("the fact {label} cannot be asserted: {}", why.trim()));
            }
        }
        Ok(())
    }
}

fn write(path: &PathBuf, text: &str) -> Result<(), String> {
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let written = made.and_then(|()| std::fs::write(path, text));
    written.map_err(|error| format!("{}: cannot write it: {error}", path.display()))
}

// The run of a case: a separate process in separate directories, and what is seen of it.

/// The kind of a run of a case.
pub(super) enum AttemptKind<'case> {
    /// With scripted replies.
    Scripted,
    /// With scripted replies; its process dies after this record, and the run is resumed.
    Killed(u64),
    /// With Claude Code.
    Live(&'case LiveTerms),
}

/// The reason why a run cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptFault {
    /// It could not be prepared, or did not begin.
    NotStarted,
    /// It took too long, or its raymond was killed.
    NotEnded,
    /// The tests were interrupted.
    Interrupted,
}

/// A run that cannot be compared.
#[derive(Debug)]
pub(super) struct FailedAttempt {
    pub(super) fault: AttemptFault,
    pub(super) why: String,
    pub(super) run: ObservedRun,
}

/// The run of a case and the texts that are compared, or the reason why it cannot be compared.
pub(super) type AttemptOutcome = Result<(ObservedRun, CaseTexts), Box<FailedAttempt>>;

/// Runs a case in new directories.
///
/// # Errors
/// [`Error`] if they cannot be made, or no process can be started.
pub(super) async fn attempt(
    session: &TestSession,
    loaded: &LoadedCase,
    name: &str,
    kind: AttemptKind<'_>,
) -> Result<AttemptOutcome, Error> {
    let dir = session.dir.case(name)?;
    let (live, kill_after) = match kind {
        AttemptKind::Scripted => (None, None),
        AttemptKind::Killed(record) => (None, Some(record)),
        AttemptKind::Live(terms) => (Some(terms), None),
    };
    let case = CaseProcess { session, loaded, dir: &dir, live };
    if let Err(why) = case.prepare().await {
        let run = ObservedRun::default();
        return Ok(Err(FailedAttempt { fault: AttemptFault::NotStarted, why, run }.into()));
    }
    // Warnings of git and the helpers are not warnings of the run.
    case.forget_complaints();
    let mut ended = case.raymond(run_arguments(loaded, &dir, live), kill_after).await?;
    match ended {
        CaseEnd::Killed if kill_after.is_some() => {
            ended = case.raymond(resume_arguments(&dir), None).await?;
        }
        CaseEnd::Killed | CaseEnd::Exit(_) | CaseEnd::TimedOut | CaseEnd::Interrupted => {}
    }
    Ok(outcome(&case, &ended))
}

/// Returns what is seen of a run whose raymond has ended.
fn outcome(case: &CaseProcess<'_>, ended: &CaseEnd) -> AttemptOutcome {
    let (mut run, texts) = case.observed();
    let stderr = case.complaints();
    let scripted = case.loaded.case.time_limit_ms;
    let limit = case.live.map_or(Duration::from_millis(scripted), |terms| terms.limit);
    let (fault, why) = match ended {
        CaseEnd::Exit(code) if case.has_started() => {
            run.exit = *code;
            let warnings = stderr.lines().filter_map(|line| line.strip_prefix("warning: "));
            run.warnings.extend(warnings.map(str::to_owned));
            return Ok((run, texts));
        }
        CaseEnd::Exit(code) => {
            run.exit = *code;
            let why = format!("the run did not begin (exit code {code}): {}", stderr.trim());
            (AttemptFault::NotStarted, why)
        }
        CaseEnd::TimedOut => {
            let limit = format_duration(millis_of(limit));
            let option = if case.live.is_some() { "--time-limit" } else { "`time_limit`" };
            let why = format!(
                "it had not ended after {limit}; give it a longer {option}, or find what it waits for"
            );
            (AttemptFault::NotEnded, why)
        }
        CaseEnd::Killed => {
            (AttemptFault::NotEnded, format!("raymond was killed; it printed: {stderr}"))
        }
        CaseEnd::Interrupted => (AttemptFault::Interrupted, "interrupted".to_owned()),
    };
    Err(FailedAttempt { fault, why, run }.into())
}

// Kills the run of a case after each of its records, resumes it, and expects the same of it.

/// The number of kills after which a line tells how far the sweep is.
const KILLS_PER_LINE: u64 = 25;

/// Kills the run of a case that has passed after each of its records. Without an end of a run that is not killed there
/// is nothing to compare with; then the reason is returned.
///
/// # Errors
/// [`Error`] if a run cannot be started.
pub(super) async fn sweep(
    session: &TestSession,
    report: &CaseReport,
    number: usize,
) -> Result<Result<KillSweep, String>, Error> {
    // Endings that already differ without a kill, such as by a checksum, are not compared.
    let again = {
        let _permit = session.permits.acquire().await;
        attempt(session, &report.loaded, &format!("{number}-0"), AttemptKind::Scripted).await?
    };
    let last = report.run.records;
    let mut sweep = KillSweep::default();
    let stable = match again {
        Ok((run, _)) => run.endings,
        Err(failed) => {
            return Ok(Err(format!(
                "a second run, without a kill, came to no end: {}",
                failed.why
            )));
        }
    };
    for record in killed_records(last, report.run.pause.is_some()) {
        let _permit = session.permits.acquire().await;
        let name = format!("{number}-{record}");
        let outcome = attempt(session, &report.loaded, &name, AttemptKind::Killed(record)).await?;
        sweep.kills += 1;
        let found = difference(report, &stable, outcome);
        sweep.differences.extend(found.map(|found| KillDifference { record, found }));
        if sweep.kills.is_multiple_of(KILLS_PER_LINE) {
            let title = report.loaded.title();
            output::tell(&format!("{title}: killed after record {record} of {last}"));
        }
    }
    Ok(Ok(sweep))
}

/// Returns the first difference of a run that was killed and resumed: from what is expected, or from the other runs.
fn difference(
    report: &CaseReport,
    stable: &AgentEndings,
    outcome: AttemptOutcome,
) -> Option<String> {
    let (run, texts) = match outcome {
        Ok(ended) => ended,
        Err(failed) => return Some(failed.why),
    };
    let mut expected = report.loaded.case.expected.clone();
    expected.retain(|(_, expectation)| expectation.is_about_outcome());
    match mismatches(&expected, &run, &texts).into_iter().next() {
        Some(mismatch) => Some(format!("expected {}, found {}", mismatch.expected, mismatch.found)),
        None => resumed_difference(&run, &report.run, stable),
    }
}

// The command lines of the run of a case.

/// The options of a scripted run that a case does not name: nothing is to be waited for.
const SCRIPTED_DEFAULTS: [(&str, &str); 2] = [("stagger", "0s"), ("backoff", "1ms..5ms")];

/// Returns the arguments with which the run of a case begins.
pub(super) fn run_arguments(
    loaded: &LoadedCase,
    dir: &CaseDir,
    live: Option<&LiveTerms>,
) -> Vec<OsString> {
    let case = &loaded.case;
    let workflow = loaded.entry_path();
    let workflow = workflow.canonicalize().unwrap_or(workflow);
    let mut arguments: Vec<OsString> = vec!["run".into(), workflow.into()];
    let words = ["--id", RUN, "--on-wait", "exit", "--quiet", "--cwd"];
    arguments.extend(words.map(OsString::from));
    arguments.extend([dir.work().into(), OsString::from("--dir"), dir.runs().into()]);
    arguments.extend(case.input.iter().map(|input| format!("--input={input}").into()));
    let pair = |option: &str, key: &str, value: &str| -> OsString {
        format!("--{option}={key}={value}").into()
    };
    arguments.extend(case.variables.iter().map(|(name, value)| pair("var", name, value)));
    arguments.extend(case.answers.iter().map(|(node, text)| pair("answer", node, text)));
    if let Some(live) = live {
        arguments.extend(live.arguments(&case.settings));
        return arguments;
    }
    arguments.extend(discovery::arguments(loaded));
    for (name, value) in SCRIPTED_DEFAULTS {
        if !case.settings.iter().any(|setting| setting.name == name) {
            arguments.extend([format!("--{name}").into(), value.into()]);
        }
    }
    arguments.extend(options(&case.settings));
    arguments
}

/// Returns the arguments with which the run goes on after it was killed.
pub(super) fn resume_arguments(dir: &CaseDir) -> Vec<OsString> {
    let words = ["resume", RUN, "--on-wait", "exit", "--quiet", "--dir"];
    let mut arguments: Vec<OsString> = words.map(OsString::from).into();
    arguments.push(dir.runs().into());
    arguments
}
