//! Runs turns without any model: the answers come from a cassette.
//!
//! Each turn leaves a stream, as one of Claude Code does. A turn whose recorded prompt differs is answered with a
//! warning that shows the difference, or fails if the replay is strict.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use super::runner::{LocalFuture, StepRunner, StopLevel, TurnNews, TurnNotice, TurnNoticeHandler};
use super::scripted::wait_for_stop;
use crate::domain::cassette::{RecordedChange, RecordedEnding, place};
use crate::domain::id::{AgentId, MessageId, SessionId};
use crate::domain::money::Usd;
use crate::domain::session::Session;
use crate::domain::settings::MaxProcs;
use crate::domain::turn::{FailureCause, TurnFailure, TurnId, TurnInput, TurnOutcome, TurnReply};
use crate::domain::usage::UsageByModel;
use crate::domain::worktree_snapshot::WorkingDir;
use crate::language::cassette::{
    Cassette, MatchKind, PlayableTurn, PortableMarks, ReplayRequest, ReplayedTurns, difference,
    replayed_history, replayed_message, with_conversation,
};
use crate::process::host;
use crate::process::scripted_stream::ScriptedStream;
use crate::process::worker::CancellationTokens;
use crate::world::recorded_files::{ReplaySite, make_again};

/// A cassette, as a run uses it.
#[derive(Debug)]
pub struct ReplayRunner {
    /// The path that was given, for messages.
    path: String,
    cassette: Cassette,
    marks: PortableMarks,
    site: ReplaySite,
    is_strict: bool,
    capacity: usize,
    stops: CancellationTokens,
}

/// The parameters of a [`ReplayRunner`].
#[derive(Debug)]
pub struct ReplayRunnerArgs {
    /// The path of the cassette, for messages.
    pub path: String,
    /// The recorded turns that answer for the model.
    pub cassette: Cassette,
    /// The texts of this run that the marks in the cassette stand for.
    pub marks: PortableMarks,
    /// The places of the run.
    pub site: ReplaySite,
    /// True if a difference from the recording fails the agent.
    pub is_strict: bool,
    /// The number of turns that may run at the same time.
    pub max_procs: MaxProcs,
}

/// A turn that has begun.
struct StartedReplay {
    stream: ScriptedStream,
    outcome: RecordedEnding,
    /// The failure or the reply without its texts.
    reply: TurnReply,
    changes: Vec<RecordedChange>,
}

impl ReplayRunner {
    /// Returns the runner.
    pub fn new(args: ReplayRunnerArgs) -> Self {
        let ReplayRunnerArgs { path, cassette, marks, site, is_strict, max_procs } = args;
        Self {
            path,
            cassette,
            marks,
            site,
            is_strict,
            capacity: host::turn_capacity(max_procs, None),
            stops: CancellationTokens::default(),
        }
    }

    /// Returns the cassette.
    pub fn cassette(&self) -> &Cassette {
        &self.cassette
    }

    /// Returns a recorded text with the paths and the id of this run.
    pub(super) fn filled(&self, text: &str) -> String {
        self.marks.filled(text)
    }

    /// Begins a turn: begins its stream, and looks up its answer.
    fn begin(&self, input: &TurnInput) -> Result<StartedReplay, TurnFailure> {
        let stream = ScriptedStream::begin(&self.site.steps, &input.turn, &input.prompt)?;
        let place = place(input.folder.as_ref(), &input.state);
        let asked = ReplayRequest {
            id: &input.turn,
            place: &place,
            visit: input.visit,
            prompt: &input.prompt,
            marks: &self.marks,
        };
        let Some((found, by)) = self.cassette.find(&asked) else {
            return Err(self.no_turn(&place, input.visit));
        };
        self.compare(&asked, found, by)?;
        let recorded = &found.recorded;
        let mut usage = recorded.usage.clone();
        usage += &found.further_usage;
        let mut reply = TurnReply {
            cost: recorded.cost_usd.saturating_add(found.further_cost),
            usage,
            refused_tools: recorded.refused_tools.clone(),
            duration_ms: recorded.duration_ms,
            is_given: recorded.given,
            ..TurnReply::default()
        };
        if self.cassette.is_partial() {
            // The money was spent by the recorded run. The budget of this one is for the turns that follow.
            reply.cost = Usd::ZERO;
            reply.usage = UsageByModel::default();
            reply.message = Some(replayed_message(&input.turn));
        }
        let (outcome, changes) = (recorded.outcome.clone(), recorded.files.clone());
        Ok(StartedReplay { stream, outcome, reply, changes })
    }

    fn no_turn(&self, place: &str, visit: u32) -> TurnFailure {
        let visit = visit + 1;
        let why = format!(
            "{}: this cassette has no turn {visit} of an agent in {place}; record a run that gets that far, or answer with --agent scripted or Claude Code",
            self.path
        );
        TurnFailure::new(FailureCause::Workflow, why)
    }

