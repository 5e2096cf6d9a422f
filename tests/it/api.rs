//! A Messages API on 127.0.0.1, so that the real Claude Code can be tested without a model.
//!
//! A test scripts it with rules ("answer this if the newest text contains that"), runs Claude Code against
//! it, and then reads the requests: each conversational request has its whole history, which shows whether
//! context was kept, forked or dropped. Nothing waits for time to pass: a rule can `hold` its answer until
//! the test releases it, and `wait_for` returns when a request has come in.
//!
//! The server has a thread and a runtime of its own, so a test stays a plain function. Both end when the
//! `Api` is dropped.

mod request;
mod rule;
mod wire;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::post;
use serde_json::Value;
use tokio::sync::oneshot;

pub(crate) use request::Request;
pub(crate) use rule::{Rule, on, otherwise};

/// The time after which a wait for a request fails. A loaded machine can start Claude Code many times in it.
const PATIENCE: Duration = Duration::from_mins(2);

/// A running stand-in.
pub(crate) struct Api {
    url: String,
    book: Arc<Book>,
    stop: Option<oneshot::Sender<()>>,
    server: Option<JoinHandle<()>>,
}

/// The state that the server and the test share.
#[derive(Default)]
struct Book {
    pages: Mutex<Pages>,
    written: Condvar,
}

#[derive(Default)]
struct Pages {
    rules: Vec<Rule>,
    requests: Vec<Request>,
}

impl Api {
    /// Starts a server on a free port, with no rules yet.
    pub(crate) fn start() -> Self {
        let listener =
            std::net::TcpListener::bind("127.0.0.1:0").expect("the loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        listener.set_nonblocking(true).expect("a socket can be made non-blocking");
        let book = Arc::new(Book::default());
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&book);
        let server = thread::spawn(move || serve(listener, shared, stopped));
        Self { url: format!("http://{address}"), book, stop: Some(stop), server: Some(server) }
    }

    /// Returns the address for `ANTHROPIC_BASE_URL`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Adds rules; the first that matches and is not used up answers.
    pub(crate) fn script(&self, rules: impl IntoIterator<Item = Rule>) {
        self.book.pages().rules.extend(rules);
    }

    /// Returns the conversational requests so far, in the order of arrival.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.book.pages().requests.clone()
    }

    /// Returns the number of requests whose newest text contains `marker`.
    pub(crate) fn turns(&self, marker: &str) -> usize {
        self.book.pages().turns(marker).count()
    }

    /// Returns the only request whose newest text contains `marker`; fails if there is none or there are
    /// several.
    pub(crate) fn request(&self, marker: &str) -> Request {
        let pages = self.book.pages();
        let asked: Vec<_> = pages.turns(marker).collect();
        let [one] = asked.as_slice() else {
            panic!("{} requests ask {marker:?} among {:#?}", asked.len(), pages.requests);
        };
        Request::clone(one)
    }

    /// Waits until there are `count` requests whose newest text contains `marker`.
    pub(crate) fn wait_for(&self, marker: &str, count: usize) {
        let too_few = |pages: &mut Pages| pages.turns(marker).count() < count;
        let (pages, timeout) = self
            .book
            .written
            .wait_timeout_while(self.book.pages(), PATIENCE, too_few)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(
            !timeout.timed_out(),
            "{marker:?} was not asked {count} times: {:#?}",
            pages.requests
        );
    }

    /// Releases the next word of an answer that comes word by word.
    pub(crate) fn next_word(&self, marker: &str) {
        let pages = self.book.pages();
        let count = pages.rules.iter().filter(|rule| rule.next_word(marker)).count();
        assert!(count > 0, "no rule answers {marker:?} word by word");
    }

    /// Releases all answers that a rule on `marker` holds, now and later.
    pub(crate) fn release(&self, marker: &str) {
        let pages = self.book.pages();
        let held: Vec<_> = pages.rules.iter().filter(|rule| rule.is_held_on(marker)).collect();
        assert!(!held.is_empty(), "no rule holds {marker:?}");
        held.into_iter().for_each(Rule::release);
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(server) = self.server.take() {
            let ended = server.join();
            assert!(ended.is_ok() || thread::panicking(), "the stand-in panicked");
        }
    }
}

impl Book {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request, and returns the rule that answers it.
    fn enter(&self, request: Request) -> Option<Rule> {
        let mut pages = self.pages();
        let rule = pages.rules.iter().find(|rule| rule.answers(&request)).cloned();
        rule.iter().for_each(Rule::spend);
        pages.requests.push(request);
        self.written.notify_all();
        rule
    }
}

impl Pages {
    fn turns(&self, marker: &str) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(move |request| request.newest.contains(marker))
    }
}

fn serve(listener: std::net::TcpListener, book: Arc<Book>, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be built");
    let routes = Router::new()
        .route("/v1/messages", post(messages))
        .route("/v1/messages/count_tokens", post(async || wire::json(r#"{"input_tokens":10}"#)))
        .fallback(async || wire::json("{}"))
        .layer(DefaultBodyLimit::disable())
        .with_state(book);
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).expect("the socket is usable");
        tokio::select! {
            served = axum::serve(listener, routes) => served.expect("the stand-in serves"),
            _ = stopped => {}
        }
    });
}

async fn messages(State(book): State<Arc<Book>>, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).expect("Claude Code sends JSON");
    let model = body["model"].as_str().unwrap_or_default();
    let streamed = body["stream"].as_bool().unwrap_or_default();
    let Some(request) = Request::conversational(&headers, &body) else {
        return wire::answer(&rule::Answer::default(), model, streamed);
    };
    let asked = request.newest.clone();
    match book.enter(request) {
        Some(rule) => {
            rule.ready().await;
            match rule.pieces() {
                Some(pieces) if streamed => wire::words(rule.answer(), model, pieces),
                _ => wire::answer(rule.answer(), model, streamed),
            }
        }
        None => wire::error(400, &format!("no rule of the test answers {asked:?}")),
    }
}
