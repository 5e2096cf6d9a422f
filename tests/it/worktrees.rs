//! Worktrees, end to end: an agent works on a branch of its own, and no work is lost after a kill.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::graph::git;
use crate::support::{RaymondOutcome, Test, when};

/// The work of the agent in its worktree: one file that it commits, and one that it does not.
const WORK: &str =
    "echo mine > mine && git add mine && git commit -q -m \"in $PWD\" && echo more > more";

/// Returns a repository with a workflow, whose first agent has a worktree; it commits a file and leaves
/// another.
fn place() -> Test {
    place_with(WORK)
}

fn place_with(work: &str) -> Test {
    let graph = json!({
        "name": "work", "version": "1.0.0", "description": "work", "entry_preconditions": [],
        "initial_state": {}, "start_node": "start",
        "nodes": {"start": {
            "type": "action", "on_success": "done", "on_failure": "failed",
            "actions": [
                {"type": "bash_exec", "command": work},
                {"type": "write_file", "path": "where", "content": "${PWD}"},
            ],
        }},
        "endings": {
            "done": {"type": "success", "message": "done"},
            "failed": {"type": "error", "message": "${computed.last_error}"},
        },
    });
    let test = Test::new()
        .prompt("START.md", "---\nworktree: true\n---\nstart")
        .prompt("web/page", "x")
        .file("work.yaml", graph.to_string().as_bytes())
        .rule(when("start").reply("<goto>work.yaml</goto>"));
    git(&test.flow(), &["init", "-q", "-b", "main"]);
    git(&test.flow(), &["add", "."]);
    git(&test.flow(), &["commit", "-q", "-m", "one"]);
    let who = ["AUTHOR", "COMMITTER"];
    who.iter().fold(test, |test, role| {
        test.env(&format!("GIT_{role}_NAME"), "a").env(&format!("GIT_{role}_EMAIL"), "a@b")
    })
}

fn tree(test: &Test) -> PathBuf {
    test.dir().join("worktrees/t/main")
}

fn worktrees(test: &Test, options: &[&str]) -> RaymondOutcome {
    test.raymond(&[&["worktrees", "t"], options].concat())
}

fn listed(test: &Test) -> Vec<Value> {
    let listed = worktrees(test, &["--json"]);
    let listed = listed.ok().json();
    assert_eq!(listed["run"], "t");
    listed["worktrees"].as_array().expect("a list").clone()
}

#[track_caller]
fn assert_sound(test: &Test, trees: usize) {
    let flow = test.flow();
    assert_eq!(git(&flow, &["fsck", "--no-dangling", "--no-progress"]), "");
    assert_eq!(git(&flow, &["worktree", "prune", "--dry-run", "--verbose"]), "");
    let list = git(&flow, &["worktree", "list", "--porcelain"]);
    assert!(!list.contains("locked"), "{list}");
    assert_eq!(list.matches("worktree ").count(), 1 + trees, "{list}");
}

#[test]
fn clean_keeps_run_with_worktrees_until_they_are_pruned() {
    let test = place();
    test.run(&["START.md"]).ok();
    let tree = tree(&test);
    for option in ["--dry-run", "--yes"] {
        let kept = test.raymond(&["clean", "t", option]);
        kept.code(64).stderr_has("t stays: it has worktrees; `raymond worktrees t --prune`");
    }
    assert!(tree.join("mine").exists() && test.run_dir().exists());
    worktrees(&test, &["--prune", "--all"]).ok();
    test.raymond(&["clean", "t", "--yes"]).ok().stderr_has("1 run of");
    assert!(!tree.exists() && !test.run_dir().exists());
    assert_sound(&test, 0);
}