    /// Tells a difference of the prompts, or fails the turn because of it.
    fn compare(
        &self,
        asked: &ReplayRequest<'_>,
        found: &PlayableTurn,
        by: MatchKind,
    ) -> Result<(), TurnFailure> {
        if by == MatchKind::Exact {
            return Ok(());
        }
        let recorded = &found.recorded;
        let shown = match &recorded.prompt {
            Some(_) if found.is_asked(asked) => None,
            // No prompt was sent, so nothing can be compared.
            None if recorded.given => return Ok(()),
            Some(prompt) => Some(difference(&self.marks.filled(prompt), asked.prompt)),
            None => Some("the recorded prompt is not known".to_owned()),
        };
        let origin = format!("{} of {} ({})", recorded.place(), recorded.agent, by.meaning());
        match shown {
            Some(shown) if self.is_strict => {
                let why = format!(
                    "the prompt differs from the recorded one, of {origin}; record the run again, or replay it without --strict-replay:\n{shown}"
                );
                Err(TurnFailure::new(FailureCause::Workflow, why))
            }
            None if self.is_strict => {
                let why =
                    format!("no turn of this agent is recorded here, but a turn of {origin} is");
                Err(TurnFailure::new(FailureCause::Workflow, why))
            }
            Some(shown) => {
                let agent = &asked.id.agent;
                tracing::warn!(agent = %agent, "{}: the prompt differs from the recorded one; answered with the reply to {origin}:\n{shown}", asked.id);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Makes the recorded changes of files, and ends the turn as it ended.
    async fn end(
        &self,
        input: EndedInput,
        started: StartedReplay,
    ) -> Result<TurnReply, TurnFailure> {
        let StartedReplay { stream, outcome, mut reply, changes } = started;
        if !changes.is_empty() {
            let changes = changes.into_iter().map(|mut change| {
                change.patch = change.patch.map(|text| self.marks.filled(text));
                change
            });
            let made = make_again(
                self.site.clone(),
                input.working_dir.clone(),
                input.turn.clone(),
                changes.collect(),
            );
            self.tell_problems(&input.turn, &made.await)?;
        }
        let filled = |text: String| self.marks.filled(&text);
        match outcome {
            RecordedEnding::Replied { answer: None, structured: None } => {
                let why = format!("{}: the answer of this turn is not recorded", self.path);
                Err(TurnFailure {
                    cost: reply.cost,
                    usage: reply.usage,
                    ..TurnFailure::new(FailureCause::Workflow, why)
                })
            }
            RecordedEnding::Replied { answer, structured } => {
                reply.text = answer.map(filled).unwrap_or_default();
                reply.structured = structured.map(filled);
                stream.end(&reply).map(|()| reply)
            }
            RecordedEnding::Failed { cause, message } => Err(TurnFailure {
                cost: reply.cost,
                usage: reply.usage,
                refused_tools: reply.refused_tools,
                ..TurnFailure::new(cause, filled(message))
            }),
            RecordedEnding::Cut => {
                let cause = self.wait(&input).await;
                let message = "the recorded turn has no end: its agent was ended by others";
                let failure = TurnFailure::new(cause, message);
                Err(TurnFailure { cost: reply.cost, usage: reply.usage, ..failure })
            }
        }
    }

    /// Waits until the turn is to end, but not for longer than a turn may take.
    async fn wait(&self, input: &EndedInput) -> FailureCause {
        let mut stop = self.stops.of_turn(&input.turn.agent);
        let longest = Duration::from_millis(input.timeout_ms);
        match tokio::time::timeout(longest, wait_for_stop(&mut stop, 0)).await {
            Ok(()) => FailureCause::Interrupted,
            Err(_) => FailureCause::Timeout,
        }
    }

    fn tell_problems(&self, turn: &TurnId, problems: &[String]) -> Result<(), TurnFailure> {
        if problems.is_empty() {
            return Ok(());
        }
        let problems = problems.join("; ");
        if self.is_strict {
            let why = format!("a recorded change of a file cannot be made: {problems}");
            return Err(TurnFailure::new(FailureCause::Workflow, why));
        }
        tracing::warn!(agent = %turn.agent, "{turn}: a recorded change of a file is left out: {problems}");
        Ok(())
    }
}

/// The part of the input that is needed when the turn ends. It has no prompt, because that is large.
struct EndedInput {
    turn: TurnId,
    working_dir: WorkingDir,
    timeout_ms: u64,
}

impl StepRunner for ReplayRunner {
    fn run(
        self: Rc<Self>,
        input: TurnInput,
        notices: TurnNoticeHandler,
    ) -> LocalFuture<TurnOutcome> {
        notices(TurnNotice::Active("a cassette answers it"));
        let started = self.begin(&input);
        let TurnInput { turn, working_dir, limits, .. } = input;
        let ended = EndedInput { turn, working_dir, timeout_ms: limits.timeout_ms };
        Box::pin(async move {
            let agent = ended.turn.agent.clone();
            let outcome = match started {
                Ok(started) => self.end(ended, started).await,
                Err(failure) => Err(failure),
            };
            self.stops.forget(&agent);
            outcome.map_or_else(TurnOutcome::Failed, TurnOutcome::Replied)
        })
    }

    /// Returns none: a turn that was interrupted is answered again, and has not begun until then.
    fn started_turns(&self, turns: Vec<TurnId>) -> Vec<TurnId> {
        ScriptedStream::discard(&self.site.steps, &turns);
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

// Runs the first part of a run from a cassette, and the rest by another runner.
//
// A turn belongs to the recorded part if the cassette has it in its place. This needs no stored state, so a run that
// was killed switches at the same turn. The first live turn in a replayed session begins a new session, because the
// replayed session does not exist, and puts the recorded conversation before its prompt.

/// The runner of a run whose first part is replayed.
pub struct ReplayUntilRunner {
    replay: Rc<ReplayRunner>,
    live: Rc<dyn StepRunner>,
    /// The turns that were replayed, those of an earlier process included.
    turns: RefCell<ReplayedTurns>,
    steps: PathBuf,
    has_warned: Cell<bool>,
}

impl ReplayUntilRunner {
    /// Returns the runner. `turns` are those that an earlier process has replayed.
    pub fn new(
        replay: Rc<ReplayRunner>,
        live: Rc<dyn StepRunner>,
        turns: ReplayedTurns,
        steps: PathBuf,
    ) -> Self {
        Self { replay, live, turns: RefCell::new(turns), steps, has_warned: Cell::new(false) }
    }

    /// Returns the input of a turn that is not replayed. In a replayed session, it begins a new session.
    fn live_input(&self, mut input: TurnInput) -> TurnInput {
        let Some(message) = replayed_history(&input.session) else { return input };
        let turns = self.turns.borrow();
        let turns = turns.up_to(message, self.replay.cassette());
        if !self.has_warned.replace(true) {
            let count = turns.len();
            tracing::warn!(
                agent = %input.turn.agent,
                "{}: the replayed session does not exist, so a new session begins with its transcript (turns: {count}); this holds for all replayed sessions",
                input.turn
            );
        }
        input.prompt = with_conversation(&turns, |text| self.replay.filled(text), &input.prompt);
        input.session = Session::fresh(input.session.id);
        input
    }
}

impl StepRunner for ReplayUntilRunner {
    fn run(
        self: Rc<Self>,
        input: TurnInput,
        notices: TurnNoticeHandler,
    ) -> LocalFuture<TurnOutcome> {
        let place = place(input.folder.as_ref(), &input.state);
        let recorded = self.replay.cassette().recorded_at(&input.turn, &place, input.visit);
        if let Some(index) = recorded {
            self.turns.borrow_mut().note(&input.turn, &input.session, index);
            return Rc::clone(&self.replay).run(input, notices);
        }
        // A script has no messages. Without a message, the session would seem to have no live turns.
        let message = MessageId::new(&input.turn.stem());
        let outcome = Rc::clone(&self.live).run(self.live_input(input), notices);
        Box::pin(async move {
            match outcome.await {
                TurnOutcome::Replied(mut reply) => {
                    reply.message.get_or_insert(message);
                    TurnOutcome::Replied(reply)
                }
                failed @ TurnOutcome::Failed(_) => failed,
            }
        })
    }

    fn started_turns(&self, turns: Vec<TurnId>) -> Vec<TurnId> {
        // The other runner must not mistake the stream of a replayed turn for its own.
        let is_written_here = |turn: &TurnId| ScriptedStream::is_of(&self.steps, turn);
        let (replayed, live): (Vec<TurnId>, Vec<TurnId>) =
            turns.into_iter().partition(is_written_here);
        let started = self.replay.started_turns(replayed);
        started.into_iter().chain(self.live.started_turns(live)).collect()
    }

    fn capacity(&self) -> usize {
        self.live.capacity()
    }

    fn fits(&self) -> usize {
        self.live.fits()
    }

    fn idle_agents(&self) -> Vec<AgentId> {
        self.live.idle_agents()
    }

    fn keep(&self, agent: &AgentId, wanted: &dyn Fn(&SessionId) -> bool) {
        self.live.keep(agent, wanted);
    }

    /// Returns none, because the next turn may be replayed, and then needs no process.
    fn offer(&self) -> Option<SessionId> {
        None
    }

    fn stop(&self, agent: &AgentId) {
        self.replay.stop(agent);
        self.live.stop(agent);
    }

    fn tell(&self, agent: &AgentId, news: TurnNews) {
        self.live.tell(agent, news);
    }

    fn stop_all(&self, how: StopLevel) {
        self.replay.stop_all(how);
        self.live.stop_all(how);
    }

    fn sweep(self: Rc<Self>, keep: Vec<TurnId>) -> LocalFuture<usize> {
        Rc::clone(&self.live).sweep(keep)
    }

    fn sweeps_all_processes(&self) -> bool {
        self.live.sweeps_all_processes()
    }
}
