//! Runs turns on Claude Code, each at most once: a turn that has files already is attached to.
//!
//! If its transcript holds a result, that is the outcome; if its process still runs, it is followed
//! to its end; if neither, the turn is lost and says so. So whoever asks for the same turn again,
//! after a crash of the runtime or of an actor, never pays for it twice.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::command::{Marker, arguments};
use super::follow::{End, Stop, follow, put_to_rest};
use super::leftover;
use super::machine::{self, Gauge};
use super::notice::Notice;
use super::owned::{Process, Start};
use super::stream::Stream;
use super::transcript::{Follower, TurnFiles};
use super::verdict::{Exit, Moment, judge};
use crate::domain::capacity::{self, Memory};
use crate::domain::money::Usd;
use crate::domain::settings::{MaxProcs, Settings};
use crate::domain::supervision::Limits;
use crate::domain::time::{Timestamp, span};
use crate::domain::turn::{Cause, Failure, StepInput, StepOutcome, TurnId};
use crate::fault::point;

/// A turn that used no tools and took no longer has had no time to leave a process behind.
const BRIEF: Duration = Duration::from_secs(1);

/// The system's number for a file that is not a program it can run, `ENOEXEC`.
const NOT_A_PROGRAM: i32 = 8;

/// Claude Code, as a run uses it.
#[derive(Debug)]
pub struct Claude {
    program: PathBuf,
    settings: Settings,
    steps: PathBuf,
    marker: Marker,
    running: RefCell<HashMap<TurnId, watch::Sender<Stop>>>,
    told: Cell<Stop>,
    gauge: Gauge,
}

impl Claude {
    /// Claude Code under a run's settings; `steps` is where the turns' files go.
    #[must_use]
    pub fn new(program: PathBuf, settings: Settings, steps: PathBuf, marker: Marker) -> Self {
        Self {
            program,
            settings,
            steps,
            marker,
            running: RefCell::default(),
            told: Cell::new(Stop::No),
            gauge: Gauge::default(),
        }
    }

