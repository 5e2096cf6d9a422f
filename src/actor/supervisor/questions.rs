//! The supervisor and those who wait for someone: questions, their answers, their end.

use std::time::Duration;

use actix::{AsyncContext, Context as Ctx};

use super::Supervisor;
use super::work::MINUTE;
use crate::actor::clock::now;
use crate::actor::registry::AgentView;
use crate::domain::decide::{answer, timed_out};
use crate::domain::event::{Command, Event};
use crate::domain::id::AgentId;

impl Supervisor {
    /// An agent waits for an answer: until it comes, or until it is too late.
    pub(super) fn await_answer(&mut self, id: &AgentId, ctx: &mut Ctx<Self>) {
        let Some(agent) = self.run.agents.get(id) else { return };
        self.context.registry.show(AgentView::of(agent));
        let Some(late) = agent.asked.as_ref().and_then(|asked| asked.late.as_ref()) else { return };
        let (turn, wait) = (agent.turn_id(), late.at.since(now()));
        if let Some(event) = timed_out(agent, now()) {
            return self.commit(event, ctx);
        }
        ctx.run_later(
            Duration::from_millis(wait.saturating_add(1)).min(MINUTE),
            move |this, ctx| {
                if this.run.agents.get(&turn.agent).is_some_and(|agent| agent.turn_id() == turn) {
                    this.await_answer(&turn.agent, ctx);
                }
            },
        );
    }

    /// What follows from a command; the record that it was taken comes first.
    pub(super) fn obey(&mut self, id: String, command: Command, ctx: &mut Ctx<Self>) {
        let follows = match &command {
            Command::Stop => None,
            Command::Answer { agent, node, text } => {
                match answer(&self.run, agent.as_ref(), node, text) {
                    Ok(event) => Some(event),
                    Err(why) => {
                        tracing::warn!("an answer is not taken: {why}");
                        None
                    }
                }
            }
        };
        let received = Event::CommandReceived { id, command };
        self.commit_all(std::iter::once(received).chain(follows).collect(), ctx);
    }
}
