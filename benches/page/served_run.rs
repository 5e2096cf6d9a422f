//! A run of many agents with scripted replies, and a server that shows it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// The program that is measured.
const RAYMOND: &str = env!("CARGO_BIN_EXE_raymond");

/// A run that is served until the value is dropped.
pub(crate) struct ServedRun {
    server: Child,
    /// The first address, with the token.
    pub(crate) first: String,
    /// The address without a path.
    pub(crate) origin: String,
    _dir: TempDir,
}

impl ServedRun {
    /// Makes a run of one agent that forks so many, which end, and serves it.
    pub(crate) fn of_agents(agents: usize) -> Self {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let flow = dir.path().join("flow");
        fs::create_dir(&flow).expect("a folder");
        let write = |name: &str, text: &str| fs::write(flow.join(name), text).expect("written");
        let items: Vec<String> = (0..agents).map(|number| format!("item {number}")).collect();
        write("items.json", &serde_json::json!(items).to_string());
        write("START.md", &format!("---\nmax_fan_out: {agents}\n---\nstart"));
        write("WORKER.md", "work on {{item}}");
        write("NEXT.md", "---\njoin: all\n---\nnext");
        write(
            "replies.yaml",
            "START.md:\n  - '<fork next=\"NEXT.md\" each=\"items.json\">WORKER.md</fork>'\n\
             WORKER.md:\n  - { reply: '<result>worked</result>', cost: 0.001, repeat: true }\n\
             NEXT.md:\n  - <result>ok</result>\n",
        );
        let most = (agents + 10).to_string();
        let limits = ["--max-agents", &most, "--max-procs", "64"];
        let made = raymond(dir.path())
            .args(["run", "flow", "--id", "bench", "--cwd", "flow", "--agent", "scripted"])
            .args(limits)
            .output()
            .expect("raymond starts");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut server =
            raymond(dir.path()).arg("serve").stdout(Stdio::piped()).spawn().expect("it starts");
        let mut first = String::new();
        let output = server.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut first).expect("an address");
        let (origin, _) = first.split_once("/?token=").expect("an address with a token");
        Self { server, origin: origin.to_owned(), first: first.trim().to_owned(), _dir: dir }
    }
}

impl Drop for ServedRun {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Returns a raymond with the smallest possible environment, whose home and runs are in a directory.
fn raymond(dir: &Path) -> Command {
    let mut command = Command::new(RAYMOND);
    command.env_clear().env("HOME", dir).env("RAYMOND_DIR", dir.join("runs-dir"));
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin").current_dir(dir);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}
