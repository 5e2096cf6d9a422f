//! Runs turns without any model: the replies come from the workflow's own script.
//!
//! Each turn leaves a stream, as one of Claude Code does.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::watch;

use super::runner::{LocalFuture, StepRunner, StopLevel, TurnNotice, TurnNoticeHandler};
use crate::actor::context::wall_clock_now;
use crate::domain::cassette::ScriptedFault;
use crate::domain::id::AgentId;
use crate::domain::money::Usd;
use crate::domain::policy::refusal;
use crate::domain::settings::MaxProcs;
use crate::domain::supervision::TurnTimeouts;
use crate::domain::turn::{FailureCause, TurnFailure, TurnId, TurnInput, TurnOutcome, TurnReply};
use crate::language::output::placeholder;
use crate::language::replies::{FilePath, ReplyRequest, ScriptedReplies, ScriptedReply, key_of};
use crate::language::template;
use crate::process::host;
use crate::process::scripted_stream::{ScriptedStream, TakenReplies};
use crate::process::worker::CancellationTokens;
use crate::process::working_dirs::WorkingDirs;
use crate::world::recorded_files::ScriptedFiles;

/// A script, as a run uses it.
#[derive(Debug)]
pub struct ScriptedRunner {
    path: String,
    replies: ScriptedReplies,
    /// The directory for the streams of the turns.
    steps: PathBuf,
    capacity: usize,
    stops: CancellationTokens,
    taken: TakenReplies,
    places: ScriptedPlaces,
}

/// The directories that scripted turns work in, and the folders that they may not change.
#[derive(Debug)]
pub struct ScriptedPlaces {
    /// The working directories of the agents.
    pub working_dirs: WorkingDirs,
    /// The directory of all runs, and the workflow's own folder.
    pub kept: Vec<PathBuf>,
}

impl ScriptedRunner {
    /// Returns the replies of a workflow. `path` is named when they run out; `max_procs` turns may run at the same
    /// time, and leave their streams in `steps`.
    pub fn new(
        path: String,
        replies: ScriptedReplies,
        steps: PathBuf,
        max_procs: MaxProcs,
        places: ScriptedPlaces,
    ) -> Self {
        Self {
            taken: TakenReplies::new(&steps),
            stops: CancellationTokens::default(),
            path,
            replies,
            steps,
            capacity: host::turn_capacity(max_procs, None),
            places,
        }
    }

    /// Begins a turn: begins its stream, and looks up its answer.
    fn begin(&self, input: &TurnInput) -> Result<ScriptedTurn, TurnFailure> {
        let stream = ScriptedStream::begin(&self.steps, &input.turn, &input.prompt)?;
        let (note, scripted) = self.choose(input)?;
        let fill = |text: &str| template::fill(text, |name| placeholder(&input.values, name)).text;
        let mut turn = ScriptedTurn {
            note,
            stream,
            text: fill(&scripted.text),
            cost: scripted.cost,
            delay_ms: scripted.delay_ms,
            fault: scripted.fault,
            limits: input.limits,
            files: None,
            stop: self.stops.of_turn(&input.turn.agent),
        };
        let write = |(path, text): (&FilePath, &String)| (path.as_str().to_owned(), fill(text));
        let files = ScriptedFiles {
            write: scripted.files.iter().map(write).collect(),
            delete: scripted.delete.iter().map(|path| path.as_str().to_owned()).collect(),
        };
        if !files.is_empty() {
            let key = key_of(input.folder.as_ref(), &input.state);
            let directory = self.places.working_dirs.directory(&input.working_dir);
            let directory = directory.map_err(|why| self.wrong(&key, &why))?;
            // A worktree lies in the directory of the runs, and is the agent's own all the same.
            let kept = match &input.working_dir.tree {
                Some(_) => Vec::new(),
                None => self.places.kept.clone(),
            };
            turn.files = Some((directory, kept, files));
        }
        Ok(turn)
    }

    /// Returns the reply to a turn, with the note to make of it, if a later choice depends on it.
    fn choose(&self, input: &TurnInput) -> Result<(Option<usize>, &ScriptedReply), TurnFailure> {
        let key = key_of(input.folder.as_ref(), &input.state);
        let depends = self.replies.depends_on_taken(&key, input.limits);
        let taken = depends.then(|| self.taken.before(&input.turn, &key)).transpose()?;
        let request = ReplyRequest {
            key: &key,
            agent: &input.turn.agent,
            visit: input.visit,
            prompt: &input.prompt,
            taken: taken.as_deref(),
        };
        let (place, reply) = self.replies.reply(&self.path, &request).map_err(|error| {
            let why = match refusal(&input.prompt) {
                Some(why) => {
                    format!("{}: the last reply of {key} was refused: {why} Correct the reply, or what it refers to", self.path)
                }
                None => error.to_string(),
            };
            TurnFailure::new(FailureCause::Workflow, why)
        })?;
        Ok((depends.then_some(place), reply))
    }

