//! `raymond test --real`: runs the cases with Claude Code, several times with each model, under one budget.
//!
//! The rounds come one after another, so that all cases and models have had about as many runs when the money is used
//! up, or an interrupt comes.

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::time::{Duration, Instant};

use console::style;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::TestSession;
use super::discovery::{LoadedCase, shown};
use crate::cli::args::workflows::TestArgs;
use crate::cli::exit::{CliExitCode, Error};
use crate::cli::interrupts::signals;
use crate::cli::test::case_process::LiveTerms;
use crate::cli::test::case_run::{AttemptFault, AttemptKind, attempt};
use crate::cli::test::report;
use crate::cli::test::report::{CaseReport, JunitCase, messages, write_messages, write_paths};
use crate::cli::{output, table};
use crate::domain::budget::{LiveBudget, LiveBudgetAnswer, LivePart};
use crate::domain::id::AgentId;
use crate::domain::live_results::{LIVE_HEADS, LiveEnd, LiveRow, LiveRun};
use crate::domain::model::ModelName;
use crate::domain::money::Usd;
use crate::domain::time::millis_of;
use crate::domain::tool_call::printable_line;
use crate::language::cases::mismatches;
use crate::process::worker::StopLevel;

/// The number of runs at a time, unless it is given.
const JOBS: u32 = 2;

/// Runs the cases for real, and prints how often each holds.
///
/// # Errors
/// [`Error`] if a case asks for what the person does not allow, or nothing can be run at all.
pub(super) fn test(args: &TestArgs, loaded: Vec<LoadedCase>) -> Result<CliExitCode, Error> {
    check_permissions(args, &loaded)?;
    let session = TestSession::begin(args)?;
    let (reports, is_interrupted) = actix::System::new().block_on(async {
        let mut tests = LiveTests::new(&session, loaded);
        tests.run_all().await?;
        Ok::<_, Error>((tests.reports, tests.is_interrupted))
    })?;
    let summary = LiveSummary::of(&reports, args.live.budget, is_interrupted);
    if let Some(path) = &args.junit {
        report::write(path, &summary.junit_cases())?;
    }
    if args.json {
        output::print_json(&summary.json())?;
    } else {
        output::print_styled(&summary.text())?;
    }
    Ok(summary.exit())
}

/// Refuses cases that ask for permissions which the person does not give.
fn check_permissions(args: &TestArgs, loaded: &[LoadedCase]) -> Result<(), Error> {
    let permissions = &args.live.permissions;
    for case in loaded {
        for setting in &case.case.settings {
            let Some(option) = permissions.missing_for(setting) else { continue };
            let (file, at, name) = (shown(&case.file), setting.at, &setting.name);
            return Err(Error::Usage(format!(
                "{file}:{}:{}: a case cannot permit anything in a live run, and this one asks for {name}; allow it with {option}, or leave the case out with --case",
                at.line, at.column
            )));
        }
    }
    Ok(())
}

/// The live runs that are to be made, and those that were.
struct LiveTests<'session> {
    session: &'session Rc<TestSession>,
    cases: Vec<Rc<LoadedCase>>,
    queue: VecDeque<LiveTask>,
    budget: LiveBudget,
    jobs: u32,
    /// The cases and models whose runs cannot begin.
    refused: BTreeSet<(usize, Option<String>)>,
    reports: Vec<LiveReport>,
    is_interrupted: bool,
}

impl<'session> LiveTests<'session> {
    fn new(session: &'session Rc<TestSession>, cases: Vec<LoadedCase>) -> Self {
        let live = &session.args.live;
        let models: Vec<Option<ModelName>> = match live.models.as_slice() {
            [] => vec![None],
            models => models.iter().cloned().map(Some).collect(),
        };
        let mut queue = VecDeque::new();
        for number in 1..=live.times {
            for case in 0..cases.len() {
                let task =
                    |model: &Option<ModelName>| LiveTask { case, model: model.clone(), number };
                queue.extend(models.iter().map(task));
            }
        }
        Self {
            session,
            cases: cases.into_iter().map(Rc::new).collect(),
            queue,
            budget: LiveBudget::new(live.budget),
            jobs: session.args.jobs.map_or(JOBS, u32::from),
            refused: BTreeSet::new(),
            reports: Vec::new(),
            is_interrupted: false,
        }
    }

