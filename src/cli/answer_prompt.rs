//! Asks the person at the terminal what the run's agents ask, one question after another, and reads the keys typed.
//!
//! It is a plug-in like others: it receives the questions and the answers of all sources, and puts each typed
//! answer into the run's inbox, as `raymond answer` does. Answers have one way in, and one place decides which was
//! first.

use std::io::{Stdin, stdin};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix::{Actor, AsyncContext, Context, Handler, Message};
use console::Term;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcgetpgrp, tcsetattr,
};

use super::answer::put;
use super::questions;
use super::questions::OpenQuestion;
use crate::actor::observer::{FinishPublishing, Published};
use crate::actor::process::StayUp;
use crate::domain::approval::PendingApproval;
use crate::domain::event::{Event, Record};
use crate::domain::id::AgentId;
use crate::domain::question::{AnswerCommand, Question};
use crate::domain::run::Run;
use crate::domain::tool_call::printable_line;
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
    has_started: bool,
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
        dir: RunDir,
        key: ProofKey,
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
            has_started: false,
            over: false,
        }
    }

    /// Asks the first open question, unless one is asked already.
    fn ask(&mut self) {
        if self.over || !self.has_started || self.asked.is_some() {
            return;
        }
        let Some(first) = self.open.first() else { return };
        self.asked = Some((first.agent.clone(), first.step, first.question.node.clone()));
        self.line.clear();
        self.sent = false;
        // Keys from before are dropped here: those of somebody who has seen the question are its answer.
        self.keyboard.want(true);
        self.terminal.line(first.text(&first.agent.to_string()).trim_end());
        self.show();
    }

    /// Shows the typed text behind the invitation.
    fn show(&self) {
        let Some(asked) = self.current().filter(|_| !self.sent) else {
            return self.terminal.prompt(None);
        };
        let what = invitation(&asked.question);
        let width = usize::from(Term::stderr().size().1).saturating_sub(2);
        let room = width.saturating_sub(console::measure_text_width(&what)).max(8);
        let text = self.line.text();
        let skipped = text.chars().count().saturating_sub(room);
        let end: String = text.chars().skip(skipped).collect();
        self.terminal.prompt(Some(&format!("{what}{end}_")));
    }

    fn current(&self) -> Option<&OpenQuestion> {
        let (agent, step, node) = self.asked.as_ref()?;
        let is_asked = |open: &&OpenQuestion| {
            open.agent == *agent && open.step == *step && open.question.node == *node
        };
        self.open.iter().find(is_asked)
    }

    fn typed(&mut self, typed: LineInput) {
        let Some(asked) = self.current() else { return };
        let text = match typed {
            LineInput::Entered(text) if text.trim().is_empty() => return,
            LineInput::Entered(text) => text,
            LineInput::End => return self.give_up(),
        };
        if let Err(invalid) = asked.check(&text) {
            return self.terminal.line(&printable_line(&invalid.to_string()));
        }
        let given = AnswerCommand {
            agent: Some(asked.agent.clone()),
            step: Some(asked.step),
            ..AnswerCommand::to(&asked.question.node, &text)
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
            Event::ApprovalAnswered(answered) => {
                let name = PendingApproval::name_of(answered.number);
                self.open.retain(|open| open.approval.is_none() || open.question.node != name);
                None
            }
            // Calls that have run need no answer, and a turn that was ended keeps the others open.
            Event::TurnSuspended(suspended) => {
                let (agent, calls) = (&suspended.turn.agent, &suspended.calls);
                self.open.retain(|open| {
                    let call = open.approval.as_ref().map(|request| &request.call);
                    open.agent != *agent || call.is_none_or(|call| calls.contains(call))
                });
                None
            }
            Event::QuestionAnswered(_) | Event::QuestionTimedOut(_) => record.event.agent(),
            event if event.cost().is_some() || event.advance().is_some() => event.agent(),
            _ => None,
        };
        if let Some(over) = over {
            self.open.retain(|open| open.agent != *over);
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
    let free = if question.free { ", or a text of your own" } else { "" };
    match question.options.len() {
        0 => "answer (Ctrl-D: leave it open): ".to_owned(),
        1 => format!("1{free} (Ctrl-D: leave it open): "),
        count => format!("1-{count}{free} (Ctrl-D: leave it open): "),
    }
}

impl Actor for AnswerPrompt {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let address = ctx.address();
        self.keyboard.listen(move |keys| address.do_send(KeysTyped(keys.to_vec())));
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
        self.has_started = true;
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

// The keyboard of the terminal: each byte as it is typed, while keys are wanted.
//
// The terminal neither waits for the end of a line nor echoes, because the live view does; its signals, as of
// Ctrl-C, stay. As soon as no keys are wanted any more, it is as before: later input is for the next reader. A
// process in the background of its terminal does not touch it.

/// The pause between two checks for wanted keys, in milliseconds.
const POLL_MILLIS: u32 = 50;

/// A reader of the keyboard, off until keys are wanted.
#[derive(Debug, Clone, Default)]
struct KeyboardReader(Arc<Mutex<KeyboardState>>);

#[derive(Debug, Default)]
struct KeyboardState {
    wanted: bool,
    over: bool,
    /// The terminal's modes before they were changed.
    before: Option<Termios>,
}

impl KeyboardReader {
    /// Starts a thread that passes typed bytes to `tell`, and an empty slice when no more can come. It reads
    /// nothing before keys are wanted.
    fn listen(&self, tell: impl Fn(&[u8]) + Send + 'static) {
        let state = Arc::clone(&self.0);
        // Without a thread nobody is heard, and the questions stay open.
        let _ = std::thread::Builder::new()
            .name("keyboard".to_owned())
            .spawn(move || listen(&state, &tell));
    }

    /// Turns reading on or off; keys that were pressed before are not read.
    fn want(&self, wanted: bool) {
        let mut state = lock(&self.0);
        state.wanted = wanted;
        if wanted && !state.over {
            state.prepare(&stdin());
        } else {
            state.restore();
        }
    }

    /// Stops reading for good, and restores the terminal.
    fn stop(&self) {
        let mut state = lock(&self.0);
        state.over = true;
        state.restore();
    }
}

fn lock(state: &Mutex<KeyboardState>) -> MutexGuard<'_, KeyboardState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listen(state: &Mutex<KeyboardState>, tell: &impl Fn(&[u8])) {
    let stdin = stdin();
    loop {
        {
            let mut state = lock(state);
            if state.over {
                return;
            }
            if !state.wanted || !state.prepare(&stdin) {
                drop(state);
                std::thread::sleep(Duration::from_millis(POLL_MILLIS.into()));
                continue;
            }
        }
        if !has_come(&stdin) {
            continue;
        }
        let mut bytes = [0; 256];
        // If nobody wants the input here any longer, leave it to the next reader.
        let guard = lock(state);
        if !guard.wanted || guard.over {
            continue;
        }
        let read = rustix::io::read(&stdin, &mut bytes);
        drop(guard);
        match read {
            Ok(count @ 1..) => tell(&bytes[..count]),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            _ => {
                tell(&[]);
                return;
            }
        }
    }
}

/// Returns whether a key has been typed within a moment.
fn has_come(stdin: &Stdin) -> bool {
    let mut polled = [PollFd::new(stdin, PollFlags::IN)];
    let moment = Timespec { tv_sec: 0, tv_nsec: i64::from(POLL_MILLIS) * 1_000_000 };
    poll(&mut polled, Some(&moment)).is_ok_and(|count| count > 0)
}

impl KeyboardState {
    /// Makes the terminal pass on each key at once; returns whether it does.
    fn prepare(&mut self, stdin: &Stdin) -> bool {
        // In a container, the own group can be one without an id there; then the terminal's has none either.
        if !tcgetpgrp(stdin).is_ok_and(|foreground| foreground == getpgrp()) {
            return false;
        }
        let Ok(mut modes) = tcgetattr(stdin) else { return false };
        let by_line = LocalModes::ICANON | LocalModes::ECHO;
        if !modes.local_modes.intersects(by_line) {
            return true;
        }
        self.before.get_or_insert_with(|| modes.clone());
        modes.local_modes.remove(by_line);
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        let _ = tcflush(stdin, QueueSelector::IFlush);
        tcsetattr(stdin, OptionalActions::Now, &modes).is_ok()
    }

    fn restore(&mut self) {
        if let Some(before) = self.before.take() {
            let _ = tcsetattr(stdin(), OptionalActions::Now, &before);
        }
    }
}

// A line of input, and the effect of each byte on it. Pure.

/// The longest line, in bytes; further input is left out.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// The text typed so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct LineEditor {
    text: String,
    /// The first bytes of a character that is not complete yet.
    partial: Vec<u8>,
    escape: EscapeState,
}

