//! Whole runs: one agent forks many, each with some turns of a scripted answerer, and joins them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use raymond::domain::time::Timestamp;
use serde::Deserialize;
use tempfile::TempDir;

use crate::servers::MakeServer;
use crate::support::wait_until;

const RAYMOND: &str = env!("CARGO_BIN_EXE_raymond");

/// The turns of each agent.
const TURNS: usize = 10;

/// The agents from which on each has one turn, so that the run does not take too long.
const MANY: usize = 1_000;

/// The size of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunSize {
    pub(crate) agents: usize,
    /// The turns of each agent.
    pub(crate) turns: usize,
    /// The time of each of these turns, in seconds.
    pub(crate) seconds: u32,
}

impl RunSize {
    /// Returns a run whose turns take no time.
    pub(crate) fn of_agents(agents: usize) -> Self {
        let turns = if agents < MANY { TURNS } else { 1 };
        Self { agents, turns, seconds: 0 }
    }

    /// Returns the turns of the run.
    pub(crate) fn all_turns(self) -> usize {
        self.agents * self.turns + 2
    }

    /// Returns the shortest time in which each agent can have so many turns if it has a slot, in seconds.
    pub(crate) fn ideal(self, turns: usize) -> f64 {
        f64::from(u32::try_from(turns).unwrap_or(u32::MAX)) * f64::from(self.seconds)
    }
}

/// Returns the steps a second of a run on one machine.
pub(crate) fn on_one_machine(size: RunSize) -> f64 {
    let place = BenchPlace::new(size);
    let time = BenchPlace::timed(place.command("alone", &["--max-procs", "16"], None));
    steps(size) / time
}

/// Returns the steps a second of a run in an engine with two hosts of 8 slots.
pub(crate) fn on_two_hosts(make: MakeServer, size: RunSize) -> f64 {
    steps(size) / on_hosts(make, size, (2, 8)).seconds
}

/// The part of a record that tells when a turn has ended.
#[derive(Deserialize)]
struct TimedRecord {
    at: Timestamp,
    event: String,
    agent: Option<String>,
}

/// A run that has ended. Its folder is there until all are deleted.
pub(crate) struct EndedRun {
    /// The time from the command to its end, in seconds.
    pub(crate) seconds: f64,
    journal: PathBuf,
}

impl EndedRun {
    /// Returns the seconds until the last agent had ended so many turns, with those that the command needs to end.
    pub(crate) fn seconds_of(&self, turns: usize) -> f64 {
        let journal = fs::read_to_string(&self.journal).expect("a journal");
        let records = journal.lines().map(|line| serde_json::from_str(line).expect("a record"));
        let records: Vec<TimedRecord> = records.collect();
        let (mut ended, mut last): (HashMap<&str, usize>, _) = (HashMap::new(), None);
        for record in records.iter().filter(|record| record.event == "step_finished") {
            let count = ended.entry(record.agent.as_deref().expect("an agent")).or_default();
            *count += 1;
            if *count == turns {
                last = Some(record.at);
            }
        }
        let end = records.last().expect("a record").at;
        let later = end.since(last.expect("an agent with so many turns"));
        self.seconds - f64::from(u32::try_from(later).unwrap_or(u32::MAX)) / 1_000.0
    }
}

/// Carries a run out in an engine with these hosts, each with so many slots.
pub(crate) fn on_hosts(
    make: MakeServer,
    size: RunSize,
    (hosts, slots): (usize, usize),
) -> EndedRun {
    let (place, server) = (BenchPlace::new(size), make());
    let url = server.url();
    let shared = place.path().to_str().expect("a path").to_owned();
    let slots = slots.to_string();
    let _workers: Vec<BenchWorker> = (0..hosts)
        .map(|number| {
            let host = format!("host-{number}");
            let mut worker = place.raymond(&host, Some(&url));
            worker.args(["worker", "--host", &host, "--slots", &slots, "--shared-dir", &shared]);
            BenchWorker(worker.spawn().expect("a worker"))
        })
        .collect();
    let engine = server.engine();
    wait_until("all hosts", || engine.hosts().is_ok_and(|seen| seen.len() == hosts));
    let seconds = BenchPlace::timed(place.command("s", &["--shared-dir", &shared], Some(&url)));
    EndedRun { seconds, journal: place.path().join("s/ray/runs/t/journal.jsonl") }
}

