//! The JSON of `raymond show`.

use serde_json::{Value, json};

use super::AgentDetails;
use crate::cli::exit::Error;
use crate::cli::output;
use crate::domain::history::{HistoryStep, HistoryTurn};

impl AgentDetails<'_> {
    /// Returns the agent with its steps as JSON.
    pub(super) fn as_json(&self, steps: &[HistoryStep]) -> Result<Value, Error> {
        let mut all = Vec::new();
        for step in steps {
            let turns = step.turns.iter().map(|turn| self.turn_json(step, turn));
            let mut value = json!({
                "step": step.number,
                "state": step.state,
                "since": step.since,
                "cost_usd": step.cost(),
                "turns": turns.collect::<Result<Vec<_>, _>>()?,
            });
            if let Some(folder) = &step.folder {
                value["folder"] = json!(folder);
            }
            all.push(value);
        }
        let mut value = json!({
            "run": self.view.run.workflow_id,
            "agent": self.agent,
            "parent": self.agent.parent(),
            "live": self.ended().is_none(),
            "cost_usd": self.cost(),
            "scripted": self.is_scripted(),
            "steps": all,
        });
        if let Some(ended) = self.ended() {
            output::add_ending(&mut value, ended);
        }
        Ok(value)
    }

    fn turn_json(&self, step: &HistoryStep, turn: &HistoryTurn) -> Result<Value, Error> {
        let mut value = match &turn.end {
            Some(end) if self.is_own(turn) => serde_json::to_value(&end.event).unwrap_or_default(),
            Some(end) if end.event.ends_run() => {
                json!({ "event": "ended_with_run", "by": end.event.agent() })
            }
            Some(end) => json!({ "event": "ended_by_join", "by": end.event.agent() }),
            None => json!({ "event": "due" }),
        };
        let prompt_and_reply = self.prompt_and_reply(turn)?.unwrap_or_default();
        value["agent"] = json!(turn.id.agent);
        value["step"] = json!(turn.id.step);
        value["turn"] = json!(turn.id.turn);
        value["state"] = json!(step.state);
        value["at"] = json!(turn.end.as_ref().map(|end| end.at));
        value["session_id"] = json!(turn.session);
        value["can_resume_session"] = json!(self.sessions.has(turn));
        value["prompt"] = json!(prompt_and_reply.prompt);
        value["answer"] = json!(turn.given.as_ref().or(prompt_and_reply.answer.as_ref()));
        if !prompt_and_reply.calls.is_empty() {
            value["tool_calls"] = json!(prompt_and_reply.calls);
        }
        if let Some(host) = &turn.host {
            value["host"] = json!(host);
        }
        if let Some(why) = self.elsewhere.missing(turn) {
            value["missing_texts"] = json!(why);
        }
        if let Some(script) = self.script_json(step, turn)? {
            let key = if step.state.is_script() { "script" } else { "command" };
            value[key] = script;
        }
        if let Some(evaluator) = &turn.evaluator {
            value["evaluator"] = json!(evaluator);
        }
        Ok(value)
    }
}
