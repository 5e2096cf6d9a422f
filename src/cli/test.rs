//! `raymond test`: runs the cases of workflows with scripted replies, and compares them with what is expected.

mod case_process;
mod case_run;
mod discovery;
mod live;
mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use self::case_process::CasesDir;
use self::case_run::run_case;
use self::discovery::LoadedCase;
use self::report::WorkflowCoverage;
use super::args::workflows::TestArgs;
use super::background::self_program;
use super::exit::{CliExitCode, Error};
use super::interrupts::signals;
use super::output;
use crate::cli::test::discovery::MappedWorkflows;
use crate::cli::test::report::CaseReport;
use crate::language::diagnostic::Diagnostic;
use crate::language::source::SourcePlace;
use crate::process::host;
use crate::process::worker::StopLevel;

/// The settings that the runs of all cases share.
#[derive(Debug)]
struct TestSession {
    /// The program that runs a case: this one.
    program: PathBuf,
    /// The directory of the cases' directories.
    dir: CasesDir,
    /// The number of runs at a time.
    permits: Semaphore,
    /// The urgency with which live runs are told to stop.
    stop: watch::Sender<StopLevel>,
    args: TestArgs,
}

impl TestSession {
    fn begin(args: &TestArgs) -> Result<Rc<Self>, Error> {
        let jobs = args.jobs.map_or_else(host::cores, usize::from);
        Ok(Rc::new(Self {
            program: self_program()?,
            dir: CasesDir::create()?,
            permits: Semaphore::new(jobs),
            stop: watch::Sender::new(StopLevel::None),
            args: args.clone(),
        }))
    }
}

/// Runs `raymond test`.
///
/// # Errors
/// [`Error`] if there are no cases, or they cannot be run at all.
pub(super) fn test(args: &TestArgs) -> Result<CliExitCode, Error> {
    let Some(loaded) = read_cases(args)? else { return Ok(CliExitCode::Invalid) };
    if args.live.live {
        return live::test(args, loaded);
    }
    let session = TestSession::begin(args)?;
    let Some(reports) = actix::System::new().block_on(run_all(&session, loaded))? else {
        output::tell("interrupted; nothing of the cases is left");
        return Ok(CliExitCode::Interrupted);
    };
    let coverage = WorkflowCoverage::of_all(&reports);
    if args.update {
        report::update(&reports)?;
    }
    if let Some(path) = &args.junit {
        report::write(path, &report::junit_cases(&reports))?;
    }
    let has_failed = reports.iter().any(|report| !report.has_passed());
    if args.json {
        output::print_json(&report::json(&reports, &coverage))?;
    } else {
        output::print_styled(&report::summary(&reports, &coverage, args.coverage))?;
    }
    Ok(if has_failed { CliExitCode::AgentFailed } else { CliExitCode::Success })
}

/// Reads files of cases. Returns their cases, and all mistakes.
///
/// # Errors
/// [`Error`] if a file or a workflow cannot be read.
fn read_files(files: &[PathBuf]) -> Result<(Vec<LoadedCase>, Vec<Diagnostic>), Error> {
    let (mut loaded, mut errors) = (Vec::new(), Vec::new());
    for file in files {
        match discovery::load(file)? {
            Ok(cases) => loaded.extend(cases),
            Err(wrong) => errors.extend(wrong),
        }
    }
    let mut workflows = MappedWorkflows::default();
    for case in &loaded {
        errors.extend(discovery::mistakes(case, &mut workflows)?);
    }
    errors.dedup();
    Ok((loaded, errors))
}

/// Returns the mistakes in the cases of a workflow's folder, and what cannot be read of them.
pub(super) fn case_mistakes(workflow: &Path) -> Vec<Diagnostic> {
    let mistakes = |file: PathBuf| match read_files(std::slice::from_ref(&file)) {
        Ok((_, mistakes)) => mistakes,
        Err(error) => vec![unreadable(&file, &error)],
    };
    match discovery::files_of(workflow) {
        Ok(files) => files.into_iter().flat_map(mistakes).collect(),
        Err(error) => vec![unreadable(workflow, &error)],
    }
}

fn unreadable(path: &Path, error: &Error) -> Diagnostic {
    discovery::diagnostic(path, (SourcePlace::START, error.to_string()))
}

/// Reads the cases that are asked for. `None` if one is wrong, which was told.
fn read_cases(args: &TestArgs) -> Result<Option<Vec<LoadedCase>>, Error> {
    let (mut loaded, errors) = read_files(&discovery::case_files(&args.path)?)?;
    for Diagnostic { path, line, column, message, .. } in &errors {
        output::complain(&format!("{path}:{line}:{column}: {message}"));
    }
    if !errors.is_empty() {
        return Ok(None);
    }
    let total = loaded.len();
    loaded.retain(|case| {
        args.cases.is_empty() || args.cases.iter().any(|name| case.case.name.contains(name))
    });
    if loaded.is_empty() {
        return Err(Error::Usage(discovery::no_such_case(&args.path, total, &args.cases)));
    }
    Ok(Some(loaded))
}

/// Runs all cases, and prints a line for each in their order, as soon as those before have ended; returns them. `None`
/// if an interrupt came first.
async fn run_all(
    session: &Rc<TestSession>,
    cases: Vec<LoadedCase>,
) -> Result<Option<Vec<CaseReport>>, Error> {
    let mut interrupts = signals()?;
    let mut running = JoinSet::new();
    for (number, case) in cases.into_iter().enumerate() {
        let session = Rc::clone(session);
        running.spawn_local(async move { (number, run_case(&session, case, number).await) });
    }
    let mut waiting = BTreeMap::new();
    let mut reports = Vec::new();
    loop {
        tokio::select! {
            Some(()) = interrupts.recv() => return Ok(None),
            ended = running.join_next() => {
                let Some(ended) = ended else { break };
                let (number, report) = ended.map_err(|error| Error::Usage(error.to_string()))?;
                waiting.insert(number, report?);
                while let Some(report) = waiting.remove(&reports.len()) {
                    if !session.args.json {
                        output::print_styled(&report::case(&report, session.args.update))?;
                    }
                    reports.push(report);
                }
            }
        }
    }
    Ok(Some(reports))
}
