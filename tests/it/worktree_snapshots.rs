//! Snapshots of worktrees: what an agent's worktree holds after each step, and the worktree of a branch begins with.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::graph::git;
use crate::support::{RaymondOutcome, Test, when};

/// The work of the first turn: one file is committed, one changed and one is new; one is ignored.
const FIRST: &str = "echo mine > mine && git add mine && git commit -q -m mine && echo changed >> README && \
    mkdir -p new && echo loose > 'new/a b' && chmod +x 'new/a b' && ln -s mine link && echo no > hidden.log";

/// The work of the second turn: a file is staged, one is removed, one is changed again.
const SECOND: &str = "git add README && rm mine && echo second > second && echo again >> 'new/a b' && git add second";

/// Returns a repository with a workflow of three states, whose agent has a worktree and works in it.
fn place(terms: &str) -> Test {
    place_with(terms, SECOND)
}

fn place_with(terms: &str, second: &str) -> Test {
    let test = Test::new()
        .prompt("START.md", &format!("---\nworktree: true\n{terms}---\nstart"))
        .prompt("SECOND.md", "second")
        .prompt("THIRD.md", "third")
        .file("README", b"read me\n")
        .file(".gitignore", b"*.log\n")
        .rule(when("start").runs(FIRST).reply("<goto>SECOND.md</goto>"))
        .rule(when("second").runs(second).reply("<goto>THIRD.md</goto>"))
        .rule(when("third").runs("echo third > third").reply("<result>done</result>"));
    git(&test.flow(), &["init", "-q", "-b", "main"]);
    git(&test.flow(), &["add", "."]);
    git(&test.flow(), &["commit", "-q", "-m", "one"]);
    let who = ["AUTHOR", "COMMITTER"];
    who.iter().fold(test, |test, role| {
        test.env(&format!("GIT_{role}_NAME"), "a").env(&format!("GIT_{role}_EMAIL"), "a@b")
    })
}

fn tree(test: &Test, run: &str) -> PathBuf {
    test.dir().join("worktrees").join(run).join("main")
}

#[track_caller]
fn branch(test: &Test, id: &str, at: &str) -> RaymondOutcome {
    test.raymond(&["branch", "t", "--id", id, "--at", at])
}

/// Returns the snapshots in the records of a run, with the agent's step.
fn snapshots(test: &Test, run: &str) -> Vec<Value> {
    let records = test.raymond(&["log", run, "--json"]).ok().json_lines();
    records.into_iter().filter_map(|record| record.get("snapshot").cloned()).collect()
}

fn refs(test: &Test) -> Vec<String> {
    let refs = git(&test.flow(), &["for-each-ref", "--format=%(refname)", "refs/raymond"]);
    refs.lines().map(str::to_owned).collect()
}