    /// Ends a turn, and notes what it was given.
    async fn answer(
        &self,
        asked: &AskedTurn,
        turn: ScriptedTurn,
    ) -> Result<TurnReply, TurnFailure> {
        let mut turn = turn.waited().await?;
        if let Some((directory, kept, files)) = turn.files.take() {
            let made = files.apply(&directory, &kept, &asked.turn.stem());
            made.map_err(|why| self.wrong(&asked.key, &why))?;
        }
        if let Some(place) = turn.note {
            self.taken.note(&asked.turn, &asked.key, place)?;
        }
        turn.ended()
    }

    /// Returns the failure of a turn whose reply asks for what cannot be done.
    fn wrong(&self, key: &str, why: &str) -> TurnFailure {
        let message = format!("{}: a reply of {key} cannot change files: {why}", self.path);
        TurnFailure::new(FailureCause::Workflow, message)
    }
}

/// The identity of a turn and the key of its replies.
struct AskedTurn {
    turn: TurnId,
    key: String,
}

impl AskedTurn {
    fn of(input: TurnInput) -> Self {
        Self { key: key_of(input.folder.as_ref(), &input.state), turn: input.turn }
    }
}

/// A turn that has begun. It does not keep the prompt, because thousands of turns may be waiting for their delays.
struct ScriptedTurn {
    /// The place of the reply in its list, if that is to be noted.
    note: Option<usize>,
    stream: ScriptedStream,
    text: String,
    cost: Usd,
    delay_ms: u64,
    fault: Option<ScriptedFault>,
    limits: TurnTimeouts,
    /// The agent's working directory, the folders in which nothing is changed, and the files to change.
    files: Option<(PathBuf, Vec<PathBuf>, ScriptedFiles)>,
    stop: watch::Receiver<StopLevel>,
}

impl ScriptedTurn {
    /// Returns the turn after its delay. A turn that exceeds its time limit fails at that limit.
    async fn waited(mut self) -> Result<Self, TurnFailure> {
        if let Some((longest, fault)) = ScriptedFault::of_delay(self.delay_ms, self.limits) {
            (self.delay_ms, self.fault) = (longest, Some(fault));
        }
        if self.delay_ms > 0 {
            self.stream.pause();
            // The time that the turn has to end by itself when the run is stopped.
            let grace_ms = self.limits.shutdown_ms;
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(self.delay_ms)) => {}
                () = wait_for_stop(&mut self.stop, grace_ms) => {
                    let message = "the turn was ended because the run was stopped";
                    return Err(TurnFailure::new(FailureCause::Interrupted, message));
                }
            }
        }
        Ok(self)
    }

    /// Ends the stream with the answer, or returns the failure that the script asks for.
    fn ended(self) -> Result<TurnReply, TurnFailure> {
        if let Some(fault) = self.fault {
            let failure = fault.failure(self.limits, wall_clock_now());
            return Err(TurnFailure { cost: self.cost, ..failure });
        }
        let reply = TurnReply {
            text: self.text,
            cost: self.cost,
            duration_ms: self.delay_ms,
            ..TurnReply::default()
        };
        self.stream.end(&reply).map(|()| reply)
    }
}

/// Waits until the turn is to end: at once, or when its grace is over.
pub(super) async fn wait_for_stop(stop: &mut watch::Receiver<StopLevel>, grace_ms: u64) {
    let _ = stop.wait_for(|&level| level != StopLevel::None).await;
    let grace = Duration::from_millis(grace_ms);
    let _ = tokio::time::timeout(grace, stop.wait_for(|&level| level > StopLevel::Patiently)).await;
}

impl StepRunner for ScriptedRunner {
    fn run(
        self: Rc<Self>,
        input: TurnInput,
        notices: TurnNoticeHandler,
    ) -> LocalFuture<TurnOutcome> {
        notices(TurnNotice::Active("a script answers it"));
        let started = self.begin(&input);
        let asked = AskedTurn::of(input);
        Box::pin(async move {
            let outcome = match started {
                Ok(turn) => self.answer(&asked, turn).await,
                Err(failure) => Err(failure),
            };
            self.stops.forget(&asked.turn.agent);
            outcome.map_or_else(TurnOutcome::Failed, TurnOutcome::Replied)
        })
    }

    /// Returns none: a turn that was interrupted is answered again, and has not begun until then.
    fn started_turns(&self, turns: Vec<TurnId>) -> Vec<TurnId> {
        ScriptedStream::discard(&self.steps, &turns);
        Vec::new()
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn stop(&self, agent: &AgentId) {
        self.stops.stop(agent);
    }

    fn stop_all(&self, how: StopLevel) {
        self.stops.stop_all(how);
    }
}
