//! An engine, the machines that use it, and the stand-in for Claude Code that all of them start.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use raymond::domain::id::RunId;
use raymond::engine::Engine;
use rustix::process::Signal;
use serde_json::Value;

use super::super::backend::{Backend, BackendServer};
use super::fake::FakeCall;
use super::machine::Machine;
use super::process::{self, OwnProcess};
use crate::support::wait_until;

/// The run of a test, unless it has several.
pub(crate) const RUN: &str = "t";

/// The time in which the last process of a run ends after it.
const LEFT_FOR: Duration = Duration::from_secs(10);

/// A cluster in a temporary folder. Its processes are killed with it.
#[derive(Debug)]
pub(crate) struct Cluster {
    root: tempfile::TempDir,
    pub(crate) backend: Backend,
    pub(crate) engine: Arc<dyn Engine>,
    /// The variables that all commands have besides.
    pub(super) environment: Vec<(String, String)>,
    outputs: AtomicUsize,
}

impl Cluster {
    /// Makes a cluster with an engine of its own.
    pub(crate) fn new() -> Self {
        Self::of(Backend::new())
    }

    /// Makes a cluster on a server of its own, which the test may kill.
    pub(crate) fn on(server: &Arc<BackendServer>) -> Self {
        Self::of(Backend::on(Arc::clone(server)))
    }

    fn of(backend: Backend) -> Self {
        let root = tempfile::tempdir().expect("a temporary folder");
        for folder in ["flow", "fake", "out"] {
            fs::create_dir(root.path().join(folder)).expect("a folder in it");
        }
        let engine = backend.engine();
        let cluster =
            Self { root, backend, engine, environment: Vec::new(), outputs: AtomicUsize::new(0) };
        cluster.script(&[]);
        cluster
    }

    /// Sets variables of all commands.
    pub(crate) fn with_environment(mut self, variables: &[(&str, &str)]) -> Self {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        self.environment.extend(variables.iter().map(owned));
        self
    }