fn steps(size: RunSize) -> f64 {
    f64::from(u32::try_from(size.all_turns()).unwrap_or(u32::MAX))
}

/// The folders of runs that are over. A file system that does not reuse the places of files for a while after these were
/// deleted makes new ones slower meanwhile, so they are deleted at the end.
static OLD_FOLDERS: Mutex<Vec<TempDir>> = Mutex::new(Vec::new());

/// Deletes the folders of all runs.
pub(crate) fn delete_folders() {
    OLD_FOLDERS.lock().expect("nobody failed with it").clear();
}

/// A folder with the workflow.
struct BenchPlace {
    root: Option<TempDir>,
    size: RunSize,
}

impl Drop for BenchPlace {
    fn drop(&mut self) {
        OLD_FOLDERS.lock().expect("nobody failed with it").extend(self.root.take());
    }
}

impl BenchPlace {
    fn new(size: RunSize) -> Self {
        let place = Self { root: Some(tempfile::tempdir().expect("a folder")), size };
        let RunSize { agents, turns: last, seconds } = size;
        let flow = place.flow();
        fs::create_dir_all(&flow).expect("a folder");
        let items: Vec<String> = (0..agents).map(|number| number.to_string()).collect();
        let items = items.join(",");
        let mut replies = format!(
            "START.md:\n  - <fork next=\"JOIN.md\" each=\"[{items}]\" as=\"item\">W1.md</fork>\nJOIN.md:\n  - <result>done</result>\n"
        );
        let start = format!("---\nmax_fan_out: {agents}\n---\nstart");
        let mut states = vec![
            ("START.md".to_owned(), &*start),
            ("JOIN.md".to_owned(), "---\njoin: all\n---\nsum up"),
        ];
        for number in 1..=last {
            let next = if number == last {
                "<result>done</result>".to_owned()
            } else {
                format!("<goto>W{}.md</goto>", number + 1)
            };
            writeln!(
                replies,
                "W{number}.md:\n  - reply: {next}\n    delay: {seconds}s\n    repeat: true"
            )
            .expect("a text");
            states.push((format!("W{number}.md"), "work"));
        }
        states.push(("replies.yaml".to_owned(), &replies));
        for (name, text) in &states {
            fs::write(flow.join(name), text).expect("a file");
        }
        place
    }

    fn path(&self) -> &Path {
        self.root.as_ref().expect("it has one until it is dropped").path()
    }

    fn flow(&self) -> PathBuf {
        self.path().join("flow")
    }

    /// Returns a raymond with a home of its own.
    fn raymond(&self, home: &str, engine: Option<&str>) -> Command {
        let home = self.path().join(home);
        fs::create_dir_all(&home).expect("a home");
        let mut command = Command::new(RAYMOND);
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", &home);
        command.env("RAYMOND_DIR", home.join("ray")).current_dir(self.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some(engine) = engine {
            command.env("RAYMOND_ENGINE", engine);
        }
        command
    }

    fn command(&self, home: &str, options: &[&str], engine: Option<&str>) -> Command {
        let many = (self.size.agents + 1).to_string();
        let mut command = self.raymond(home, engine);
        command.arg("run").arg(self.flow());
        command.args(["--agent", "scripted", "--id", "t", "--stagger", "0s"]);
        command.args(["--max-agents", &many]).args(options);
        command
    }

    fn timed(mut command: Command) -> f64 {
        let start = Instant::now();
        let status = command.status().expect("it starts");
        let time = start.elapsed().as_secs_f64();
        assert!(status.success(), "the run failed: {status}");
        time
    }
}

/// A worker that ends with this.
struct BenchWorker(Child);

impl Drop for BenchWorker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
