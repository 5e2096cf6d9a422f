//! The stream of all runs: each as `list --json` has it, with its open questions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::serve::backend::{CommandBackend, CommandQuery};
use crate::serve::feed::{FeedEvent, FeedSource};
use crate::serve::run_feed::PAUSE_FACTOR;
use crate::store;

/// The shortest interval between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The most runs that are followed; older ones are asked for.
const MAX_RUNS: usize = 100;

/// The source of the stream of all runs.
pub struct RunsFeedSource {
    backend: Arc<dyn CommandBackend>,
    runs: Vec<Value>,
    failure: Option<String>,
    pause: Duration,
}

impl RunsFeedSource {
    /// Returns a source that has not looked yet.
    pub fn new(backend: Arc<dyn CommandBackend>) -> Self {
        let mut source = Self { backend, runs: Vec::new(), failure: None, pause: POLL_INTERVAL };
        source.look();
        source
    }

    fn look(&mut self) -> Vec<FeedEvent> {
        let begin = Instant::now();
        let query = CommandQuery::Runs { offset: 0, limit: MAX_RUNS };
        let found = self.backend.document(&query).map_err(|refusal| refusal.message);
        self.pause = POLL_INTERVAL.max(begin.elapsed() * PAUSE_FACTOR);
        match found.and_then(runs_of) {
            Ok(runs) => {
                self.failure = None;
                let events = changes(&self.runs, &runs);
                self.runs = runs;
                events
            }
            Err(failure) if self.failure.as_ref() != Some(&failure) => {
                let event = FeedEvent::of("failure", &failure);
                self.failure = Some(failure);
                vec![event]
            }
            Err(_) => Vec::new(),
        }
    }
}

/// Returns the runs of a document; one without them does not say that there are none.
fn runs_of(mut document: Value) -> Result<Vec<Value>, String> {
    match document.get_mut("runs").map(Value::take) {
        Some(Value::Array(runs)) => Ok(runs),
        _ => Err("the document of the runs has no list `runs`".to_owned()),
    }
}

impl FeedSource for RunsFeedSource {
    fn refresh(&mut self) -> Result<Vec<FeedEvent>, store::Error> {
        Ok(self.look())
    }

    fn whole(&self, _after: Option<u64>) -> Vec<FeedEvent> {
        let failure = self.failure.as_ref().map(|failure| FeedEvent::of("failure", failure));
        let runs = self.runs.iter().map(|run| FeedEvent::of("run", run));
        runs.chain(failure).collect()
    }

    fn interval(&self) -> Duration {
        self.pause
    }
}

/// Returns the events for the runs that are new, different or gone.
fn changes(before: &[Value], now: &[Value]) -> Vec<FeedEvent> {
    let name = |run: &Value| run["run"].as_str().unwrap_or_default().to_owned();
    let mut old: BTreeMap<String, &Value> = before.iter().map(|run| (name(run), run)).collect();
    let mut events = Vec::new();
    for run in now {
        if old.remove(&name(run)) != Some(run) {
            events.push(FeedEvent::of("run", run));
        }
    }
    events.extend(old.keys().map(|gone| FeedEvent::of("gone", gone)));
    events
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use serde_json::json;

    use super::*;
    use crate::domain::id::RunId;
    use crate::serve::backend::{CommandRefusal, FollowedRun};

    #[test]
    fn only_changed_runs_are_sent() {
        let run = |id: &str, cost: u32| json!({ "run": id, "cost": cost });
        let told = |before: &[Value], now: &[Value]| -> Vec<(&'static str, String)> {
            changes(before, now).into_iter().map(|event| (event.name, event.data)).collect()
        };
        assert_eq!(told(&[], &[run("a", 1)]), [("run", r#"{"run":"a","cost":1}"#.to_owned())]);
        assert_eq!(told(&[run("a", 1)], &[run("a", 1)]), []);
        let both = told(&[run("a", 1), run("b", 1)], &[run("b", 2)]);
        assert_eq!(both, [("run", r#"{"run":"b","cost":2}"#.to_owned()), ("gone", "\"a\"".into())]);
    }

    /// Answers with one document after another.
    struct Documents(Mutex<VecDeque<Value>>);

    impl CommandBackend for Documents {
        fn document(&self, _query: &CommandQuery) -> Result<Value, CommandRefusal> {
            Ok(self.0.lock().expect("documents").pop_front().expect("a document"))
        }

        fn follow(&self, _run: &FollowedRun<'_>) {}

        fn unfollow(&self, _run: &RunId) {}

        fn act(&self, _action: &str, _body: &Value) -> Result<Value, CommandRefusal> {
            Ok(Value::Null)
        }
    }

    #[test]
    fn document_without_runs_removes_no_run() {
        let runs = json!({ "runs": [{ "run": "a" }] });
        for flawed in
            [json!({}), json!({ "runs": null }), json!({ "runs": {} }), json!([]), json!(1)]
        {
            let documents =
                [&runs, &flawed, &flawed, &runs, &json!({ "runs": [] })].map(Clone::clone);
            let mut source = RunsFeedSource::new(Arc::new(Documents(Mutex::new(documents.into()))));
            let mut names = || -> Vec<&'static str> {
                source.look().into_iter().map(|event| event.name).collect()
            };
            assert_eq!(names(), ["failure"], "{flawed}");
            assert!(names().is_empty(), "the same failure is reported once");
            assert!(names().is_empty(), "the run is still there");
            assert_eq!(names(), ["gone"]);
        }
    }
}
