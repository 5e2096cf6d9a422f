//! The stream of all runs: each as `list --json` has it, with its open questions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::backend::{CommandBackend, CommandQuery};
use super::feed::FeedSource;
use crate::serve::feed::FeedEvent;
use crate::store;

/// The shortest interval between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The pause after a look, as a multiple of the time that it took.
const PAUSE_FACTOR: u32 = 20;

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
        let found = self.backend.document(&query);
        self.pause = POLL_INTERVAL.max(begin.elapsed() * PAUSE_FACTOR);
        match found {
            Ok(Value::Object(mut found)) => {
                self.failure = None;
                let runs = match found.remove("runs") {
                    Some(Value::Array(runs)) => runs,
                    _ => Vec::new(),
                };
                let events = changes(&self.runs, &runs);
                self.runs = runs;
                events
            }
            Err(refusal) if self.failure.as_ref() != Some(&refusal.message) => {
                self.failure = Some(refusal.message.clone());
                vec![FeedEvent::of("failure", &refusal.message)]
            }
            Ok(_) | Err(_) => Vec::new(),
        }
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

    fn seq(&self) -> u64 {
        0
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
    use serde_json::json;

    use super::*;

    #[test]
    fn only_changed_runs_are_told() {
        let run = |id: &str, cost: u32| json!({ "run": id, "cost": cost });
        let told = |before: &[Value], now: &[Value]| -> Vec<(&'static str, String)> {
            changes(before, now).into_iter().map(|event| (event.name, event.data)).collect()
        };
        assert_eq!(told(&[], &[run("a", 1)]), [("run", r#"{"run":"a","cost":1}"#.to_owned())]);
        assert_eq!(told(&[run("a", 1)], &[run("a", 1)]), []);
        let both = told(&[run("a", 1), run("b", 1)], &[run("b", 2)]);
        assert_eq!(both, [("run", r#"{"run":"b","cost":2}"#.to_owned()), ("gone", "\"a\"".into())]);
    }
}