#[test]
fn worktree_has_its_own_branch_and_is_pruned_only_once_merged() {
    let test = place();
    let ended = test.run(&["START.md"]);
    ended
        .ok()
        .stderr_has("a worktree is left of the run; `raymond worktrees t` shows what is in it");
    let (flow, tree) = (test.flow(), tree(&test));
    assert_eq!(PathBuf::from(&test.calls()[0].cwd), tree);
    let place = std::fs::read_to_string(tree.join("where")).expect("there");
    assert_eq!(PathBuf::from(place), tree);
    assert!(!flow.join("mine").exists() && !flow.join("where").exists());
    assert_eq!(git(&flow, &["show", "raymond/t/main:mine"]), "mine");
    assert_eq!(git(&flow, &["status", "--porcelain"]), "");

    let one = &listed(&test)[0];
    for (name, value) in [
        ("agent", json!("main")),
        ("live", json!(false)),
        ("branch", json!("raymond/t/main")),
        ("directory", json!(tree)),
        ("condition", json!("present")),
        ("ahead", json!(1)),
        ("unmerged", json!(1)),
        ("uncommitted", json!(2)),
        ("merged", json!(false)),
        ("locked", Value::Null),
    ] {
        assert_eq!(one[name], value, "{name} of {one}");
    }
    worktrees(&test, &[]).ok().stdout_has("raymond/t/main").stderr_has("--prune` removes those");
    worktrees(&test, &["--prune"])
        .ok()
        .stdout_has("main stays: 2 files are not committed; commit them, or have them kept with");
    git(&tree, &["add", "-A"]);
    git(&tree, &["commit", "-q", "-m", "more"]);
    worktrees(&test, &["--prune"]).ok().stdout_has("main stays: 2 commits are on no other branch");
    git(&flow, &["merge", "-q", "raymond/t/main"]);
    worktrees(&test, &["--prune"]).ok().stdout_has("main removed with its branch raymond/t/main\n");
    worktrees(&test, &[]).ok().stderr_has("t has no worktrees");
    assert_eq!(git(&flow, &["branch", "--list", "raymond/*"]), "");
    assert_sound(&test, 0);
}

#[test]
fn prune_all_removes_the_worktree_and_keeps_its_work_in_git() {
    let test = place();
    test.run(&["START.md"]).ok();
    let gone = worktrees(&test, &["--prune", "--all", "--json"]);
    let one = &gone.ok().json()["worktrees"][0];
    let kept = "refs/raymond/kept/t/main";
    assert_eq!(
        (&one["removed"], &one["kept"], &one["branch_kept"]),
        (&json!(true), &json!(kept), &json!(true))
    );
    let flow = test.flow();
    assert_eq!(git(&flow, &["show", &format!("{kept}:more")]), "more");
    assert_eq!(
        git(&flow, &["rev-parse", &format!("{kept}^")]),
        git(&flow, &["rev-parse", "raymond/t/main"])
    );
    assert!(!tree(&test).exists());
    assert_sound(&test, 0);
}

#[test]
fn locked_worktree_or_that_of_live_agent_is_not_pruned() {
    let test = place();
    test.script(&[when("start").hold_before("go").reply("<goto>work.yaml</goto>")]);
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    assert_eq!(listed(&test)[0]["live"], true);
    worktrees(&test, &["--prune", "--all"])
        .ok()
        .stdout_has("main stays: an agent that works in it is still live");
    test.release("go");
    live.wait().ok();
    git(&test.flow(), &["worktree", "lock", &tree(&test).display().to_string()]);
    worktrees(&test, &["--prune", "--all"]).ok().stdout_has("main stays: it is locked; unlock it");
    worktrees(&test, &[]).ok().stdout_has("locked");
}

#[test]
fn git_status_ignores_a_raymond_dir_inside_the_repository() {
    let test = place();
    let flow = test.flow();
    let test = test.env("RAYMOND_DIR", flow.join(".raymond"));
    test.run(&["START.md"]).ok();
    assert!(flow.join(".raymond/worktrees/t/main/more").exists());
    assert_eq!(git(&flow, &["status", "--porcelain"]), "");
    git(&flow, &["add", "-A"]);
    assert_eq!(git(&flow, &["status", "--porcelain"]), "");
    let seen = git(&flow.join(".raymond/worktrees/t/main"), &["status", "--porcelain"]);
    assert_eq!(seen, "?? more\n?? where");
}

