//! A rule of the script: the requests it matches, and the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tokio::sync::watch;

use super::ApiRequest;

/// A rule for requests whose newest text contains a marker.
#[derive(Clone)]
pub(crate) struct ApiRule {
    marker: String,
    key: Option<String>,
    answer: ApiAnswer,
    uses: Arc<AtomicUsize>,
    held: Option<watch::Sender<bool>>,
    pieces: Option<watch::Sender<usize>>,
}

/// The scripted answer. An error replaces everything else.
#[derive(Clone)]
pub(super) struct ApiAnswer {
    pub(super) text: String,
    pub(super) tool: Option<(String, Value)>,
    pub(super) error: Option<(u16, String)>,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
}

impl Default for ApiAnswer {
    fn default() -> Self {
        let text = "Nothing was scripted.".to_owned();
        Self { text, tool: None, error: None, input_tokens: 10, output_tokens: 5 }
    }
}

/// Begins a rule for requests whose newest text contains `marker`.
pub(crate) fn on(marker: &str) -> ApiRule {
    ApiRule {
        marker: marker.to_owned(),
        key: None,
        answer: ApiAnswer::default(),
        uses: Arc::new(AtomicUsize::new(usize::MAX)),
        held: None,
        pieces: None,
    }
}

/// Begins a rule for requests that no earlier rule matches.
pub(crate) fn otherwise() -> ApiRule {
    on("")
}

impl ApiRule {
    /// Limits the rule to requests with this key.
    pub(crate) fn key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    /// Sets the text of the answer.
    pub(crate) fn reply(mut self, text: &str) -> Self {
        text.clone_into(&mut self.answer.text);
        self
    }

    /// Asks for a tool; its result is the newest text of the next request.
    pub(crate) fn tool(mut self, name: &str, input: Value) -> Self {
        self.answer.tool = Some((name.to_owned(), input));
        self
    }

    /// Answers with this status and message of an error.
    pub(crate) fn error(mut self, status: u16, message: &str) -> Self {
        self.answer.error = Some((status, message.to_owned()));
        self
    }

    /// Sets the tokens that the answer is billed for.
    pub(crate) fn tokens(mut self, input: u64, output: u64) -> Self {
        (self.answer.input_tokens, self.answer.output_tokens) = (input, output);
        self
    }

    /// Limits the rule to so many requests; then the next rule is used.
    pub(crate) fn times(self, count: usize) -> Self {
        self.uses.store(count, Ordering::Relaxed);
        self
    }

    /// Holds the answer until [`release`](super::Api::release).
    pub(crate) fn hold(mut self) -> Self {
        self.held = Some(watch::Sender::new(false));
        self
    }

    /// Sends the text word by word; each word waits for [`next_word`](super::Api::next_word).
    pub(crate) fn word_by_word(mut self) -> Self {
        self.pieces = Some(watch::Sender::new(0));
        self
    }

    /// Returns the number of words that may be sent.
    pub(super) fn pieces(&self) -> Option<watch::Receiver<usize>> {
        self.pieces.as_ref().map(watch::Sender::subscribe)
    }

    /// Releases the next word; returns false if the rule does not answer word by word.
    pub(super) fn next_word(&self, marker: &str) -> bool {
        let pieces = self.pieces.as_ref().filter(|_| self.marker == marker);
        pieces.is_some_and(|pieces| {
            pieces.send_modify(|count| *count += 1);
            true
        })
    }

    pub(super) fn answers(&self, request: &ApiRequest) -> bool {
        request.newest.contains(&self.marker)
            && self.key.as_ref().is_none_or(|key| *key == request.key)
            && self.uses.load(Ordering::Relaxed) > 0
    }

    /// Uses the rule once. The caller holds the lock of the script, so that checking and using are one.
    pub(super) fn use_once(&self) {
        self.uses.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn is_held_on(&self, marker: &str) -> bool {
        self.held.is_some() && self.marker == marker
    }

    pub(super) fn release(&self) {
        if let Some(gate) = &self.held {
            gate.send_replace(true);
        }
    }

    /// Waits until the answer may be sent.
    pub(super) async fn ready(&self) {
        if let Some(gate) = &self.held {
            let opened = gate.subscribe().wait_for(|open| *open).await.map(|_| ());
            opened.expect("the rule keeps its gate");
        }
    }

    pub(super) fn answer(&self) -> &ApiAnswer {
        &self.answer
    }
}