/// The progress within an escape sequence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum EscapeState {
    #[default]
    No,
    Started,
    Sequence,
}

/// The effect of a key beyond a change of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum LineInput {
    /// The line is entered.
    Entered(String),
    /// The input has ended: Ctrl-D on an empty line.
    End,
}

const CTRL_D: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const CTRL_U: u8 = 0x15;
const CTRL_W: u8 = 0x17;
const ESCAPE: u8 = 0x1b;
const DELETE: u8 = 0x7f;

impl LineEditor {
    /// Returns the text typed so far.
    fn text(&self) -> &str {
        &self.text
    }

    /// Clears the line.
    fn clear(&mut self) {
        *self = Self::default();
    }

    /// Takes a byte.
    fn press(&mut self, byte: u8) -> Option<LineInput> {
        match (self.escape, byte) {
            (EscapeState::Started, b'[' | b'O') => self.escape = EscapeState::Sequence,
            (EscapeState::Sequence, 0x40..=0x7e) | (EscapeState::Started, _) => {
                self.escape = EscapeState::No;
            }
            (EscapeState::No, ESCAPE) => self.escape = EscapeState::Started,
            (EscapeState::No, b'\r' | b'\n') => {
                self.partial.clear();
                return Some(LineInput::Entered(mem::take(&mut self.text)));
            }
            (EscapeState::No, CTRL_D) if self.text.is_empty() => return Some(LineInput::End),
            (EscapeState::No, BACKSPACE | DELETE) => drop(self.text.pop()),
            (EscapeState::No, CTRL_U) => self.text.clear(),
            (EscapeState::No, CTRL_W) => {
                let kept = self.text.trim_end().rfind(char::is_whitespace);
                self.text.truncate(kept.map_or(0, |space| space + 1));
            }
            (EscapeState::No, b'\t') => self.text.push(' '),
            (EscapeState::Sequence, _) | (EscapeState::No, 0..0x20) => {}
            (EscapeState::No, byte) => self.extend(byte),
        }
        None
    }

