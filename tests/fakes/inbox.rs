//! The lines on stdin of a warm process: messages, each for one turn, and control requests.
//!
//! As in the real program, the lines are read while a turn runs. A control request is answered at once, and a
//! message waits for its turn. A new model applies to the messages after it.

use std::io::BufRead;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::stream;

/// A message, for one turn.
#[derive(Debug)]
pub(crate) struct TurnMessage {
    pub(crate) text: String,
    /// The model of `--model` or of the last `set_model`.
    pub(crate) model: Option<String>,
    /// The message as it came.
    pub(crate) line: Value,
}

/// The messages, and the state that control requests change.
#[derive(Debug)]
pub(crate) struct StdinInbox {
    messages: Receiver<Result<TurnMessage, String>>,
    pub(crate) control: Arc<ControlState>,
}

/// The state that the reader of stdin shares with the player of turns.
#[derive(Debug, Default)]
pub(crate) struct ControlState {
    /// The number of messages before the last interrupt; the turns below it are to stop.
    interrupted: AtomicUsize,
    ignores_stdin: AtomicBool,
    /// A message has come for a turn that runs, so that the session says when it is idle.
    was_steered: AtomicBool,
    /// The answers to own requests, and the rules that came with them.
    told: Mutex<ToldState>,
}

#[derive(Debug, Default)]
struct ToldState {
    answers: Vec<Value>,
    rules: Vec<String>,
    is_closed: bool,
}

/// What came of a request of the program.
#[derive(Debug)]
pub(crate) enum ToldAnswer {
    /// The line with the answer.
    Line(Value),
    /// Stdin has ended.
    Closed,
    /// The turn is interrupted.
    Interrupted,
}

impl ControlState {
    pub(crate) fn is_interrupted(&self, number: usize) -> bool {
        number < self.interrupted.load(Ordering::Relaxed)
    }

    /// Waits for the answer to a request in a turn.
    pub(crate) fn answer_to(&self, request: &str, turn: usize) -> ToldAnswer {
        loop {
            {
                let mut told = self.told();
                let of_request = |line: &Value| line["response"]["request_id"] == request;
                if let Some(place) = told.answers.iter().position(of_request) {
                    return ToldAnswer::Line(told.answers.swap_remove(place));
                }
                if told.is_closed {
                    return ToldAnswer::Closed;
                }
            }
            if self.is_interrupted(turn) {
                return ToldAnswer::Interrupted;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Adds rules for the rest of the process.
    pub(crate) fn add_rules(&self, rules: &Value) {
        for rule in rules.as_array().into_iter().flatten() {
            let (tool, content) = (rule["toolName"].as_str(), rule["ruleContent"].as_str());
            let tool = tool.unwrap_or_default();
            let text = content.map_or(tool.to_owned(), |content| format!("{tool}({content})"));
            self.told().rules.push(text);
        }
    }

    pub(crate) fn has_rule(&self, rule: &String) -> bool {
        self.told().rules.contains(rule)
    }

    fn told(&self) -> MutexGuard<'_, ToldState> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the process ignore stdin, even its end.
    pub(crate) fn ignore_stdin(&self) {
        self.ignores_stdin.store(true, Ordering::Relaxed);
    }
}

impl StdinInbox {
    pub(crate) fn open(model: Option<String>) -> Self {
        let control = Arc::<ControlState>::default();
        let (sender, messages) = channel();
        let told = Arc::clone(&control);
        std::thread::spawn(move || read_all(&sender, model, told));
        Self { messages, control }
    }

    /// Returns the next message; `None` at the end of stdin.
    pub(crate) fn next(&self) -> Result<Option<TurnMessage>, String> {
        if self.control.was_steered.load(Ordering::Relaxed) {
            match self.messages.try_recv() {
                Ok(message) => return message.map(Some),
                Err(_) => stream::write(&stream::session_state("idle"))?,
            }
        }
        self.messages.recv().ok().transpose()
    }

    /// Returns the messages that wait already.
    pub(crate) fn waiting(&self) -> Result<Vec<TurnMessage>, String> {
        self.messages.try_iter().collect()
    }
}

/// Takes each message as it comes, on this thread; no line is read while a message is answered.
pub(crate) fn read_here(
    model: Option<String>,
    take: impl FnMut(TurnMessage) -> Result<(), String>,
) -> Result<(), String> {
    StdinReader { model, control: Arc::default(), count: 0, deliver: take }.read()
}

/// Reads stdin for the player. If the player has ended, the messages are dropped.
fn read_all(
    messages: &Sender<Result<TurnMessage, String>>,
    model: Option<String>,
    control: Arc<ControlState>,
) {
    let deliver = |message| {
        let _ = messages.send(Ok(message));
        Ok(())
    };
    if let Err(complaint) = (StdinReader { model, control, count: 0, deliver }).read() {
        let _ = messages.send(Err(complaint));
    }
}

struct StdinReader<F> {
    model: Option<String>,
    control: Arc<ControlState>,
    /// The number of messages so far.
    count: usize,
    deliver: F,
}

impl<F: FnMut(TurnMessage) -> Result<(), String>> StdinReader<F> {
    fn read(&mut self) -> Result<(), String> {
        let mut stdin = std::io::stdin().lock();
        let mut line = Vec::new();
        loop {
            line.clear();
            let length = stdin
                .read_until(b'\n', &mut line)
                .map_err(|error| format!("fake-claude: stdin: {error}"))?;
            while self.control.ignores_stdin.load(Ordering::Relaxed) {
                std::thread::park();
            }
            if length == 0 {
                self.control.told().is_closed = true;
                return Ok(());
            }
            if !line.trim_ascii().is_empty() {
                self.take(&line)?;
            }
        }
    }

    fn take(&mut self, line: &[u8]) -> Result<(), String> {
        let value: Value = serde_json::from_slice(line).map_err(|error| {
            let line = String::from_utf8_lossy(line);
            format!("Error parsing streaming input line: {}: {error}", line.trim_end())
        })?;
        match value["type"].as_str() {
            Some("user") => {
                self.count += 1;
                if value["priority"] == "next" {
                    self.control.was_steered.store(true, Ordering::Relaxed);
                    stream::write(&stream::queued(&value["uuid"]))?;
                }
                let message =
                    TurnMessage { text: text(&value), model: self.model.clone(), line: value };
                (self.deliver)(message)
            }
            Some("control_request") => self.answer(&value),
            Some("control_response") => {
                self.control.told().answers.push(value);
                Ok(())
            }
            other => {
                Err(format!("Error: Expected message type 'user' or 'control', got '{other:?}'"))
            }
        }
    }

    fn answer(&mut self, line: &Value) -> Result<(), String> {
        let (id, request) = (&line["request_id"], &line["request"]);
        let refused = std::env::var("FAKE_CLAUDE_REFUSES");
        if refused.is_ok_and(|refused| request["subtype"] == refused) {
            return stream::write(&stream::control_refused(id, "API error: 529 busy"));
        }
        match request["subtype"].as_str() {
            Some("set_model") => self.model = request["model"].as_str().map(str::to_owned),
            Some("interrupt") => self.control.interrupted.store(self.count, Ordering::Relaxed),
            Some("initialize" | "set_permission_mode" | "apply_flag_settings") => {}
            other => return stream::write(&stream::control_error(id, other.unwrap_or_default())),
        }
        stream::write(&stream::control_success(id))
    }
}

/// Returns the text of a message: its content is a text or a list of blocks.
fn text(line: &Value) -> String {
    match &line["message"]["content"] {
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        content => content.as_str().unwrap_or_default().to_owned(),
    }
}
