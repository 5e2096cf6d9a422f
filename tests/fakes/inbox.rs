//! The lines on stdin of a warm process: messages, each of them a turn, and control requests.
//!
//! As with the real program they are read while a turn runs: a control request is answered at once,
//! a message waits for its turn. A change of the model counts for the messages after it.

use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::Value;

use crate::stream;

/// A turn to be played.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) text: String,
    /// What `--model` or the last `set_model` says.
    pub(crate) model: Option<String>,
    /// The message as it came.
    pub(crate) line: Value,
}

/// The messages, and what else the lines ask for.
#[derive(Debug)]
pub(crate) struct Inbox {
    messages: Receiver<Result<Message, String>>,
    pub(crate) wishes: Arc<Wishes>,
}

/// What reader and player tell each other beside the messages.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    /// The turns before this number are to stop.
    interrupted: AtomicUsize,
    deaf: AtomicBool,
}

impl Wishes {
    pub(crate) fn is_interrupted(&self, number: usize) -> bool {
        number < self.interrupted.load(Ordering::Relaxed)
    }

    /// From here on nothing on stdin is heeded, nor its end.
    pub(crate) fn be_deaf(&self) {
        self.deaf.store(true, Ordering::Relaxed);
    }
}

impl Inbox {
    pub(crate) fn open(model: Option<String>) -> Self {
        let wishes = Arc::<Wishes>::default();
        let (sender, messages) = channel();
        let told = Arc::clone(&wishes);
        std::thread::spawn(move || read_all(&sender, model, told));
        Self { messages, wishes }
    }

    /// The next message, or none at the end of stdin.
    pub(crate) fn next(&self) -> Result<Option<Message>, String> {
        self.messages.recv().ok().transpose()
    }
}

/// Takes each message as it comes, on this thread: nothing is heeded while one is dealt with.
pub(crate) fn read_here(
    model: Option<String>,
    take: impl FnMut(Message) -> Result<(), String>,
) -> Result<(), String> {
    Reader { model, wishes: Arc::default(), count: 0, deliver: take }.read()
}

/// Nobody waits for a message any more when the player has left.
fn read_all(
    messages: &Sender<Result<Message, String>>,
    model: Option<String>,
    wishes: Arc<Wishes>,
) {
    let deliver = |message| {
        let _ = messages.send(Ok(message));
        Ok(())
    };
    if let Err(complaint) = (Reader { model, wishes, count: 0, deliver }).read() {
        let _ = messages.send(Err(complaint));
    }
}

struct Reader<F> {
    model: Option<String>,
    wishes: Arc<Wishes>,
    /// The messages so far.
    count: usize,
    deliver: F,
}

impl<F: FnMut(Message) -> Result<(), String>> Reader<F> {
    fn read(&mut self) -> Result<(), String> {
        let mut stdin = std::io::stdin().lock();
        let mut line = Vec::new();
        loop {
            line.clear();
            let length = stdin
                .read_until(b'\n', &mut line)
                .map_err(|error| format!("fake-claude: stdin: {error}"))?;
            while self.wishes.deaf.load(Ordering::Relaxed) {
                std::thread::park();
            }
            if length == 0 {
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
                let message =
                    Message { text: text(&value), model: self.model.clone(), line: value };
                (self.deliver)(message)
            }
            Some("control_request") => self.answer(&value),
            other => {
                Err(format!("Error: Expected message type 'user' or 'control', got '{other:?}'"))
            }
        }
    }

    fn answer(&mut self, line: &Value) -> Result<(), String> {
        let (id, request) = (&line["request_id"], &line["request"]);
        match request["subtype"].as_str() {
            Some("set_model") => self.model = request["model"].as_str().map(str::to_owned),
            Some("interrupt") => self.wishes.interrupted.store(self.count, Ordering::Relaxed),
            Some("initialize") => {}
            other => return stream::write(&stream::control_error(id, other.unwrap_or_default())),
        }
        stream::write(&stream::control_success(id))
    }
}

/// The text of a message: its content is one, or a list of blocks.
fn text(line: &Value) -> String {
    match &line["message"]["content"] {
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        content => content.as_str().unwrap_or_default().to_owned(),
    }
}