#[test]
fn agent_started_in_subfolder_works_in_same_subfolder_of_worktree() {
    let test = place();
    let web = test.flow().join("web").display().to_string();
    test.run(&["START.md", "--cwd", &web]).ok();
    assert!(tree(&test).join("web/more").exists());
    assert_eq!(PathBuf::from(&test.calls()[0].cwd), tree(&test).join("web"));
}

#[test]
fn agent_outside_a_git_repository_fails_with_the_reason() {
    let test = place();
    std::fs::rename(test.flow().join(".git"), test.root().join("git")).expect("moved");
    let failed = test.run(&["START.md"]);
    let why = failed.code(1).failed("main").to_owned();
    failed.assert(why.contains("is not in a git repository: create one with `git init`"), "why");
    assert!(test.calls().is_empty(), "nobody was asked");
    worktrees(&test, &[]).ok().stderr_has("t has no worktrees");
    worktrees(&test, &["--all"]).code(64).stderr_has("--prune");
    test.raymond(&["worktrees", "u"]).code(64).stderr_has("no run u");
}

#[test]
fn resume_after_kill_at_any_point_creates_worktree_once() {
    for point in ["worktree.noted", "worktree.added", "worktree.unlocked"] {
        let test = place().env("RAYMOND_FAILPOINT", format!("{point}:1"));
        let first = test.run(&["START.md"]);
        first.assert(first.killed(), point);
        let test = test.env("RAYMOND_FAILPOINT", "none:1");
        if point == "worktree.noted" {
            assert_eq!(listed(&test)[0]["condition"], "incomplete");
        }
        test.resume(&[]).ok();
        assert_eq!(git(&test.flow(), &["show", "raymond/t/main:mine"]), "mine", "{point}");
        assert_sound(&test, 1);
        test.assert_no_survivors();
    }
}

#[test]
fn kill_during_worktree_removal_loses_no_work() {
    for point in ["worktree.kept", "worktree.going", "worktree.removed", "worktree.branch"] {
        let test = place();
        test.run(&["START.md"]).ok();
        let test = test.env("RAYMOND_FAILPOINT", format!("{point}:1"));
        let first = worktrees(&test, &["--prune", "--all"]);
        first.assert(first.killed(), point);
        let test = test.env("RAYMOND_FAILPOINT", "none:1");
        let flow = test.flow();
        assert_eq!(git(&flow, &["show", "refs/raymond/kept/t/main:more"]), "more", "{point}");
        listed(&test);
        worktrees(&test, &["--prune", "--all"]).ok().stdout_has("main removed");
        assert_eq!(git(&flow, &["show", "refs/raymond/kept/t/main:more"]), "more", "{point}");
        assert_eq!(git(&flow, &["show", "raymond/t/main:mine"]), "mine", "{point}");
        assert_eq!(
            git(&flow, &["for-each-ref", "--format=%(refname)", "refs/raymond/kept"]),
            "refs/raymond/kept/t/main"
        );
        assert_sound(&test, 0);
    }
}

