//! Runs the first part of a run from a cassette, and the rest by another runner.
//!
//! A turn is of the recorded part if the cassette has it in its place: that needs no memory, so a run that was killed
//! continues at the same switch. The first turn after it in a session begins that session anew, because nobody has it, with
//! the recorded conversation before its prompt.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

use super::replayed::ReplayRunner;
use super::runner::{LocalFuture, StepRunner, StopLevel, TurnNews, TurnNoticeHandler};
use crate::domain::cassette::place;
use crate::domain::id::{AgentId, MessageId, SessionId};
use crate::domain::session::Session;
use crate::domain::turn::{TurnId, TurnInput, TurnOutcome};
use crate::language::cassette::conversation::{ReplayedTurns, replayed_history, with_conversation};
use crate::process::scripted_stream::ScriptedStream;

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

    /// Returns the input of a turn that is not replayed: in a session that was, it begins anew.
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
        // A script has no messages. Without one, a session would seem to have none of its own turns.
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

    fn begun_turns(&self, turns: Vec<TurnId>) -> Vec<TurnId> {
        // The other runner must not take the stream of a replayed turn for one of its own.
        let is_written_here = |turn: &TurnId| ScriptedStream::is_of(&self.steps, turn);
        let (replayed, live): (Vec<TurnId>, Vec<TurnId>) =
            turns.into_iter().partition(is_written_here);
        let begun = self.replay.begun_turns(replayed);
        begun.into_iter().chain(self.live.begun_turns(live)).collect()
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

    /// Returns none: the turn that begins may be one that is replayed, and needs no process.
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
