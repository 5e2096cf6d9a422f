//! Hosts without a common disk exchange the work of agents by a git repository.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::cluster::{Cluster, RUN};
use super::ended::Running;
use super::fake::answers;
use super::flows::fork;
use super::machine::{AUTHOR, Machine};

/// Commits a file that is named after the agent.
const COMMIT: &str = "echo work > $RAYMOND_AGENT.txt && git add . && git commit --quiet -m work";

/// Merges the branches of three agents.
const MERGE: &str =
    "git merge --quiet --no-edit raymond/t/main.1 raymond/t/main.2 raymond/t/main.3";

const ALLOW: [&str; 2] = ["--allow", "git-exchange"];

/// A cluster whose supervisor's machine has a repository, and a bare repository as the exchange.
struct Exchanging {
    cluster: Cluster,
}

impl Exchanging {
    /// Makes a workflow of three agents with a worktree each, whose work the agent that forked them merges.
    fn three() -> Self {
        let cluster = Cluster::new()
            .file("START.md", "start")
            .file("WORK.md", "---\nworktree: true\n---\nwork {{item}}")
            .file("JOIN.md", "---\njoin: all\n---\nsum up");
        Self::of(cluster)
    }

    fn of(cluster: Cluster) -> Self {
        let made = Self { cluster };
        Self::git(
            &made.cluster.root().join("out"),
            &["init", "--quiet", "--bare", "../exchange.git"],
        );
        let work = made.supervisor().path("work");
        Exchanging::git(&work, &["init", "--quiet", "--initial-branch=main"]);
        fs::write(work.join("lamp.txt"), "on\n").expect("written");
        Exchanging::git(&work, &["add", "."]);
        Exchanging::git(&work, &["commit", "--quiet", "--message", "Build the lamp"]);
        made
    }

    fn supervisor(&self) -> Machine<'_> {
        self.cluster.machine("s")
    }

    fn exchange(&self) -> PathBuf {
        self.cluster.root().join("exchange.git")
    }

    fn run(&self, options: &[&str]) -> Running<'_> {
        let exchange = self.exchange();
        let exchange = ["--git-exchange", exchange.to_str().expect("a path")];
        self.supervisor().run(&[&exchange[..], options].concat())
    }

    fn worker(&self, name: &str) -> Running<'_> {
        self.cluster.machine(name).worker(3, &ALLOW)
    }

    fn tried(at: &Path, words: &[&str]) -> Output {
        let mut git = Command::new("git");
        git.args(words).current_dir(at).env_clear().envs(AUTHOR);
        git.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        git.output().expect("git starts")
    }

    #[track_caller]
    fn git(at: &Path, words: &[&str]) -> String {
        let out = Self::tried(at, words);
        assert!(out.status.success(), "git {words:?}: {out:?}");
        String::from_utf8(out.stdout).expect("text").trim_end().to_owned()
    }

    /// Returns the files of a branch in the exchange.
    #[track_caller]
    fn files(&self, branch: &str) -> Vec<String> {
        let list = Self::git(&self.exchange(), &["ls-tree", "-r", "--name-only", branch]);
        list.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn assert_merged(&self) {
        let all = ["lamp.txt", "main.1.txt", "main.2.txt", "main.3.txt"];
        assert_eq!(self.files("raymond/t/trunk"), all, "{}", self.cluster.said());
    }
}

fn executes(part: &str, script: &str, reply: &str) -> Value {
    json!({ "when": part, "reply": reply, "run": script })
}

/// Returns the rule of a turn that is held before it does its work.
fn held(part: &str, script: &str, reply: &str) -> Value {
    json!({ "when": part, "reply": reply, "run": script, "hold_before": "go" })
}