/// Returns a workflow with a worker for each entry, each in a worktree of its own; the first agent waits for
/// all of them.
fn fan_out() -> Test {
    place()
        .prompt("FAN.md", "fan out")
        .prompt("WORKER.md", "---\nworktree: true\n---\nwork on {{item}}")
        .prompt("NEXT.md", "---\njoin: all\n---\n{{results}}")
        .rule(
            when("fan out")
                .reply(r#"<fork next="NEXT.md" each='["a", "b", "c"]'>WORKER.md</fork>"#),
        )
        .rule(when("work on").reply("<goto>work.yaml</goto>"))
        .rule(when("status").reply("<result>joined</result>"))
}

#[test]
fn fan_out_workers_branch_from_commit_of_parent() {
    let test = fan_out();
    let ended = test.run(&["FAN.md", "--stagger", "0s"]);
    ended.ok().ended("main", "joined").stderr_has("3 worktrees are left of the run");
    let flow = test.flow();
    let trees = listed(&test);
    let agents: Vec<&Value> = trees.iter().map(|tree| &tree["agent"]).collect();
    assert_eq!(agents, ["main.1", "main.2", "main.3"]);
    let base = git(&flow, &["rev-parse", "HEAD"]);
    assert!(trees.iter().all(|tree| tree["base"] == base.as_str() && tree["ahead"] == 1));
    let mut at: Vec<String> =
        test.calls_with("work on").iter().map(|call| call.cwd.clone()).collect();
    at.sort();
    let directories: Vec<&str> =
        trees.iter().filter_map(|tree| tree["directory"].as_str()).collect();
    assert_eq!(at, directories);
    // A worktree whose branch is merged into another agent's has no unsaved work.
    let second = test.dir().join("worktrees/t/main.2");
    git(&second, &["merge", "-q", "raymond/t/main.1"]);
    git(&test.dir().join("worktrees/t/main.1"), &["clean", "-qf"]);
    worktrees(&test, &["--prune"])
        .ok()
        .stdout_has("main.1 removed with its branch raymond/t/main.1\n")
        .stdout_has("main.2 stays: 2 files")
        .stdout_has("main.3 stays: 2 files");
    worktrees(&test, &["--prune", "--all"]).ok();
    assert_eq!(git(&flow, &["branch", "--list", "raymond/*"]).lines().count(), 2);
    assert_sound(&test, 0);
}

#[test]
fn child_worktree_starts_at_the_commit_of_its_parent() {
    let test = place_with("git commit -q --allow-empty -m mine")
        .prompt("WORKER.md", "---\nworktree: true\n---\nwork")
        .prompt("FAN.md", "fan out")
        .prompt("END.md", "end");
    test.script(&[
        when("start").reply("<call return=\"FAN.md\">work.yaml</call>"),
        when("fan out").reply("<fork next=\"END.md\">WORKER.md</fork>"),
        when("work").hold_before("go").reply("<result>worked</result>"),
        when("end").reply("<result>ended</result>"),
    ]);
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(4);
    let heads: Vec<String> = ["main", "main.1"]
        .map(|agent| git(&test.dir().join("worktrees/t").join(agent), &["rev-parse", "HEAD"]))
        .into();
    assert_eq!(heads[0], heads[1]);
    assert_ne!(heads[0], git(&test.flow(), &["rev-parse", "HEAD"]));
    test.release("go");
    live.wait().ok();
}

#[test]
fn worktree_is_not_pruned_while_a_child_works_in_it() {
    let test = place().prompt("HELPER.md", "help").prompt("END.md", "end");
    test.script(&[
        when("start").reply("<fork next=\"END.md\">HELPER.md</fork>"),
        when("help").hold_before("go").reply("<result>helped</result>"),
        when("end").reply("<result>ended</result>"),
    ]);
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(3);
    live.wait_for("the end of the first agent", |test| {
        test.status()["finished"].as_array().is_some_and(|ended| ended.len() == 1)
    });
    assert!(test.calls().iter().all(|call| tree(&test) == Path::new(&call.cwd)));
    worktrees(&test, &["--prune", "--all"])
        .ok()
        .stdout_has("main stays: an agent that works in it is still live");
    test.release("go");
    live.wait().ok();
    worktrees(&test, &["--prune"]).ok().stdout_has("main removed with its branch");
}

#[test]
fn second_attempt_learns_of_the_changes_left_by_the_first() {
    let test = Test::new()
        .prompt("START.md", "---\nworktree: true\n---\nstart")
        .rule(when("start").once().runs("echo entry >> notes.txt").signal(9))
        .rule(when("start").reply("<goto>NEXT.md</goto>"))
        .prompt("NEXT.md", "next")
        .rule(when("next").reply("<result>done</result>"));
    git(&test.flow(), &["init", "-q", "-b", "main"]);
    git(&test.flow(), &["add", "."]);
    git(&test.flow(), &["commit", "-q", "-m", "one"]);

    test.run(&["START.md", "--backoff", "1ms..5ms"]).ok().ended("main", "done");

    let prompts = test.prompts();
    assert_eq!((prompts.len(), &*prompts[0], &*prompts[2]), (3, "start", "next"));
    for part in ["interrupted (crash)", "?? notes.txt", "\n\nstart"] {
        assert!(prompts[1].contains(part), "{part}: {}", prompts[1]);
    }
}