    /// Makes the runs, as far as the money goes and no interrupt comes.
    async fn run_all(&mut self) -> Result<(), Error> {
        let mut interrupts = signals()?;
        let mut running: JoinSet<LiveReport> = JoinSet::new();
        loop {
            self.begin_runs(&mut running)?;
            if running.is_empty() {
                break;
            }
            tokio::select! {
                Some(()) = interrupts.recv() => self.interrupt()?,
                Some(ended) = running.join_next() => {
                    self.take(ended.unwrap_or_else(|error| resume_unwind(error.into_panic())))?;
                }
            }
        }
        self.reports.sort_by_key(|report| {
            let model = report.task.model.as_ref();
            let place = self.session.args.live.models.iter().position(|named| Some(named) == model);
            (report.task.case, place, report.task.number)
        });
        Ok(())
    }

    /// Begins as many runs as there is room and money for.
    fn begin_runs(&mut self, running: &mut JoinSet<LiveReport>) -> Result<(), Error> {
        loop {
            let room = self.jobs.saturating_sub(u32::try_from(running.len()).unwrap_or(u32::MAX));
            let waiting = u32::try_from(self.queue.len()).unwrap_or(u32::MAX);
            let to_begin = room.min(waiting);
            let Some(task) = self.queue.front().cloned().filter(|_| to_begin > 0) else {
                return Ok(());
            };
            if self.refused.contains(&key(&task)) {
                self.queue.pop_front();
                self.leave_out(&task, "not run: its first run did not begin")?;
                continue;
            }
            match self.budget.reserve(to_begin, self.usual_cost(&task)) {
                LiveBudgetAnswer::Part(part) => {
                    self.queue.pop_front();
                    let (session, case) = (Rc::clone(self.session), self.case_of(&task));
                    running.spawn_local(async move { run(&session, &case, task, part).await });
                }
                LiveBudgetAnswer::Wait => return Ok(()),
                LiveBudgetAnswer::Spent => {
                    self.queue.pop_front();
                    self.leave_out(&task, "not run: the budget is used up")?;
                }
            }
        }
    }

    /// Returns the most that a run of this case with this model has cost.
    fn usual_cost(&self, task: &LiveTask) -> Usd {
        let same = self.reports.iter().filter(|report| key(&report.task) == key(task));
        same.map(|report| report.run().cost).max().unwrap_or_default()
    }

    fn case_of(&self, task: &LiveTask) -> Rc<LoadedCase> {
        Rc::clone(&self.cases[task.case])
    }

    fn leave_out_all(&mut self, why: &str) -> Result<(), Error> {
        while let Some(task) = self.queue.pop_front() {
            self.leave_out(&task, why)?;
        }
        Ok(())
    }

    fn leave_out(&mut self, task: &LiveTask, why: &str) -> Result<(), Error> {
        let report = LiveReport::not_run(task.clone(), &self.case_of(task), why);
        self.take(report)
    }

    /// Takes in a run, and prints a line about it.
    fn take(&mut self, report: LiveReport) -> Result<(), Error> {
        if let Some((part, cost)) = report.settled {
            self.budget.settle(part, cost);
        }
        if report.cannot_begin {
            self.refused.insert(key(&report.task));
        }
        let was_made = report.settled.is_some() || report.end != LiveEnd::NotRun;
        if !self.session.args.json && was_made {
            output::print_styled(&line(&report, self.session.args.live.times))?;
        }
        self.reports.push(report);
        Ok(())
    }

    /// Ends the runs: at the first interrupt with time for their turns, then at once.
    fn interrupt(&mut self) -> Result<(), Error> {
        let level = if self.is_interrupted { StopLevel::Now } else { StopLevel::Soon };
        if !self.is_interrupted {
            output::tell("interrupted; the runs are ended, and what was found so far is printed");
        }
        self.is_interrupted = true;
        self.session.stop.send_replace(level);
        self.leave_out_all("not run: interrupted")
    }
}

