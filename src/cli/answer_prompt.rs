//! Asks the person at the terminal what the run's agents ask, one question after another.
//!
//! It is a plug-in like others: it receives the questions and the answers of all sources, and puts each typed
//! answer into the run's inbox, as `raymond answer` does. Answers have one way in, and one place decides which was
//! first.

mod keyboard;
mod line;

use std::time::Duration;

use actix::{Actor, AsyncContext, Context, Handler, Message};
use console::Term;

use self::keyboard::KeyboardReader;
use self::line::{LineEditor, LineInput};
use super::answer::put;
use super::questions::{self, OpenQuestion};
use crate::actor::message::{FinishPublishing, Published};
use crate::actor::process::StayUp;
use crate::domain::approval::PendingApproval;
use crate::domain::event::{Event, Record};
use crate::domain::id::AgentId;
use crate::domain::printable::printable_line;
use crate::domain::question::{AnswerCommand, Question};
use crate::domain::run::Run;
use crate::plugin::terminal::Terminal;
use crate::proof::ProofKey;
use crate::store::layout::RunDir;

/// The poll interval for an open question, so that a question that is answered ahead of time is not shown.
const QUESTION_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The person at the terminal. Dropping it restores the terminal.
#[derive(Debug, Default)]
pub(super) struct KeyboardGuard {
    keyboard: KeyboardReader,
    stay: StayUp,
}

impl KeyboardGuard {
    /// Makes the guard of a run that stays up until the person declines to answer.
    pub(super) fn for_whom(stay: StayUp) -> Self {
        Self { keyboard: KeyboardReader::default(), stay }
    }
}

impl Drop for KeyboardGuard {
    fn drop(&mut self) {
        self.keyboard.stop();
    }
}

/// The actor that asks the questions.
pub(super) struct AnswerPrompt {
    terminal: Terminal,
    dir: RunDir,
    key: ProofKey,
    stay: StayUp,
    open: Vec<OpenQuestion>,
    asked: Option<(AgentId, u64, String)>,
    /// True once the current question has been answered here and its answer is on its way.
    sent: bool,
    line: LineEditor,
    keyboard: KeyboardReader,
    /// True once the run has started or resumed. No question is asked before: it may have an answer already.
    begun: bool,
    /// True once nobody answers here any more.
    over: bool,
}

/// Bytes that were typed; empty if no more can come.
#[derive(Message)]
#[rtype(result = "()")]
struct KeysTyped(Vec<u8>);

impl AnswerPrompt {
    /// Makes the prompt for a run in its current state.
    pub(super) fn new(
        terminal: Terminal,
        (dir, key): (RunDir, ProofKey),
        person: &KeyboardGuard,
        run: &Run,
    ) -> Self {
        Self {
            terminal,
            dir,
            key,
            stay: person.stay.clone(),
            open: questions::open(run),
            asked: None,
            sent: false,
            line: LineEditor::default(),
            keyboard: person.keyboard.clone(),
            begun: false,
            over: false,
        }
    }

    /// Asks the first open question, unless one is asked already.
    fn ask(&mut self) {
        if self.over || !self.begun || self.asked.is_some() {
            return;
        }
        let Some(first) = self.open.first() else { return };
        self.asked = Some((first.agent.clone(), first.step, first.question.node.clone()));
        self.terminal.line(first.text(&first.agent.to_string()).trim_end());
        self.line.clear();
        self.sent = false;
        self.keyboard.want(true);
        self.show();
    }

    /// Shows the typed text behind the invitation.
    fn show(&self) {
        let Some(one) = self.current().filter(|_| !self.sent) else {
            return self.terminal.prompt(None);
        };
        let what = invitation(&one.question);
        let width = usize::from(Term::stderr().size().1).saturating_sub(2);
        let room = width.saturating_sub(console::measure_text_width(&what)).max(8);
        let text = self.line.text();
        let skipped = text.chars().count().saturating_sub(room);
        let end: String = text.chars().skip(skipped).collect();
        self.terminal.prompt(Some(&format!("{what}{end}_")));
    }

    fn current(&self) -> Option<&OpenQuestion> {
        let (agent, step, node) = self.asked.as_ref()?;
        let is_asked = |one: &&OpenQuestion| {
            one.agent == *agent && one.step == *step && one.question.node == *node
        };
        self.open.iter().find(is_asked)
    }