#[test]
fn work_of_agents_on_two_hosts_is_merged() {
    let made = Exchanging::three();
    let cluster = &made.cluster;
    let marker = cluster.root().join("hook-ran");
    let hook = |at: PathBuf| {
        fs::create_dir_all(at.parent().expect("a folder")).expect("made");
        fs::write(&at, format!("#!/bin/sh\ntouch {}\n", marker.display())).expect("written");
        fs::set_permissions(&at, fs::Permissions::from_mode(0o755)).expect("set");
    };
    for name in ["pre-push", "reference-transaction", "post-checkout"] {
        hook(made.supervisor().path("work").join(".git/hooks").join(name));
    }
    // A branch that looks like an option, a file that is not committed, and what a killed worker has left.
    let base = Exchanging::git(&made.supervisor().path("work"), &["rev-parse", "HEAD"]);
    let exchange = made.exchange();
    let exchange = exchange.to_str().expect("a path");
    let pushed = ["-c", "core.hooksPath=/dev/null", "push", "--quiet", exchange];
    let option = format!("{base}:refs/heads/--upload-pack=touch");
    Exchanging::git(&made.supervisor().path("work"), &[&pushed[..], &[&option]].concat());
    fs::write(made.supervisor().path("work/draft.txt"), "x").expect("written");
    let draft = cluster.machine("a").path("ray/hosts/a/workspaces/t~draft/repository/.git");
    fs::create_dir_all(&draft).expect("made");
    let hooked = format!(
        "{COMMIT}; H=$(git rev-parse --git-common-dir)/hooks; mkdir -p $H; printf '#!/bin/sh\\ntouch {}\\n' > $H/pre-push; chmod +x $H/pre-push; git config remote.origin.uploadpack 'touch {}; git-upload-pack'",
        marker.display(),
        marker.display()
    );
    cluster.script(&[
        answers("start", &fork()),
        executes("work", &hooked, "<result>done</result>"),
        executes("sum up", MERGE, "<result>all done</result>"),
    ]);
    let (_a, _b) = (made.worker("a"), made.worker("b"));
    let supervisor = made.run(&[]);
    supervisor.wait().ok().says("1 file is not committed");
    cluster.wait_end();
    cluster.assert_paid_once();
    made.assert_merged();
    assert!(["a", "b"].iter().all(|host| cluster.calls().iter().any(|call| call.is_on(host))));
    assert!(!marker.exists(), "a hook ran");
    assert!(!draft.exists(), "what was left is still there");
    assert_eq!(Exchanging::git(&made.exchange(), &["rev-parse", "raymond/t/base"]), base);
    let agent = made.files("raymond/t/main.2");
    assert_eq!(agent, ["lamp.txt", "main.2.txt"]);
    // The same name is not taken twice.
    made.run(&[]).wait().code(64).says("another --id").says("raymond/t/");
}

#[test]
fn killed_worker_takes_its_turns_up_and_their_work_is_merged() {
    let made = Exchanging::three();
    let cluster = &made.cluster;
    cluster.script(&[
        answers("start", &fork()),
        held("work", COMMIT, "<result>done</result>"),
        executes("sum up", MERGE, "<result>all done</result>"),
    ]);
    let (a, b) = (made.worker("a"), made.worker("b"));
    let supervisor = made.run(&[]);
    cluster.wait_calls(4);
    a.kill9();
    b.kill9();
    cluster.release("go");
    let (_a, _b) = (made.worker("a"), made.worker("b"));
    supervisor.wait().ok();
    cluster.wait_end();
    cluster.assert_paid_once();
    made.assert_merged();
}

#[test]
fn agents_wait_for_an_exchange_that_is_away_and_pay_nothing_twice() {
    let made = Exchanging::three();
    let cluster = &made.cluster;
    cluster.script(&[
        answers("start", &fork()),
        held("work", COMMIT, "<result>done</result>"),
        executes("sum up", MERGE, "<result>all done</result>"),
    ]);
    let (_a, _b) = (made.worker("a"), made.worker("b"));
    let mut supervisor = made.run(&[]);
    cluster.wait_calls(4);
    let away = cluster.root().join("away.git");
    fs::rename(made.exchange(), &away).expect("moved");
    cluster.release("go");
    supervisor.wait_stderr("cannot push the work of main.");
    assert!(supervisor.stderr().contains("raymond retries"), "{}", supervisor.stderr());
    fs::rename(&away, made.exchange()).expect("moved back");
    supervisor.wait().ok();
    cluster.wait_end();
    cluster.assert_paid_once();
    made.assert_merged();
}

