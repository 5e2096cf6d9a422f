//! Calls of several threads for one run go together, and each gets its own answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use raymond::engine::connect::connect;
use raymond::engine::shared_log::{MailReceiver, RunLease, Withdrawal};
use raymond::engine::{EngineAddress, EngineError};
use serde_json::{Value, json};

use crate::support::{new_run_id, wait_until};

/// The key of the request whose withdrawal cannot be decided.
const DAMAGED: &str = "damaged";

/// Answers withdrawals by their keys. A batch with one that cannot be decided is refused as a whole, as the objects do.
async fn change(State(has_refused): State<Arc<AtomicBool>>, body: String) -> (StatusCode, String) {
    let calls: Value = serde_json::from_str(&body).expect("a call");
    let calls = calls["call"].as_array().expect("some calls");
    if let [call] = &calls[..]
        && !call["leased"]["deed"]["replies"].is_null()
    {
        let replies = json!([{ "key": "a", "body": "{}" }]);
        return (StatusCode::OK, json!([{ "replies": replies }]).to_string());
    }
    let keys: Vec<&str> = calls
        .iter()
        .filter_map(|call| call["leased"]["deed"]["withdraw"]["key"].as_str())
        .collect();
    assert_eq!(keys.len(), calls.len(), "{body}");
    if keys.contains(&DAMAGED) {
        has_refused.fetch_or(keys.len() > 1, Ordering::SeqCst);
        let message = json!({ "message": "it cannot be read" });
        return (StatusCode::UNPROCESSABLE_ENTITY, message.to_string());
    }
    let fates: Vec<Value> = keys.iter().map(|key| json!({ "fate": key })).collect();
    (StatusCode::OK, json!(fates).to_string())
}

/// Serves the ingress of a server with those objects; returns its port.
fn serve(has_refused: Arc<AtomicBool>) -> u16 {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let version = || async { json!({ "version": 6 }).to_string() };
            let routes = Router::new()
                .route("/RaymondIndex/all/look", post(version))
                .route("/RaymondRun/{run}/change", post(change))
                .with_state(has_refused);
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            tell.send(listener.local_addr().expect("an address").port()).expect("it is told");
            axum::serve(listener, routes).await.expect("it serves");
        });
    });
    told.recv().expect("a port")
}

/// Ends the threads with the test, also if it fails.
struct EndOfThreads<'t>(&'t AtomicBool);

impl Drop for EndOfThreads<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn each_call_gets_its_answer_and_none_fails_another() {
    let has_refused = Arc::new(AtomicBool::new(false));
    let url = format!("restate://127.0.0.1:{}", serve(Arc::clone(&has_refused)));
    let engine = connect(&EngineAddress::parse(&url).expect("an address")).expect("an engine");
    let lease = RunLease { run: new_run_id(), epoch: 1 };
    let withdrawn = |key: &str| engine.withdraw(&lease, key);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _end = EndOfThreads(&is_over);
        let repeat = |key: &'static str, is_right: fn(&Result<Withdrawal, EngineError>) -> bool| {
            let (withdrawn, is_over) = (&withdrawn, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    let outcome = withdrawn(key);
                    assert!(is_right(&outcome), "{key}: {outcome:?}");
                }
            });
        };
        for _ in 0..4 {
            repeat("not_begun", |outcome| *outcome == Ok(Withdrawal::NotBegun));
            repeat("begun", |outcome| *outcome == Ok(Withdrawal::Begun));
            repeat("answered", |outcome| *outcome == Ok(Withdrawal::Answered));
        }
        repeat(DAMAGED, |outcome| matches!(outcome, Err(EngineError::Damaged { .. })));
        wait_until("a batch was refused", || has_refused.load(Ordering::SeqCst));
    });
}

#[test]
fn look_for_mail_goes_alone_if_there_is_no_other_call() {
    let url = format!("restate://127.0.0.1:{}", serve(Arc::default()));
    let engine = connect(&EngineAddress::parse(&url).expect("an address")).expect("an engine");
    let lease = RunLease { run: new_run_id(), epoch: 1 };
    for _ in 0..3 {
        let replies = engine.replies(&lease, &[], 10).expect("replies");
        assert_eq!(replies.len(), 1);
        // Whoever has found something is told to look again, and this look is patient.
        let long = Duration::from_hours(1);
        engine.wait_for_mail(MailReceiver::Run(&lease.run), long).expect("it does not wait");
    }
}