fn key(task: &LiveTask) -> (usize, Option<String>) {
    (task.case, task.model.as_ref().map(ToString::to_string))
}

// The report of live tests: a line for each run, a table of cases and models, JSON.

/// The maximum number of failures in the report for CI, for each case and model.
const MAX_FAILURES: usize = 20;

/// Returns the line of a run, and the lines about what does not hold.
pub(super) fn line(report: &LiveReport, times: u32) -> String {
    let word = match report.end {
        LiveEnd::Passed => style("ok  ").green(),
        LiveEnd::Failed => style("FAIL").red().bold(),
        LiveEnd::CutOff => style("cut ").yellow(),
        LiveEnd::NotRun => style("--  ").yellow(),
    };
    let case = &report.report;
    let title = printable_line(&case.loaded.title());
    let (model, number) = (model_of(report), report.task.number);
    let (seconds, cost) = (case.duration.as_secs_f64(), case.run.committed);
    let mut text = format!("{word} {title} [{model} {number}/{times}] ({seconds:.1}s, {cost})\n");
    write_messages(case, &mut text);
    write_paths(case, &mut text);
    text
}

fn model_of(report: &LiveReport) -> &str {
    report.task.model.as_ref().map_or("default", ModelName::as_str)
}

/// The results of all cases and models.
pub(super) struct LiveSummary<'reports> {
    /// The reports by the number of the case and the place of the model, in their order.
    groups: Vec<(LiveRow, Vec<&'reports LiveReport>)>,
    budget: Usd,
    is_interrupted: bool,
}

