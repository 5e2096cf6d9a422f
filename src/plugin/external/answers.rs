//! Questions and answers: the program is asked once it is ready, and its answers are handed on.

use super::pipe::PluginLine;
use super::plugin_line::{PluginLineError, PluginLineErrorKind, read};
use super::{ExternalPlugin, PluginStatus, send};
use crate::actor::context::now;
use crate::domain::consult::{ConsultVerdict, StopScope};
use crate::domain::protocol::{HookPoint, HostMessage, PluginHello, PluginMessage};
use actix::Context;

impl ExternalPlugin {
    /// Sends a question to a program that runs and has said hello; otherwise the question waits for one.
    pub(super) fn ask(&mut self, id: u64) {
        let PluginStatus::Up(up) = &self.state else { return };
        let (Some(hello), Some(pending)) = (&up.hello, self.questions.get(&id)) else { return };
        if hello.consult.contains(&HookPoint::of(&pending.question)) {
            send(&up.outbox, &HostMessage::Consult { id, question: &pending.question });
        } else if let Some(pending) = self.questions.remove(&id) {
            let _ = pending.answer.send(ConsultVerdict::Proceed);
        }
    }

    /// Sends all questions that wait.
    fn ask_all(&mut self) {
        let waiting: Vec<u64> = self.questions.keys().copied().collect();
        for id in waiting {
            self.ask(id);
        }
    }

    /// Gives up on a question that the program cannot answer.
    pub(super) fn give_up_on(&mut self, id: u64, why: &str) {
        if let Some(pending) = self.questions.remove(&id) {
            let _ = pending.answer.send(self.without_an_answer(why));
        }
    }

    pub(super) fn without_an_answer(&self, why: &str) -> ConsultVerdict {
        if self.plugin.required {
            ConsultVerdict::Stop {
                reason: format!("it is required, and {why}"),
                scope: StopScope::Run,
            }
        } else {
            ConsultVerdict::Proceed
        }
    }

    fn answered(&mut self, id: u64, verdict: ConsultVerdict) -> Result<(), PluginLineError> {
        let Some(pending) = self.questions.remove(&id) else {
            let text = format!("answered the question {id}, which waits for no answer");
            return Err(PluginLineError { kind: PluginLineErrorKind::Unasked, text, id: None });
        };
        let _ = pending.answer.send(verdict);
        Ok(())
    }

    /// Takes a line of the program.
    pub(super) fn hear(&mut self, line: PluginLine) -> Result<(), PluginLineError> {
        match read(line)? {
            PluginMessage::Hello(hello) => {
                if let PluginStatus::Up(up) = &mut self.state {
                    up.hello = Some(hello);
                }
                self.ask_all();
                Ok(())
            }
            PluginMessage::Verdict(answer) => {
                let id = answer.id;
                match answer.verdict.verdict(now()) {
                    Ok(verdict) => self.answered(id, verdict),
                    Err(why) => Err(PluginLineError {
                        kind: PluginLineErrorKind::Answer,
                        text: format!("gave an answer that cannot be understood: {why}"),
                        id: Some(id),
                    }),
                }
            }
        }
    }

    /// Handles a useless line, besides warning of it.
    pub(super) fn on_flaw(&mut self, flaw: &PluginLineError, ctx: &mut Context<Self>) {
        let PluginStatus::Up(up) = &mut self.state else { return };
        up.complaints.about(&self.plugin.name, flaw);
        if let Some(id) = flaw.id {
            self.give_up_on(id, "its answer cannot be understood");
        }
        if flaw.kind == PluginLineErrorKind::Version {
            up_as_onlooker(&mut self.state);
            self.ask_all();
            if self.plugin.required {
                self.be_gone("speaks another version of the protocol", ctx);
            }
        }
    }
}

/// Marks a program whose greeting is not understood: it is told things, but not asked.
fn up_as_onlooker(state: &mut PluginStatus) {
    if let PluginStatus::Up(up) = state {
        up.hello = Some(PluginHello { version: 0, consult: Vec::new() });
    }
}
