//! A Messages API on 127.0.0.1, so that the real Claude Code can be tested without a model.
//!
//! A test scripts it with rules ("answer this if the newest text contains that"), runs Claude Code against
//! it, and then reads the requests: each conversational request has its whole history, which shows whether
//! context was kept, forked or dropped. Nothing waits for time to pass: a rule can `hold` its answer until
//! the test releases it, and `wait_for` returns when a request has come in.
//!
//! The server has a thread and a runtime of its own, so a test stays a plain function. Both end when the
//! `MessagesApi` is dropped.

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

pub(crate) use request::ApiRequest;
pub(crate) use rule::{ApiRule, on, otherwise};

/// The time after which a wait for a request fails. A loaded machine can start Claude Code many times in it.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(5);

/// A running stand-in.
pub(crate) struct MessagesApi {
    url: String,
    shared: Arc<SharedApiState>,
    stop: Option<oneshot::Sender<()>>,
    server: Option<JoinHandle<()>>,
}

/// The state that the server and the test share.
#[derive(Default)]
struct SharedApiState {
    state: Mutex<ApiState>,
    changed: Condvar,
}

#[derive(Default)]
struct ApiState {
    rules: Vec<ApiRule>,
    requests: Vec<ApiRequest>,
    /// The status and message for the test of a model that a process is told to change to.
    refused_models: Option<(u16, String)>,
}

impl MessagesApi {
    /// Starts a server on a free port, with no rules yet.
    pub(crate) fn start() -> Self {
        let listener =
            std::net::TcpListener::bind("127.0.0.1:0").expect("the loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        listener.set_nonblocking(true).expect("a socket can be made non-blocking");
        let shared = Arc::new(SharedApiState::default());
        let (stop, stopped) = oneshot::channel();
        let for_server = Arc::clone(&shared);
        let server = thread::spawn(move || serve(listener, for_server, stopped));
        Self { url: format!("http://{address}"), shared, stop: Some(stop), server: Some(server) }
    }

    /// Returns the address for `ANTHROPIC_BASE_URL`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Adds rules; the first that matches and is not used up answers.
    pub(crate) fn script(&self, rules: impl IntoIterator<Item = ApiRule>) {
        self.shared.state().rules.extend(rules);
    }

    /// Answers the test of a model, which newer versions make before they change to it, with an error.
    pub(crate) fn refuse_models(&self, status: u16, message: &str) {
        self.shared.state().refused_models = Some((status, message.to_owned()));
    }

    /// Returns the conversational requests so far, in the order of arrival.
    pub(crate) fn requests(&self) -> Vec<ApiRequest> {
        self.shared.state().requests.clone()
    }

    /// Returns the number of requests whose newest text contains `marker`.
    pub(crate) fn turns(&self, marker: &str) -> usize {
        self.shared.state().turns(marker).count()
    }

    /// Returns the only request whose newest text contains `marker`; fails if there is none or there are
    /// several.
    pub(crate) fn request(&self, marker: &str) -> ApiRequest {
        let state = self.shared.state();
        let asked: Vec<_> = state.turns(marker).collect();
        let [one] = asked.as_slice() else {
            panic!("{} requests ask {marker:?} among {:#?}", asked.len(), state.requests);
        };
        ApiRequest::clone(one)
    }

    /// Waits until there are `count` requests whose newest text contains `marker`.
    pub(crate) fn wait_for(&self, marker: &str, count: usize) {
        let too_few = |state: &mut ApiState| state.turns(marker).count() < count;
        let (state, timeout) = self
            .shared
            .changed
            .wait_timeout_while(self.shared.state(), REQUEST_TIMEOUT, too_few)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(
            !timeout.timed_out(),
            "{marker:?} was not asked {count} times: {:#?}",
            state.requests
        );
    }

    /// Releases the next word of an answer that comes word by word.
    pub(crate) fn next_word(&self, marker: &str) {
        let state = self.shared.state();
        let count = state.rules.iter().filter(|rule| rule.next_word(marker)).count();
        assert!(count > 0, "no rule answers {marker:?} word by word");
    }

    /// Releases all answers that a rule on `marker` holds, now and later.
    pub(crate) fn release(&self, marker: &str) {
        let state = self.shared.state();
        let held: Vec<_> = state.rules.iter().filter(|rule| rule.is_held_on(marker)).collect();
        assert!(!held.is_empty(), "no rule holds {marker:?}");
        held.into_iter().for_each(ApiRule::release);
    }
}

impl Drop for MessagesApi {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(server) = self.server.take() {
            let ended = server.join();
            assert!(ended.is_ok() || thread::panicking(), "the stand-in panicked");
        }
    }
}

impl SharedApiState {
    fn state(&self) -> MutexGuard<'_, ApiState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request, and returns the rule that answers it.
    fn record(&self, request: ApiRequest) -> Option<ApiRule> {
        let mut state = self.state();
        let rule = state.rules.iter().find(|rule| rule.answers(&request)).cloned();
        rule.iter().for_each(ApiRule::use_once);
        state.requests.push(request);
        self.changed.notify_all();
        rule
    }
}

impl ApiState {
    fn turns(&self, marker: &str) -> impl Iterator<Item = &ApiRequest> {
        self.requests.iter().filter(move |request| request.newest.contains(marker))
    }
}

fn serve(
    listener: std::net::TcpListener,
    shared: Arc<SharedApiState>,
    stopped: oneshot::Receiver<()>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be built");
    let routes = Router::new()
        .route("/v1/messages", post(messages))
        .route("/v1/messages/count_tokens", post(async || wire::json(r#"{"input_tokens":10}"#)))
        .fallback(async || wire::json("{}"))
        .layer(DefaultBodyLimit::disable())
        .with_state(shared);
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).expect("the socket is usable");
        tokio::select! {
            served = axum::serve(listener, routes) => served.expect("the stand-in serves"),
            _ = stopped => {}
        }
    });
}

async fn messages(
    State(shared): State<Arc<SharedApiState>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let body: Value = serde_json::from_slice(&body).expect("Claude Code sends JSON");
    let model = body["model"].as_str().unwrap_or_default();
    let streamed = body["stream"].as_bool().unwrap_or_default();
    let Some(request) = ApiRequest::conversational(&headers, &body) else {
        let refused = shared.state().refused_models.clone();
        if let Some((status, message)) = refused.filter(|_| body["max_tokens"] == 1) {
            return wire::error(status, &message);
        }
        return wire::answer(&rule::ApiAnswer::default(), model, streamed);
    };
    let asked = request.newest.clone();
    match shared.record(request) {
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