    fn extend(&mut self, byte: u8) {
        self.partial.push(byte);
        match str::from_utf8(&self.partial) {
            Ok(whole) if self.text.len() + whole.len() <= MAX_LINE_BYTES => {
                self.text.push_str(whole);
            }
            Err(error) if error.error_len().is_none() => return,
            _ => {}
        }
        self.partial.clear();
    }
}

#[cfg(test)]
mod line_tests {
    use super::*;

    fn typed(bytes: &str) -> (Vec<LineInput>, String) {
        let mut line = LineEditor::default();
        let keys = bytes.bytes().filter_map(|byte| line.press(byte)).collect();
        (keys, line.text().to_owned())
    }

    #[test]
    fn editing_keys_delete_text_and_escape_sequences_are_ignored() {
        let table = [
            ("abc", "abc"),
            ("ab\u{8}\u{7f}c", "c"),
            ("äö€\u{7f}", "äö"),
            ("one two  \u{17}", "one "),
            ("one\u{17}", ""),
            ("gone\u{15}new", "new"),
            ("a\u{1b}[A\u{1b}[3~\u{1b}OPb\u{1b}xc", "abc"),
            ("a\tb\u{1}", "a b"),
            ("a\u{4}", "a"),
        ];
        for (keys, line) in table {
            assert_eq!(typed(keys), (Vec::new(), line.to_owned()), "{keys:?}");
        }
    }

    #[test]
    fn enter_submits_line_and_ctrl_d_ends_input() {
        let entered = |text: &str| LineInput::Entered(text.to_owned());
        let (keys, rest) = typed("git\rno\n\u{4}");
        assert_eq!(
            (keys, rest.as_str()),
            (vec![entered("git"), entered("no"), LineInput::End], "")
        );
    }

    #[test]
    fn invalid_utf8_bytes_are_ignored() {
        let mut line = LineEditor::default();
        for byte in [0xff, b'a', 0xe2, 0x82, b'b'] {
            assert_eq!(line.press(byte), None);
        }
        assert_eq!(line.text(), "a");
    }
}