    /// Writes a file of the workflow.
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        fs::write(self.flow().join(name), text).expect("the file is written");
        self
    }

    /// Has the stand-in play these rules, also in later turns of what runs already.
    pub(crate) fn script(&self, rules: &[Value]) {
        let draft = self.fake().join("draft.json");
        fs::write(&draft, Value::from(rules).to_string()).expect("the script is written");
        fs::rename(draft, self.fake().join("script.json")).expect("the script is in place");
    }

    /// Lets the turns go on that are held at this name.
    pub(crate) fn release(&self, name: &str) {
        File::create(self.fake().join(name)).expect("the release is written");
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn flow(&self) -> PathBuf {
        self.root().join("flow")
    }

    pub(crate) fn fake(&self) -> PathBuf {
        self.root().join("fake")
    }

    /// Returns a machine; the same name is the same machine.
    pub(crate) fn machine(&self, name: &str) -> Machine<'_> {
        Machine::new(self, name)
    }

    /// Returns the path of a new file for the output of a command, without its ending.
    pub(super) fn output(&self) -> PathBuf {
        let number = self.outputs.fetch_add(1, Ordering::Relaxed);
        self.root().join(format!("out/{number}"))
    }

    /// Returns the turns of the stand-in, in the order in which they began.
    pub(crate) fn calls(&self) -> Vec<FakeCall> {
        FakeCall::all(&self.fake().join("calls.jsonl"))
    }

    /// Returns the number of turns of the stand-in that came to their end.
    pub(crate) fn finished(&self) -> usize {
        let log = fs::read_to_string(self.fake().join("calls.jsonl")).unwrap_or_default();
        log.lines().filter(|line| line.contains("\"done\":true")).count()
    }

    /// Waits until the stand-in has begun so many turns.
    #[track_caller]
    pub(crate) fn wait_calls(&self, number: usize) {
        wait_until("turns of the stand-in", || self.calls().len() >= number);
    }

    /// Returns the records of the run in the engine. They have no gap.
    #[track_caller]
    pub(crate) fn log(&self) -> Vec<Value> {
        let run = RunId::parse(RUN).expect("an id");
        let lines = self.engine.read(&run, 0, usize::MAX).unwrap_or_default();
        let record = |line: &str| serde_json::from_str::<Value>(line).expect("a record");
        let records: Vec<Value> = lines.iter().map(|line| record(&line.text)).collect();
        for (number, (line, record)) in (1..).zip(lines.iter().zip(&records)) {
            assert_eq!((line.seq, &record["seq"]), (number, &Value::from(number)), "a gap");
        }
        records
    }

    /// Returns the records of an event.
    #[track_caller]
    pub(crate) fn events(&self, event: &str) -> Vec<Value> {
        self.log().into_iter().filter(|record| record["event"] == event).collect()
    }

    /// Waits until the run has so many records of an event.
    #[track_caller]
    pub(crate) fn wait_events(&self, event: &str, number: usize) {
        let what = format!("{number} of {event}");
        wait_until(&what, || self.events(event).len() >= number);
    }

    /// Waits until the run has ended, and checks that it ended well.
    #[track_caller]
    pub(crate) fn wait_end(&self) {
        wait_until("the end of the run", || {
            let runs = self.engine.runs().unwrap_or_default();
            runs.iter().any(|run| run.run.as_str() == RUN && run.has_ended)
        });
        let failed = self.events("agent_failed");
        assert!(failed.is_empty(), "{failed:?}\n{}", self.said());
    }

    /// Checks that each turn of the log was begun once, that none was begun besides them, and that none failed.
    #[track_caller]
    pub(crate) fn assert_paid_once(&self) {
        self.assert_started_once();
        let failed = self.events("turn_failed");
        assert!(failed.is_empty(), "{failed:?}\n{}", self.said());
    }

    /// Checks that each turn that finished was begun once, and that none was begun besides them. A turn whose host died
    /// before its process began is lost, but was not begun.
    #[track_caller]
    pub(crate) fn assert_started_once(&self) {
        let (calls, steps) = (self.calls(), self.events("step_finished"));
        let mut finished: Vec<&str> =
            steps.iter().filter_map(|record| record["agent"].as_str()).collect();
        let mut started: Vec<&str> = calls.iter().map(FakeCall::agent).collect();
        finished.sort_unstable();
        started.sort_unstable();
        assert_eq!(
            started,
            finished,
            "turns that were begun, and those of the log\n{}",
            self.said()
        );
    }

    /// Checks that no process of the run is left on any machine ten seconds after its end.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&self) {
        let start = Instant::now();
        let of_run = |one: &OwnProcess| one.variable("RAYMOND_RUN").as_deref() == Some(RUN);
        wait_until("the processes of the run end", || !self.processes().iter().any(of_run));
        assert!(start.elapsed() < LEFT_FOR, "they took {:?}", start.elapsed());
        assert!(self.detached_supervisor().is_none(), "its supervisor is still there");
    }

    /// Returns the name of the raymond that holds the run.
    pub(crate) fn holder(&self) -> Option<String> {
        self.engine.runs().ok()?.into_iter().find(|run| run.run.as_str() == RUN)?.holder
    }

    /// Returns the raymond that supervises the run in the background.
    pub(crate) fn detached_supervisor(&self) -> Option<OwnProcess> {
        let words = ["resume", RUN, "--detached"];
        self.processes().into_iter().find(|one| words.iter().all(|word| one.has_word(word)))
    }

    /// Returns the processes of all machines: those whose home is in the cluster's folder.
    pub(crate) fn processes(&self) -> Vec<OwnProcess> {
        process::below(self.root())
    }

    /// Returns the messages of all commands, for whoever looks at a failure.
    pub(crate) fn said(&self) -> String {
        let mut said = String::new();
        for number in 0..self.outputs.load(Ordering::Relaxed) {
            for ending in ["args", "stdout", "stderr"] {
                let path = self.root().join(format!("out/{number}.{ending}"));
                let text = fs::read_to_string(path).unwrap_or_default();
                let start: Vec<&str> = text.lines().take(40).collect();
                said = format!("{said}--- {number} {ending}\n{}\n", start.join("\n"));
            }
        }
        for machine in fs::read_dir(self.root()).into_iter().flatten().flatten() {
            let state = machine.path().join("state/raymond/engines");
            for copies in fs::read_dir(state).into_iter().flatten().flatten() {
                let path = copies.path().join("runs").join(RUN).join("output.log");
                let text = fs::read_to_string(&path).unwrap_or_default();
                said = format!("{said}--- {}\n{text}\n", path.display());
            }
        }
        said
    }
}

impl Drop for Cluster {
    #[expect(clippy::print_stderr, reason = "it explains why the test failed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.said());
        }
        wait_until("the processes of the machines end", || {
            let left = self.processes();
            for one in &left {
                one.signal(Signal::KILL);
            }
            left.is_empty()
        });
    }
}
