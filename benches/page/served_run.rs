//! A run of many agents with scripted replies, which has ended or is live, and a server that shows it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// The program that is measured.
pub(crate) const RAYMOND: &str = env!("CARGO_BIN_EXE_raymond");

/// A run in a directory of its own, which is removed when the value is dropped.
pub(crate) struct BenchRun {
    /// The raymond that executes it, if it is live.
    live: Option<Child>,
    dir: TempDir,
}

/// A server of the page, which ends when the value is dropped.
pub(crate) struct PageServer {
    process: Child,
    /// The first address, with the token.
    pub(crate) first: String,
    /// The address without a path.
    pub(crate) origin: String,
}

impl BenchRun {
    /// Makes a run of one agent that forks so many, all of which end.
    pub(crate) fn ended(agents: usize) -> Self {
        let run =
            Self::new(agents, "{ reply: '<result>worked</result>', cost: 0.001, repeat: true }");
        let made = run.begin(agents).stderr(Stdio::piped()).output().expect("raymond starts");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        run
    }

    /// Makes a run of one agent that has forked so many, which go on until the value is dropped.
    pub(crate) fn live(agents: usize) -> Self {
        let worker = "{ reply: '<goto>WORKER.md</goto>', cost: 0.001, delay: 1s, repeat: true }";
        let mut run = Self::new(agents, worker);
        run.live = Some(run.begin(agents).stdout(Stdio::null()).spawn().expect("raymond starts"));
        while run.live_agents() < agents {
            sleep(Duration::from_millis(500));
        }
        run
    }

    fn new(agents: usize, worker: &str) -> Self {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let flow = dir.path().join("flow");
        fs::create_dir(&flow).expect("a folder");
        let write = |name: &str, text: &str| fs::write(flow.join(name), text).expect("written");
        let items: Vec<String> = (0..agents).map(|number| format!("item {number}")).collect();
        write("items.json", &serde_json::json!(items).to_string());
        write("START.md", &format!("---\nmax_fan_out: {agents}\n---\nstart"));
        write("WORKER.md", "work on {{item}}");
        write("NEXT.md", "---\njoin: all\n---\nnext");
        let fork = r#"<fork next="NEXT.md" each="items.json">WORKER.md</fork>"#;
        let replies = format!(
            "START.md:\n  - '{fork}'\nWORKER.md:\n  - {worker}\nNEXT.md:\n  - <result>ok</result>\n"
        );
        write("replies.yaml", &replies);
        Self { live: None, dir }
    }

    fn begin(&self, agents: usize) -> Command {
        let mut command =
            self.raymond(&["run", "flow", "--id", "bench", "--cwd", "flow", "--agent", "scripted"]);
        command.args(["--max-agents", &(agents + 10).to_string(), "--max-procs", "64"]);
        command
    }

    fn live_agents(&self) -> usize {
        let status = self.raymond(&["status", "bench", "--json"]).output().expect("raymond starts");
        let status: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
        status["agents"].as_array().map_or(0, Vec::len)
    }

    /// Returns a raymond with these arguments and the smallest possible environment, whose home and runs are in the directory.
    pub(crate) fn raymond(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(RAYMOND);
        self.place(&mut command).args(arguments);
        command
    }

    /// Gives a command the environment and the directory of the run.
    pub(crate) fn place<'command>(&self, command: &'command mut Command) -> &'command mut Command {
        let dir = self.dir.path();
        command.env_clear().env("HOME", dir).env("RAYMOND_DIR", dir.join("runs-dir"));
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").current_dir(dir);
        command.stdin(Stdio::null()).stderr(Stdio::null())
    }

    /// Starts a server.
    pub(crate) fn serve(&self) -> PageServer {
        let mut process =
            self.raymond(&["serve"]).stdout(Stdio::piped()).spawn().expect("raymond starts");
        let mut first = String::new();
        let output = process.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut first).expect("an address");
        let (origin, _) = first.split_once("/?token=").expect("an address with a token");
        PageServer { process, origin: origin.to_owned(), first: first.trim().to_owned() }
    }
}

impl PageServer {
    /// Returns the id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

impl Drop for BenchRun {
    fn drop(&mut self) {
        self.live.as_mut().map(end);
    }
}

/// Kills a process and waits for its end.
pub(crate) fn end(process: &mut Child) {
    let _ = process.kill();
    let _ = process.wait();
}
