//! The document of an agent for `raymond show --json` and the page.

use serde_json::Value;

use super::AgentDetails;
use crate::cli::exit::Error;
use crate::domain::history::{HistoryStep, HistoryTurn};
use crate::domain::views::{AgentDetail, AgentEndingView, StepRow, TurnRow};

impl AgentDetails<'_> {
    /// Returns the agent with its steps for programs.
    pub(super) fn document(&self, steps: &[HistoryStep]) -> Result<AgentDetail, Error> {
        let row = |step: &HistoryStep| {
            let turns = step.turns.iter().map(|turn| self.turn(step, turn));
            Ok(StepRow::of(step, turns.collect::<Result<_, Error>>()?))
        };
        Ok(AgentDetail {
            run: self.view.run.workflow_id.clone(),
            agent: self.agent.clone(),
            parent: self.agent.parent().map(str::to_owned),
            live: self.ended().is_none(),
            cost_usd: self.cost(),
            scripted: self.is_scripted(),
            steps: steps.iter().map(row).collect::<Result<_, Error>>()?,
            ending: self.ended().map(AgentEndingView::of),
        })
    }

    fn turn(&self, step: &HistoryStep, turn: &HistoryTurn) -> Result<Value, Error> {
        let texts = self.prompt_and_reply(turn)?.unwrap_or_default();
        let output = self.script_json(step, turn)?;
        let (script, command) =
            if step.state.is_script() { (output, None) } else { (None, output) };
        let row = TurnRow {
            agent: &turn.id.agent,
            step: turn.id.step,
            turn: turn.id.turn,
            state: &step.state,
            at: turn.end.as_ref().map(|end| end.at),
            session_id: &turn.session,
            can_resume_session: self.sessions.has(turn),
            prompt: texts.prompt,
            answer: turn.given.clone().or(texts.answer),
            tool_calls: texts.calls,
            host: turn.host.as_ref(),
            missing_texts: self.elsewhere.missing(turn),
            script,
            command,
            evaluator: turn.evaluator.as_ref(),
        };
        Ok(row.with_end(turn, self.agent))
    }
}
