//! `raymond test --real`: runs the cases with Claude Code, several times with each model, under one budget.
//!
//! The rounds come one after another, so that all cases and models have had about as many runs when the money is used
//! up, or an interrupt comes.

use std::collections::{BTreeSet, VecDeque};
use std::panic::resume_unwind;
use std::rc::Rc;

use tokio::task::JoinSet;

use super::TestSession;
use super::discovery::{LoadedCase, shown};
use super::live_report::{self, LiveSummary};
use crate::cli::args::cases::TestArgs;
use crate::cli::exit::{CliExitCode, Error};
use crate::cli::interrupts::signals;
use crate::cli::output;
use crate::cli::test::live_report::{LiveReport, LiveTask, run};
use crate::cli::test::report;
use crate::domain::budget::{LiveBudget, LiveBudgetAnswer};
use crate::domain::live_results::LiveEnd;
use crate::domain::model::ModelName;
use crate::domain::money::Usd;
use crate::process::worker_process::StopLevel;

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
            let place = self.session.args.live.models.iter().position(|one| Some(one) == model);
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
            output::print_styled(&live_report::line(&report, self.session.args.live.times))?;
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