    fn typed(&mut self, typed: LineInput) {
        let Some(one) = self.current() else { return };
        let text = match typed {
            LineInput::Entered(text) if text.trim().is_empty() => return,
            LineInput::Entered(text) => text,
            LineInput::End => return self.give_up(),
        };
        if let Err(invalid) = one.check(&text) {
            return self.terminal.line(&printable_line(&invalid.to_string()));
        }
        let given = AnswerCommand {
            agent: Some(one.agent.clone()),
            step: Some(one.step),
            ..AnswerCommand::to(&one.question.node, &text)
        };
        match put(&self.dir, given, &self.key) {
            Ok(()) => {
                self.sent = true;
                self.keyboard.want(false);
            }
            Err(error) => self.terminal.line(&error.to_string()),
        }
    }

    /// Stops asking; the questions stay open.
    fn give_up(&mut self) {
        self.over = true;
        self.asked = None;
        self.keyboard.want(false);
        self.terminal.prompt(None);
        self.stay.no_longer();
    }

    /// Keeps the list of open questions in step with a record.
    fn follow(&mut self, record: &Record) {
        let over = match &record.event {
            Event::AgentFailed(failure) if failure.ends_run => {
                self.open.clear();
                None
            }
            event @ (Event::QuestionAnswered(_)
            | Event::QuestionTimedOut(_)
            | Event::AgentFailed(_)
            | Event::StepFinished(_)
            | Event::GraphAdvanced(_)
            | Event::ProgramAdvanced(_)
            | Event::LanguageAdvanced(_)
            | Event::TurnRejected(_)
            | Event::TurnFailed(_)
            | Event::TransitionProposed(_)
            | Event::RoleResponded(_)) => event.agent(),
            Event::ApprovalAnswered(answered) => {
                let name = PendingApproval::name_of(answered.number);
                self.open.retain(|one| one.approval.is_none() || one.question.node != name);
                None
            }
            // Calls that have run need no answer, and a turn that was ended keeps the others open.
            Event::TurnSuspended(suspended) => {
                let (agent, calls) = (&suspended.turn.agent, &suspended.calls);
                self.open.retain(|one| {
                    let call = one.approval.as_ref().map(|request| &request.call);
                    one.agent != *agent || call.is_none_or(|call| calls.contains(call))
                });
                None
            }
            _ => None,
        };
        if let Some(over) = over {
            self.open.retain(|one| one.agent != *over);
        }
        self.open.extend(asked(record));
        if self.asked.is_some() && self.current().is_none() {
            self.asked = None;
            self.keyboard.want(false);
            self.terminal.prompt(None);
        }
    }
}

/// Returns the question that a record asks, if any.
fn asked(record: &Record) -> Option<OpenQuestion> {
    let (turn, question) = (record.event.turn()?, record.event.question()?);
    if let Event::ApprovalAsked(asked) = &record.event {
        return Some(OpenQuestion {
            agent: turn.agent.clone(),
            step: turn.step,
            question,
            since: record.at,
            until: None,
            approval: Some(asked.request.clone()),
        });
    }
    let timeout = if let Event::StepFinished(step) = &record.event {
        step.transition.ask_timeout()
    } else {
        None
    };
    Some(OpenQuestion {
        agent: turn.agent.clone(),
        step: turn.step.saturating_add(1),
        question,
        since: record.at,
        until: timeout.map(|timeout| record.at.plus(timeout.timeout_ms)),
        approval: None,
    })
}

/// Returns the text before the input: the possible answers and keys.
fn invitation(question: &Question) -> String {
    let own = if question.free { ", or a text of your own" } else { "" };
    match question.options.len() {
        0 => "answer (Ctrl-D: leave it open): ".to_owned(),
        1 => format!("1{own} (Ctrl-D: leave it open): "),
        count => format!("1-{count}{own} (Ctrl-D: leave it open): "),
    }
}

impl Actor for AnswerPrompt {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let own = ctx.address();
        self.keyboard.listen(move |keys| own.do_send(KeysTyped(keys.to_vec())));
        ctx.run_interval(QUESTION_POLL_INTERVAL, |this, _| this.ask());
    }
}

impl Handler<KeysTyped> for AnswerPrompt {
    type Result = ();

    fn handle(&mut self, KeysTyped(keys): KeysTyped, _: &mut Self::Context) {
        if keys.is_empty() {
            return self.give_up();
        }
        for key in keys {
            if !self.sent
                && self.current().is_some()
                && let Some(typed) = self.line.press(key)
            {
                self.typed(typed);
            }
        }
        self.show();
    }
}

impl Handler<Published> for AnswerPrompt {
    type Result = ();

    fn handle(&mut self, published: Published, _: &mut Self::Context) {
        self.begun = true;
        self.follow(&published.record);
    }
}

impl Handler<FinishPublishing> for AnswerPrompt {
    type Result = ();

    fn handle(&mut self, _: FinishPublishing, _: &mut Self::Context) {
        self.keyboard.stop();
        self.terminal.prompt(None);
    }
}