impl<'reports> LiveSummary<'reports> {
    /// Returns the results of these runs, which are sorted by case and model.
    pub(super) fn of(reports: &'reports [LiveReport], budget: Usd, is_interrupted: bool) -> Self {
        let groups = reports.chunk_by(|report, other| {
            (report.task.case, &report.task.model) == (other.task.case, &other.task.model)
        });
        let group = |group: &'reports [LiveReport]| {
            (LiveRow::of(group.iter().map(LiveReport::run)), group.iter().collect())
        };
        Self { groups: groups.map(group).collect(), budget, is_interrupted }
    }

    fn count(&self, end: LiveEnd) -> usize {
        let reports = self.groups.iter().flat_map(|(_, reports)| reports);
        reports.filter(|report| report.end == end).count()
    }

    fn cost(&self) -> Usd {
        self.groups.iter().fold(Usd::ZERO, |sum, (row, _)| sum.saturating_add(row.cost))
    }

    /// Returns the exit code: an interrupt, then what does not hold or cannot begin, then what was left out.
    pub(super) fn exit(&self) -> CliExitCode {
        let reports = || self.groups.iter().flat_map(|(_, reports)| reports);
        let has_failed =
            reports().any(|report| report.end == LiveEnd::Failed || report.cannot_begin);
        let is_complete = self.count(LiveEnd::CutOff) + self.count(LiveEnd::NotRun) == 0;
        match (self.is_interrupted, has_failed, is_complete) {
            (true, ..) => CliExitCode::Interrupted,
            (false, true, _) => CliExitCode::AgentFailed,
            (false, false, false) => CliExitCode::Paused,
            (false, false, true) => CliExitCode::Success,
        }
    }

    /// Returns the table and the closing lines.
    pub(super) fn text(&self) -> String {
        let heads = ["case", "model"].into_iter().chain(LIVE_HEADS).map(str::to_owned);
        let mut rows: Vec<Vec<String>> = vec![heads.collect()];
        for (row, reports) in &self.groups {
            let Some(first) = reports.first() else { continue };
            let title = printable_line(&first.report.loaded.title());
            let mut cells = vec![title, model_of(first).to_owned()];
            cells.extend(row.cells());
            rows.push(cells);
        }
        let mut text = format!("\n{}", table::text(&rows));
        let [passed, failed, cut_off, not_run] =
            [LiveEnd::Passed, LiveEnd::Failed, LiveEnd::CutOff, LiveEnd::NotRun]
                .map(|end| self.count(end));
        let total = passed + failed + cut_off + not_run;
        let (cost, budget) = (self.cost(), self.budget);
        let _ = write!(text, "{total} runs: {passed} passed, {failed} failed");
        if cut_off > 0 {
            let _ = write!(text, ", {cut_off} ended by the budget");
        }
        if not_run > 0 {
            let _ = write!(text, ", {not_run} not run ({})", self.reasons().join("; "));
        }
        let _ = writeln!(text, "\n{cost} of {budget} spent");
        text
    }

    /// Returns the reasons why runs were not made, each once.
    fn reasons(&self) -> Vec<String> {
        let mut reasons = BTreeSet::new();
        for report in self.groups.iter().flat_map(|(_, reports)| reports) {
            if report.end == LiveEnd::NotRun {
                let why = report.report.error.as_deref().unwrap_or_default();
                let why = why.strip_prefix("not run: ").unwrap_or(why);
                reasons.insert(printable_line(why));
            }
        }
        reasons.into_iter().collect()
    }

    /// Returns the cases for the report that CI systems read: one for each case and model.
    pub(super) fn junit_cases(&self) -> Vec<JunitCase> {
        let case = |(row, reports): &(LiveRow, Vec<&LiveReport>)| {
            let first = reports.first()?;
            let loaded = &first.report.loaded;
            let failed = reports
                .iter()
                .filter(|report| report.end == LiveEnd::Failed || report.cannot_begin);
            let failures = failed.flat_map(|report| messages(&report.report)).take(MAX_FAILURES);
            let seconds = reports.iter().map(|report| report.report.duration.as_secs_f64()).sum();
            let skipped = reports.iter().find_map(|report| match report.end {
                LiveEnd::CutOff | LiveEnd::NotRun => report.report.error.clone(),
                LiveEnd::Passed | LiveEnd::Failed => None,
            });
            Some(JunitCase {
                suite: shown(&loaded.workflow),
                name: format!("{} [{}]", loaded.case.name, model_of(first)),
                file: shown(&loaded.file),
                seconds,
                failures: failures.collect(),
                skipped: skipped.filter(|_| row.rate.runs == 0),
            })
        };
        self.groups.iter().filter_map(case).collect()
    }

    /// Returns all as JSON.
    pub(super) fn json(&self) -> Value {
        let rows: Vec<Value> =
            self.groups.iter().filter_map(|(row, reports)| row_json(row, reports)).collect();
        json!({
            "live": rows,
            "passed": self.count(LiveEnd::Passed),
            "failed": self.count(LiveEnd::Failed),
            "cut_off": self.count(LiveEnd::CutOff),
            "not_run": self.count(LiveEnd::NotRun),
            "cost_usd": self.cost(),
            "budget_usd": self.budget,
            "interrupted": self.is_interrupted,
        })
    }
}

fn row_json(row: &LiveRow, reports: &[&LiveReport]) -> Option<Value> {
    let first = reports.first()?;
    let loaded = &first.report.loaded;
    let run = |report: &&LiveReport| {
        json!({
            "number": report.task.number,
            "status": report.end,
            "duration_ms": report.run().duration_ms,
            "cost_usd": report.run().cost,
            "turns": report.report.run.turns,
            "result": report.report.run.result(&AgentId::main()),
            "mismatches": report.report.mismatches,
            "error": report.report.error,
        })
    };
    Some(json!({
        "workflow": shown(&loaded.workflow),
        "file": shown(&loaded.file),
        "line": loaded.case.at.line,
        "name": loaded.case.name,
        "model": first.task.model,
        "passed": row.rate.passed,
        "judged": row.rate.runs,
        "cut_off": row.cut_off,
        "not_run": row.not_run,
        "pass_rate": row.rate.rate(),
        "interval": row.rate.interval().map(|(low, high)| [low, high]),
        "cost_usd": row.cost,
        "median_ms": row.median_ms(),
        "runs": reports.iter().map(run).collect::<Vec<_>>(),
    }))
}