    /// Runs a turn, or attaches to it; `activity` is told what it is seen doing.
    pub async fn run(&self, input: &StepInput, notices: impl Fn(Notice<'_>)) -> StepOutcome {
        let (tell, mut stop) = watch::channel(self.told.get());
        self.running.borrow_mut().insert(input.turn.clone(), tell);
        let outcome = self.turn(input, &mut stop, notices).await;
        self.running.borrow_mut().remove(&input.turn);
        outcome.unwrap_or_else(StepOutcome::Failed)
    }

    /// Tells running turns to stop, and those that are yet to start not to.
    pub fn stop_all(&self, how: Stop) {
        self.told.set(self.told.get().max(how));
        for told in self.running.borrow().values() {
            told.send_if_modified(|now| {
                *now < how && {
                    *now = how;
                    true
                }
            });
        }
    }

    /// Those of the turns that were started before, whatever has become of them.
    #[must_use]
    pub fn begun(&self, turns: Vec<TurnId>) -> Vec<TurnId> {
        turns.into_iter().filter(|turn| TurnFiles::of(&self.steps, turn).stream.exists()).collect()
    }

    /// Ends every process that bears the run's mark, but for those of the turns to `keep`;
    /// returns how many there were.
    pub async fn sweep(&self, keep: &[TurnId]) -> usize {
        let keep: Vec<String> = keep.iter().map(TurnId::stem).collect();
        leftover::sweep(&self.marker, |turn| !keep.iter().any(|kept| kept == turn)).await
    }

    async fn turn(
        &self,
        input: &StepInput,
        stop: &mut watch::Receiver<Stop>,
        notices: impl Fn(Notice<'_>),
    ) -> Result<StepOutcome, Failure> {
        let began = Instant::now();
        let files = TurnFiles::of(&self.steps, &input.turn);
        let attached = files.stream.exists();
        let mut process = if attached {
            self.attach(&input.turn, &files).await
        } else {
            self.start(input, &files)?
        };
        let mut stream = Stream::default();
        let mut follower = Follower::open(&files.stream).map_err(|error| {
            Failure::new(Cause::Storage, format!("{}: {error}", files.stream.display()))
        })?;
        let throttled = Cell::new(0);
        let end = follow(&mut process, &mut follower, &mut stream, stop, input.limits, |stream| {
            if let Some(seen) = &stream.activity {
                notices(Notice::Active(seen));
            }
            if stream.throttled > throttled.replace(stream.throttled) {
                notices(Notice::Throttled);
            }
        })
        .await;
        point("rest.before");
        put_to_rest(&mut process, stop, matches!(end, End::Result)).await;
        point("rest.group");
        let end = match follower.read_to_end(&mut stream).await {
            Err(error) if stream.result.is_none() => End::Unreadable(error),
            _ => end,
        };
        if attached || stream.used_tools || began.elapsed() > BRIEF {
            let stem = input.turn.stem();
            leftover::sweep(&self.marker, |turn| turn == stem).await;
        }
        point("rest.after");
        let mut outcome = Self::outcome(end, &stream, &files, input.limits);
        if let StepOutcome::Failed(failure) = &mut outcome {
            let _ = write!(failure.message, "; see {}", files.stream.display());
        }
        Ok(outcome)
    }

    /// A turn that was told to stop or took too long may have answered all the same at its very end;
    /// an error it gave then is only how it took being told.
    fn outcome(end: End, stream: &Stream, files: &TurnFiles, limits: Limits) -> StepOutcome {
        let answered = stream.result.as_ref().is_some_and(|result| !result.is_error);
        let cost = stream.result.as_ref().map_or(Usd::ZERO, |result| result.cost);
        let failed = |cause, message: String| {
            StepOutcome::Failed(Failure { cost, ..Failure::new(cause, message) })
        };
        match end {
            End::Unreadable(error) => {
                failed(Cause::Output, format!("Claude Code cannot be followed: {error}"))
            }
            End::Stopped if !answered => failed(
                Cause::Interrupted,
                "the turn was ended because the run was told to stop".to_owned(),
            ),
            End::TimedOut if !answered => {
                let longest = span(limits.timeout_ms);
                failed(
                    Cause::Timeout,
                    format!("Claude Code had no result after {longest}; allow more with --timeout"),
                )
            }
            End::Stalled if !answered => {
                let longest = span(limits.idle_timeout_ms);
                failed(
                    Cause::Stall,
                    format!(
                        "Claude Code made no progress for {longest}; allow more with --idle-timeout"
                    ),
                )
            }
            End::Exited(exit) => judge(stream, exit, moment, || files.last_words()),
            End::Result | End::Stopped | End::TimedOut | End::Stalled => {
                judge(stream, Exit::Unseen, moment, || files.last_words())
            }
        }
    }

    /// How many turns can run at the same time.
    #[must_use]
    pub fn capacity(&self) -> usize {
        match self.settings.max_procs {
            MaxProcs::Auto => capacity::processes(machine::cores(), self.gauge.memory()),
            MaxProcs::Count(count) => count.max(1),
        }
    }

    /// Whether one more process would leave too little memory to everything else.
    #[must_use]
    pub fn is_short_of_memory(&self) -> bool {
        self.gauge.memory().is_some_and(Memory::is_short)
    }

    fn start(&self, input: &StepInput, files: &TurnFiles) -> Result<Process, Failure> {
        if self.told.get() != Stop::No {
            let message = "the turn was not started because the run was told to stop";
            return Err(Failure::new(Cause::Interrupted, message));
        }
        point("spawn.before");
        let opened = files.create(&input.prompt).map_err(|(path, error)| {
            Failure::new(Cause::Storage, format!("{}: cannot be written: {error}", path.display()))
        })?;
        let start = Start {
            program: &self.program,
            arguments: arguments(input, &self.settings),
            cwd: self.settings.cwd.as_ref(),
            environment: self.marker.variables(&input.turn),
        };
        let process = Process::start(start, opened).map_err(|error| self.not_started(&error))?;
        point("spawn.after");
        Ok(process)
    }

    /// A program that is not there keeps every agent from working; a machine that is full does not.
    fn not_started(&self, error: &std::io::Error) -> Failure {
        let (program, cwd) = (self.program.display(), &self.settings.cwd);
        let lasting = matches!(
            error.kind(),
            ErrorKind::NotFound
                | ErrorKind::PermissionDenied
                | ErrorKind::NotADirectory
                | ErrorKind::InvalidInput
        ) || error.raw_os_error() == Some(NOT_A_PROGRAM);
        if lasting {
            let hint = "install Claude Code, or name it with --claude or RAYMOND_CLAUDE";
            Failure::new(
                Cause::Unavailable,
                format!(
                    "{program} cannot be run in {cwd}: {error}; if it is a script, see that its interpreter is there; else {hint}"
                ),
            )
        } else {
            Failure::new(Cause::Crash, format!("{program} could not be started in {cwd}: {error}"))
        }
    }

    /// The process of a turn that was started before, if it still runs: the first of those that
    /// bear the turn's mark, lead a group and write into its transcript.
    async fn attach(&self, turn: &TurnId, files: &TurnFiles) -> Process {
        let (stem, marker) = (turn.stem(), self.marker.clone());
        let found = spawn_blocking(move || leftover::find(&marker)).await.unwrap_or_default();
        found
            .into_iter()
            .filter(|leftover| leftover.leads && leftover.turn == stem)
            .filter(|leftover| leftover::writes_to(leftover, &files.stream))
            .min_by_key(|leftover| leftover.started)
            .map_or(Process::Gone, Process::Adopted)
    }
}

/// Now, here.
fn moment() -> Moment {
    let millis = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0);
    Moment { now: Timestamp(millis), zone: jiff::tz::TimeZone::system() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(end: End, line: &str) -> StepOutcome {
        let mut stream = Stream::default();
        stream.feed(line.as_bytes()).expect("a short line");
        let turn = TurnId { agent: crate::domain::id::AgentId::main(), step: 1, turn: 0 };
        let limits = Settings::default().supervision.limits();
        Claude::outcome(end, &stream, &TurnFiles::of(&PathBuf::new(), &turn), limits)
    }

    const ANSWER: &str = "{\"type\":\"result\",\"is_error\":false,\"result\":\"hi\"}\n";
    const ERROR: &str = "{\"type\":\"result\",\"is_error\":true,\"subtype\":\"error_during_execution\",\"total_cost_usd\":0.5}\n";

    #[test]
    fn an_answer_counts_also_at_the_very_end() {
        for end in [End::Stopped, End::TimedOut, End::Exited(Exit::Signal(15))] {
            assert!(matches!(outcome(end, ANSWER), StepOutcome::Replied(_)));
        }
    }

    #[test]
    fn an_error_on_being_stopped_is_no_crash_and_is_paid_for() {
        for (end, cause) in [
            (End::Stopped, Cause::Interrupted),
            (End::TimedOut, Cause::Timeout),
            (End::Stalled, Cause::Stall),
        ] {
            let StepOutcome::Failed(failure) = outcome(end, ERROR) else { panic!("an answer") };
            assert_eq!((failure.cause, failure.cost), (cause, Usd::from_dollars(0.5)));
        }
    }
}