fn read(tree: &Path, file: &str) -> String {
    fs::read_to_string(tree.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn branch_begins_with_the_files_of_its_step_committed_and_not() {
    let test = place("");
    // The turns of the branches write nothing, so their worktrees stay as they began.
    test.run(&["START.md"]).ok();
    let taken = snapshots(&test, "t");
    assert_eq!(taken.len(), 3, "{taken:#?}");
    let old = git(&tree(&test, "t"), &["status", "--porcelain"]);
    let index = fs::read(tree(&test, "t").join(".git")).expect("the link");
    test.script(&[
        when("second").reply("<result>looked</result>"),
        when("third").reply("<result>looked</result>"),
    ]);
    branch(&test, "b", "main#2").ok().ended("main", "looked");
    let at = tree(&test, "b");
    assert_eq!(git(&at, &["rev-parse", "HEAD"]), taken[0]["taken"]["head"].as_str().unwrap_or(""));
    assert_eq!(git(&at, &["rev-parse", "--abbrev-ref", "HEAD"]), "raymond/b/main");
    assert_eq!(
        (read(&at, "mine"), read(&at, "README")),
        ("mine\n".into(), "read me\nchanged\n".into())
    );
    assert_eq!(read(&at, "new/a b"), "loose\n");
    let status = git(&at, &["status", "--porcelain", "-uall"]);
    assert_eq!(status, "M README\n?? link\n?? \"new/a b\"", "uncommitted, and nothing else");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(at.join("new/a b")).expect("it").permissions(),
    );
    assert!(mode & 0o111 != 0 && at.join("link").is_symlink(), "{mode:o}");
    assert!(!at.join("hidden.log").exists(), "ignored files are in no snapshot");

    branch(&test, "c", "main#3").ok().ended("main", "looked");
    let at = tree(&test, "c");
    assert!(!at.join("mine").exists());
    assert_eq!(
        (read(&at, "second"), read(&at, "new/a b")),
        ("second\n".into(), "loose\nagain\n".into())
    );
    let status = git(&at, &["status", "--porcelain", "-uall"]);
    assert_eq!(status, "M README\n D mine\n?? link\n?? \"new/a b\"\n?? second");

    // The other run's worktree, its index and its branch are as they were.
    assert_eq!(git(&tree(&test, "t"), &["status", "--porcelain"]), old);
    assert_eq!(fs::read(tree(&test, "t").join(".git")).expect("the link"), index);
    assert_eq!(git(&test.flow(), &["fsck", "--no-dangling", "--no-progress"]), "");
    let all = ["b", "c", "t"].map(|run| format!("refs/raymond/snapshots/{run}/main"));
    assert_eq!(refs(&test), all);
}

#[test]
fn step_that_changes_nothing_makes_no_snapshot_and_index_stays() {
    let test = place("");
    test.script(&[
        when("start")
            .runs("echo staged > staged; git add staged; echo more >> staged")
            .reply("<goto>SECOND.md</goto>"),
        when("second").reply("<goto>THIRD.md</goto>"),
        when("third").reply("<result>done</result>"),
    ]);
    test.run(&["START.md"]).ok();
    assert_eq!(snapshots(&test, "t").len(), 1);
    assert_eq!(git(&tree(&test, "t"), &["status", "--porcelain"]), "AM staged");
    assert_eq!(
        git(&test.flow(), &["show", "refs/raymond/snapshots/t/main:staged"]),
        "staged\nmore"
    );
}

#[test]
fn nodes_of_a_graph_have_snapshots_too() {
    let graph = r#"
name: work
version: 1.0.0
description: work
worktree: true
entry_preconditions: []
initial_state: {}
start_node: first
nodes:
  first:
    type: action
    actions: [{ type: bash_exec, command: echo one > one }]
    on_success: second
    on_failure: failed
  second:
    type: action
    actions: [{ type: bash_exec, command: cat one > two }]
    on_success: done
    on_failure: failed
endings:
  done: { type: success, message: done }
  failed: { type: error, message: "${computed.last_error}" }
"#;
    let test = place("").file("work.yaml", graph.as_bytes());
    git(&test.flow(), &["add", "work.yaml"]);
    git(&test.flow(), &["commit", "-q", "-m", "graph"]);
    test.run(&["work.yaml"]).ok();
    let taken = snapshots(&test, "t");
    assert_eq!(taken.len(), 2, "{taken:#?}");
    let records = test.raymond(&["log", "t", "--json"]).ok().json_lines();
    let first = records.iter().find(|record| record.get("snapshot").is_some()).expect("one");
    let at = first["seq"].to_string();
    branch(&test, "b", &at).ok();
    assert_eq!(read(&tree(&test, "b"), "two"), "one\n");
    assert_eq!(git(&tree(&test, "b"), &["show", "refs/raymond/snapshots/b/main^2:one"]), "one");
}

#[test]
fn opted_out_worktree_has_no_snapshots() {
    let test = place("snapshots: false\n");
    test.run(&["START.md"]).ok();
    assert_eq!((snapshots(&test, "t"), refs(&test)), (Vec::new(), Vec::new()));
    branch(&test, "b", "main#3").ok();
    assert!(!tree(&test, "b").join("mine").exists(), "it begins as a new worktree does");
}

#[test]
fn kill_around_a_snapshot_neither_loses_nor_repeats_it() {
    for point in ["snapshot.made:2", "snapshot.after:2", "append.before:3"] {
        let test = place("").env("RAYMOND_FAILPOINT", point);
        let first = test.run(&["START.md"]);
        first.assert(first.killed(), point);
        let test = test.env("RAYMOND_FAILPOINT", "none:1");
        test.resume(&[]).ok();
        assert_eq!(test.calls().len(), 3, "no turn is paid for twice");
        let taken = snapshots(&test, "t");
        assert_eq!(taken.len(), 3, "{point}: {taken:#?}");
        assert_eq!(refs(&test), ["refs/raymond/snapshots/t/main"]);
        let last = taken[2]["taken"]["commit"].as_str().unwrap_or_default();
        assert_eq!(git(&test.flow(), &["rev-parse", &refs(&test)[0]]), last);
        test.script(&[when("third").reply("<result>looked</result>")]);
        branch(&test, "b", "main#3").ok();
        assert_eq!(read(&tree(&test, "b"), "second"), "second\n", "{point}");
        assert_eq!(git(&test.flow(), &["fsck", "--no-dangling", "--no-progress"]), "");
        test.assert_no_survivors();
    }
}

#[test]
fn kill_while_a_branch_makes_its_worktree_does_not_change_it() {
    for point in ["worktree.noted", "worktree.added", "worktree.unlocked"] {
        let test = place("");
        test.run(&["START.md"]).ok();
        test.script(&[when("third").reply("<result>looked</result>")]);
        let test = test.env("RAYMOND_FAILPOINT", format!("{point}:1"));
        let first = branch(&test, "b", "main#3");
        first.assert(first.killed(), point);
        let test = test.env("RAYMOND_FAILPOINT", "none:1");
        test.raymond(&["run", "b", "--on-wait", "exit"]).ok().ended("main", "looked");
        assert_eq!(read(&tree(&test, "b"), "second"), "second\n", "{point}");
    }
}

#[test]
fn branch_of_a_pruned_snapshot_is_refused_and_leaves_nothing() {
    let test = place("");
    test.run(&["START.md"]).ok();
    let flow = test.flow();
    test.raymond(&["worktrees", "t", "--prune", "--all"]).ok();
    for name in refs(&test) {
        git(&flow, &["update-ref", "-d", &name]);
    }
    git(&flow, &["branch", "-D", "raymond/t/main"]);
    git(&flow, &["reflog", "expire", "--expire=now", "--all"]);
    git(&flow, &["gc", "--quiet", "--prune=now"]);
    branch(&test, "b", "main#2")
        .code(64)
        .stderr_has("git has pruned it")
        .stderr_has("branch at another point");
    assert!(!test.dir().join("runs/b").exists() && !test.dir().join("worktrees/b").exists());
    assert!(refs(&test).is_empty());
}

#[test]
fn clean_removes_the_snapshots_of_its_run_alone() {
    let test = place("");
    test.run(&["START.md"]).ok();
    test.script(&[when("third").reply("<result>looked</result>")]);
    branch(&test, "b", "main#3").ok();
    test.raymond(&["worktrees", "t", "--prune", "--all"]).ok();
    let names = refs(&test);
    assert!(names.contains(&"refs/raymond/kept/t/main".to_owned()), "{names:?}");
    test.raymond(&["clean", "t", "--yes"]).ok();
    assert_eq!(refs(&test), ["refs/raymond/kept/t/main", "refs/raymond/snapshots/b/main"]);
    // The branch keeps what it began with.
    git(&test.flow(), &["gc", "--quiet", "--prune=now"]);
    assert_eq!(git(&test.flow(), &["show", "refs/raymond/snapshots/b/main:second"]), "second");
}

#[test]
fn large_files_and_repositories_inside_are_left_out_and_named() {
    let test = place("");
    let work = "head -c 17000000 /dev/zero > big && git init -q inner && echo x > inner/x && echo small > small && \
        chmod 0 README";
    test.script(&[
        when("start").runs(work).reply("<goto>SECOND.md</goto>"),
        when("second").reply("<result>done</result>"),
    ]);
    test.run(&["START.md"]).ok();
    let taken = snapshots(&test, "t");
    assert_eq!(taken.len(), 1, "{taken:#?}");
    let left_out: Vec<&str> = taken[0]["taken"]["left_out"]
        .as_array()
        .expect("files")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(left_out, ["big", "inner/"]);
    assert_eq!(git(&test.flow(), &["show", "refs/raymond/snapshots/t/main:small"]), "small");
}

#[test]
fn link_that_an_agent_wrote_does_not_lead_git_elsewhere() {
    let test = place("");
    let trap = "git init -q trap && git -C trap config filter.x.clean 'touch ../sprung; cat' && \
        echo '* filter=x' > .gitattributes && echo \"gitdir: $PWD/trap/.git\" > .git && echo x > file";
    test.script(&[
        when("start").runs(trap).reply("<goto>SECOND.md</goto>"),
        when("second").reply("<result>done</result>"),
    ]);
    test.run(&["START.md"]);
    let shown = git(&test.flow(), &["show", "refs/raymond/snapshots/t/main:file"]);
    assert_eq!(shown, "x");
    let sprung = tree(&test, "t").join("sprung");
    assert!(!sprung.exists() && !test.dir().join("worktrees/t/sprung").exists());
}

#[test]
fn many_files_and_file_that_became_a_directory_are_restored() {
    for many in [1, 300] {
        let test = place("");
        let work = format!(
            "for i in $(seq {many}); do echo $i > \"n $i\"; done; rm README; mkdir README; echo in > README/in"
        );
        test.script(&[
            when("start").runs(&work).reply("<goto>SECOND.md</goto>"),
            when("second").reply("<result>done</result>"),
        ]);
        test.run(&["START.md"]).ok();
        branch(&test, "b", "main#2").ok();
        let at = tree(&test, "b");
        assert_eq!((read(&at, "README/in"), read(&at, "n 1")), ("in\n".into(), "1\n".into()));
        assert_eq!(read(&at, &format!("n {many}")), format!("{many}\n"));
    }
}

#[test]
fn force_added_ignored_file_is_in_the_next_snapshot() {
    let test = place_with("", "git add -f hidden.log && git commit -q -m hidden");
    test.run(&["START.md"]).ok();
    branch(&test, "b", "main#3").ok();
    assert_eq!(read(&tree(&test, "b"), "hidden.log"), "no\n");
}

#[test]
fn agent_that_has_ended_has_its_branch_in_a_branch_of_the_run() {
    let commit = "echo {{x}} > {{x}} && git add . && git commit -q -m work";
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("WORK.md", "---\nworktree: true\n---\nwork on {{item}}")
        .prompt("END.md", "---\njoin: all\n---\nend")
        .rule(
            when("start")
                .reply(r#"<fork next="END.md" each='["a", "b"]' as="item">WORK.md</fork>"#),
        )
        .rule(when("work on a").runs(&commit.replace("{{x}}", "a")).reply("<result>a</result>"))
        .rule(when("work on b").runs(&commit.replace("{{x}}", "b")).reply("<result>b</result>"))
        .rule(when("end").reply("<result>end</result>"));
    git(&test.flow(), &["init", "-q", "-b", "main"]);
    git(&test.flow(), &["add", "."]);
    git(&test.flow(), &["commit", "-q", "-m", "one"]);
    let test = ["AUTHOR", "COMMITTER"].iter().fold(test, |test, role| {
        test.env(&format!("GIT_{role}_NAME"), "a").env(&format!("GIT_{role}_EMAIL"), "a@b")
    });
    test.run(&["START.md"]).ok();
    test.raymond(&["branch", "t", "--at", "main#2", "--id", "b"]).ok();
    for agent in ["main.1", "main.2"] {
        let commit = |run: &str| {
            git(&test.flow(), &["rev-parse", &format!("refs/heads/raymond/{run}/{agent}")])
        };
        assert_eq!(commit("b"), commit("t"), "{agent}");
    }
}