// One live run of a case: it is run with Claude Code, and judged.

/// A live run that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LiveTask {
    /// The number of the case.
    pub(super) case: usize,
    /// The model; `None` for that of the workflow.
    pub(super) model: Option<ModelName>,
    /// The number of the run of this case with this model, from 1.
    pub(super) number: u32,
}

/// A live run that was made, or could not be.
#[derive(Debug)]
pub(super) struct LiveReport {
    pub(super) task: LiveTask,
    pub(super) end: LiveEnd,
    pub(super) report: CaseReport,
    /// True if no other run of this case with this model could begin either.
    pub(super) cannot_begin: bool,
    /// The part of the money that it was given, with its cost, if that is known for certain.
    pub(super) settled: Option<(LivePart, Option<Usd>)>,
}

impl LiveReport {
    /// Returns the report of a run that was not made.
    pub(super) fn not_run(task: LiveTask, loaded: &LoadedCase, why: &str) -> Self {
        let mut report = CaseReport::new(loaded.clone());
        report.error = Some(why.to_owned());
        Self { task, end: LiveEnd::NotRun, report, cannot_begin: false, settled: None }
    }

    /// Returns the run for the table.
    pub(super) fn run(&self) -> LiveRun {
        LiveRun {
            end: self.end,
            cost: self.report.run.committed,
            duration_ms: millis_of(self.report.duration),
        }
    }
}

/// Makes a live run, and judges it.
pub(super) async fn run(
    session: &TestSession,
    loaded: &LoadedCase,
    task: LiveTask,
    part: LivePart,
) -> LiveReport {
    let live = &session.args.live;
    let terms = LiveTerms {
        model: task.model.clone(),
        part,
        limit: Duration::from_millis(live.time_limit),
        permissions: live.permissions.clone(),
    };
    // The name of a model may be no name of a directory.
    let model = live.models.iter().position(|named| Some(named) == task.model.as_ref());
    let name = format!("{}-{}-{}", task.case, model.unwrap_or_default(), task.number);
    let begin = Instant::now();
    let outcome = match attempt(session, loaded, &name, AttemptKind::Live(&terms)).await {
        Ok(outcome) => outcome,
        // What it has spent is not known, and the others have to be told of in any case.
        Err(error) => {
            let report = LiveReport::not_run(task, loaded, &format!("not run: {error}"));
            return LiveReport { settled: Some((part, None)), ..report };
        }
    };
    let mut report = CaseReport::new(loaded.clone());
    report.duration = begin.elapsed();
    let (end, fault) = match outcome {
        Ok((run, texts)) => {
            let is_cut_off = run.is_out_of_money && !terms.is_case_budget(&loaded.case.settings);
            if is_cut_off {
                report.error =
                    Some("the budget of the tests ended it; give more with --budget".to_owned());
            } else {
                report.mismatches = mismatches(&loaded.case.expected, &run, &texts);
            }
            (report.run, report.texts) = (run, texts);
            let end = match report.has_passed() {
                _ if is_cut_off => LiveEnd::CutOff,
                true => LiveEnd::Passed,
                false => LiveEnd::Failed,
            };
            (end, None)
        }
        Err(failed) => {
            (report.error, report.run) = (Some(failed.why), failed.run);
            let end = match failed.fault {
                AttemptFault::NotEnded => LiveEnd::Failed,
                AttemptFault::NotStarted | AttemptFault::Interrupted => LiveEnd::NotRun,
            };
            (end, Some(failed.fault))
        }
    };
    // A run that was ended from outside may have spent more than its records tell.
    let is_known = matches!(fault, None | Some(AttemptFault::NotStarted));
    let cost = is_known.then_some(report.run.committed);
    let cannot_begin = fault == Some(AttemptFault::NotStarted);
    LiveReport { task, end, report, cannot_begin, settled: Some((part, cost)) }
}
