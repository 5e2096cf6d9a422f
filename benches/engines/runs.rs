//! Whole runs: one agent forks many, each with some turns of a scripted answerer, and joins them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::postgres::database::Database;
use crate::support::wait_until;

const RAYMOND: &str = env!("CARGO_BIN_EXE_raymond");

/// The turns of each agent.
const TURNS: usize = 10;

/// The agents from which on each has one turn, so that the run does not take too long.
const MANY: usize = 1_000;

fn turns_of_each(agents: usize) -> usize {
    if agents < MANY { TURNS } else { 1 }
}

/// Returns the turns of a run.
pub(crate) fn turns(agents: usize) -> usize {
    agents * turns_of_each(agents) + 2
}

/// Returns the steps a second of a run on one machine.
pub(crate) fn on_one_machine(agents: usize) -> f64 {
    let place = BenchPlace::new(agents);
    place.timed(place.command("alone", &["--max-procs", "16"], None))
}

/// Returns the steps a second of a run in an engine with two hosts.
pub(crate) fn on_two_hosts(agents: usize) -> f64 {
    let (place, database) = (BenchPlace::new(agents), Database::new());
    let url = database.url();
    let shared = place.path().to_str().expect("a path").to_owned();
    let _workers = ["a", "b"].map(|host| {
        let mut worker = place.raymond(host, Some(&url));
        worker.args(["worker", "--host", host, "--slots", "8", "--shared-dir", &shared]);
        BenchWorker(worker.spawn().expect("a worker"))
    });
    let engine = database.engine();
    wait_until("two hosts", || engine.hosts().is_ok_and(|hosts| hosts.len() == 2));
    place.timed(place.command("s", &["--shared-dir", &shared], Some(&url)))
}

/// A folder with the workflow.
struct BenchPlace {
    root: tempfile::TempDir,
    agents: usize,
}

impl BenchPlace {
    fn new(agents: usize) -> Self {
        let place = Self { root: tempfile::tempdir().expect("a folder"), agents };
        let flow = place.flow();
        fs::create_dir_all(&flow).expect("a folder");
        let items: Vec<String> = (0..agents).map(|number| number.to_string()).collect();
        let items = items.join(",");
        let mut replies = format!(
            "START.md:\n  - <fork next=\"JOIN.md\" each=\"[{items}]\" as=\"item\">W1.md</fork>\nJOIN.md:\n  - <result>done</result>\n"
        );
        let start = format!("---\nmax_fan_out: {agents}\n---\nstart");
        let last = turns_of_each(agents);
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
            writeln!(replies, "W{number}.md:\n  - reply: {next}\n    repeat: true")
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
        self.root.path()
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
        let many = (self.agents + 1).to_string();
        let mut command = self.raymond(home, engine);
        command.arg("run").arg(self.flow());
        command.args(["--agent", "scripted", "--id", "t", "--stagger", "0s"]);
        command.args(["--max-agents", &many]).args(options);
        command
    }

    fn timed(&self, mut command: Command) -> f64 {
        let start = Instant::now();
        let status = command.status().expect("it starts");
        let time = start.elapsed().as_secs_f64();
        assert!(status.success(), "the run failed: {status}");
        f64::from(u32::try_from(turns(self.agents)).unwrap_or(u32::MAX)) / time
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