#[test]
fn pushed_work_of_a_lost_host_continues_at_another() {
    let cluster = Cluster::new()
        .file("START.md", "start")
        .file("WORK.md", "---\nworktree: true\nhost: far\n---\nwork")
        .file("REST.md", "rest")
        .file("JOIN.md", "---\njoin: all\n---\nsum up");
    let made = Exchanging::of(cluster);
    let cluster = &made.cluster;
    cluster.script(&[
        answers("start", r#"<fork next="JOIN.md">WORK.md</fork>"#),
        executes("work", &format!("{COMMIT}; echo x > open.txt"), "<reset>REST.md</reset>"),
        held("rest", "git add . && git commit --quiet -m rest", "<result>done</result>"),
        executes("sum up", "git merge --quiet --no-edit raymond/t/main.1", "<result>ok</result>"),
    ]);
    let _b = made.worker("b");
    let mut supervisor = made.run(&[]);
    let far = |name: &str| {
        cluster.machine(name).worker(3, &[&ALLOW[..], &["--host-label", "far"]].concat())
    };
    // It has begun at the first host, so it stays there.
    cluster.wait_calls(1);
    let a = far("a");
    cluster.wait_calls(3);
    assert!(cluster.calls()[1..3].iter().all(|call| call.is_on("a")), "{:?}", cluster.calls());
    a.kill9();
    cluster.machine("c").raymond(&["hosts", "lost", "a"]).ok();
    let _d = far("d");
    supervisor.wait_stderr("creates it again at");
    cluster.release("go");
    supervisor.wait().ok().says("with the files of its last snapshot");
    cluster.wait_end();
    assert_eq!(made.files("raymond/t/trunk"), ["lamp.txt", "main.1.txt", "open.txt"]);
}

#[test]
fn addresses_that_name_programs_or_have_passwords_are_refused() {
    let made = Exchanging::three();
    let marker = made.cluster.root().join("program-ran");
    let program = format!("ext::sh -c touch% {}", marker.display());
    let work = made.supervisor().path("work");
    Exchanging::git(&work, &["remote", "add", "secret", "https://me:s3cret@127.0.0.1/x"]);
    Exchanging::git(&work, &["remote", "add", "program", &program]);
    for (address, why) in [
        (program.as_str(), "only ssh, https and paths"),
        ("program", "only ssh, https and paths"),
        ("https://me:s3cret@127.0.0.1/x", "credential helper"),
        ("secret", "credential helper"),
        ("nowhere", "has no remote nowhere"),
        ("http://127.0.0.1/x", "not encrypted"),
        ("/nowhere/x.git", "cannot exchange its work by git"),
    ] {
        let refused = made.supervisor().run(&["--git-exchange", address]).wait();
        refused.code(64).says(why).lacks("s3cret");
    }
    assert!(!marker.exists(), "a program ran");
    let exchange = made.exchange();
    let exchange = exchange.to_str().expect("a path");
    let outside = made.cluster.machine("x").run(&["--git-exchange", exchange]).wait();
    outside.code(64).says("is not in a git repository");
    assert!(made.cluster.engine.runs().expect("runs").is_empty());
    assert_eq!(Exchanging::git(&made.exchange(), &["for-each-ref"]), "", "something was pushed");
}

#[test]
fn hosts_that_do_not_allow_it_or_have_no_git_say_so() {
    let made = Exchanging::three();
    let cluster = &made.cluster;
    cluster.script(&[answers("start", "<result>done</result>")]);
    let worker = cluster.machine("a").worker(1, &[]);
    made.run(&[]).wait().code(69).says("--allow git-exchange").says("host a");
    drop(worker);
    let machine = cluster.machine("a");
    let dir = machine.path("ray");
    let words = ["worker", "--host", "a", "--slots", "1", "--dir", dir.to_str().expect("a path")];
    let words = [&words[..], &ALLOW, &["--allow", "program"]].concat();
    let mut command = machine.command(&words);
    command.env("PATH", machine.path("home"));
    let worker = machine.launch(command, &words);
    let resumed = made.supervisor().raymond(&["resume", RUN]);
    resumed.code(69).says("no program `git`").says("host a");
    drop(worker);
    let _worker = made.worker("a");
    made.supervisor().raymond(&["resume", RUN]).ok();
    assert_eq!(cluster.calls().len(), 1);
}
