//! Turns that are cut off: the part of their answer that counts, and the known part of their cost. Pure.

use super::background::TurnRemainder;
use super::{AnswerState, StreamParser};

/// The moment at which a turn was cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CutOff {
    /// The model was at work.
    was_at_work: bool,
    /// The number of results by then.
    results: u32,
    /// The tasks that it waited for, for people.
    tasks: Option<String>,
}

/// The completeness of the cost of a turn beyond its results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CostCompleteness {
    /// The cost was read when the turn was being ended.
    pub(super) is_read_at_the_end: bool,
    /// A response was cut off, and no total has it.
    pub(super) lacks_a_response: bool,
    /// A result came whose answer was too long to be held: the turn was over, and its total is known.
    pub(super) has_lost_answer: bool,
}

impl StreamParser {
    /// Marks the turn as cut off. If it waits for background work, which is ended now, it has no
    /// answer, nor may one still come.
    pub fn cut_off(&mut self) {
        self.approvals.cut_off();
        let (was_at_work, is_unfinished) = match self.remainder() {
            None if self.cost.has_lost_answer => (false, true),
            None => (true, self.background.has_awaited(self.background_work)),
            Some(TurnRemainder::Turn) => (true, true),
            Some(TurnRemainder::Announced | TurnRemainder::Tasks) => (false, true),
            Some(TurnRemainder::Nothing) => (false, false),
        };
        let tasks = self.background.names().filter(|_| is_unfinished);
        self.cut_off = Some(CutOff { was_at_work, results: self.results, tasks });
        if is_unfinished {
            self.result = None;
            self.answer = AnswerState::Final;
        }
    }

    /// Returns whether the cost of a turn that is cut off is known, including the cost of its last response.
    pub fn has_settled(&self) -> bool {
        self.cut_off.as_ref().is_some_and(|cut_off| {
            let is_over = !cut_off.was_at_work || self.results > cut_off.results;
            is_over && (self.cost.is_read_at_the_end || self.cost.has_lost_answer)
        })
    }

    /// Returns the tasks that are known to run, or ran when the turn was cut off, for people.
    pub fn awaited_tasks(&self) -> Option<String> {
        let cut_off = self.cut_off.as_ref().and_then(|cut_off| cut_off.tasks.clone());
        cut_off.or_else(|| self.background.names())
    }

    /// Returns whether the cost was read when the turn was being ended.
    pub fn has_final_cost(&self) -> bool {
        self.cost.is_read_at_the_end
    }

    /// Marks the stream of a process that was asked while the disk was full.
    pub fn set_was_asked(&mut self) {
        self.was_asked = true;
    }

    /// Returns whether the turn may have cost more than [`taken`](Self::taken) says: only newer versions report an
    /// estimate for a response that is cut off.
    pub fn has_unknown_cost(&self) -> bool {
        let is_over =
            matches!(self.remainder(), Some(TurnRemainder::Nothing | TurnRemainder::Announced))
                || self.cost.has_lost_answer;
        let is_known = if self.cut_off.is_some() { self.has_settled() } else { is_over };
        let was_asked = self.message.is_some() || self.was_asked;
        self.cost.lacks_a_response || (was_asked && !is_known)
    }
}
