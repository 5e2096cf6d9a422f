//! Worktrees in repositories that are not usual: other branches in the way, submodules, odd names, and no repository.

use std::path::Path;

use crate::graph::git;
use crate::support::{RaymondOutcome, Test, when};

/// Returns a repository with a workflow that forks a worker with a worktree.
fn place() -> Test {
    let test = Test::new()
        .prompt("START.md", "start <fork next=\"END.md\">WORKER.md</fork>")
        .prompt("WORKER.md", "---\nworktree: true\n---\nwork")
        .prompt("END.md", "---\njoin: all\non_failure: keep\n---\nend")
        .rule(when("start").reply("<fork next=\"END.md\">WORKER.md</fork>"))
        .rule(when("work").reply("<result>worked</result>"))
        .rule(when("end").reply("<result>ended</result>"));
    repository(&test.flow());
    test
}

fn repository(at: &Path) {
    std::fs::create_dir_all(at).expect("made");
    std::fs::write(at.join("a.txt"), "a").expect("written");
    git(at, &["init", "-q", "-b", "main"]);
    git(at, &["add", "."]);
    git(at, &["commit", "-q", "-m", "one"]);
}

/// Returns a workflow in a repository that has another one as its submodule `lib`.
fn with_submodule() -> Test {
    let test = place();
    let inner = test.root().join("inner");
    repository(&inner);
    let inner = inner.display().to_string();
    let words = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &inner, "lib"];
    git(&test.flow(), &words);
    git(&test.flow(), &["commit", "-q", "-m", "two"]);
    test
}

#[track_caller]
fn assert_refused(test: &Test, refused: &RaymondOutcome, why: &str) {
    refused.code(64).stderr_has("git cannot make worktrees for the agents of the run t: ");
    refused.stderr_has(why);
    assert!(test.calls().is_empty() && !test.run_dir().exists(), "nothing was begun");
}

#[test]
fn existing_branch_is_reported_before_a_turn_is_paid() {
    for (branch, remedy) in [
        ("raymond", "rename it with `git branch -m raymond NAME`"),
        ("raymond/t", "rename it with `git branch -m raymond/t NAME`"),
    ] {
        let test = place();
        git(&test.flow(), &["checkout", "-q", "-b", branch]);
        let why = format!("the repository has a branch `{branch}`, and git cannot have the branch");
        let refused = test.run(&["START.md"]);
        assert_refused(&test, &refused, &why);
        refused.stderr_has(remedy);
        test.run(&["START.md", "--dry-run"]).says(&why);
        git(&test.flow(), &["branch", "-m", branch, "other"]);
        test.run(&["START.md"]).ok().ended("main.1", "worked").ended("main", "ended");
    }
}

#[test]
fn existing_branch_does_not_matter_without_worktrees() {
    let test = place().prompt("WORKER.md", "work");
    git(&test.flow(), &["checkout", "-q", "-b", "raymond"]);
    test.run(&["START.md"]).ok().ended("main.1", "worked");
}

#[test]
fn branch_made_by_an_agent_is_reported_at_the_worktree() {
    let test = place();
    test.script(&[
        when("start").runs("git branch raymond").reply("<fork next=\"END.md\">WORKER.md</fork>"),
        when("end").reply("<result>ended</result>"),
    ]);
    let ended = test.run(&["START.md"]);
    let why = ended.ok().failed("main.1").to_owned();
    ended.assert(why.contains("rename it with `git branch -m raymond NAME`"), "the remedy");
    git(&test.flow(), &["branch", "-D", "raymond"]);
    assert_eq!(git(&test.flow(), &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn empty_submodules_are_warned_of() {
    let test = with_submodule();
    let ended = test.run(&["START.md"]);
    ended.ok().ended("main.1", "worked");
    ended.stderr_has("the repository has submodules, and git leaves them empty");
    ended.stderr_has("`git submodule update --init --recursive`");
    place().run(&["START.md"]).ok().stderr_lacks("submodules");
}

#[test]
fn submodule_itself_has_worktrees() {
    let test = with_submodule();
    let lib = test.flow().join("lib").display().to_string();
    let ended = test.run(&["START.md", "--cwd", &lib]);
    ended.ok().ended("main.1", "worked").stderr_lacks("submodules");
    let note = std::fs::read_to_string(test.run_dir().join("repository")).expect("noted");
    assert_eq!(note.split(' ').count(), 2, "the repository that the run began in: {note}");
    assert!(test.dir().join("worktrees/t/main.1/a.txt").exists());
}

#[test]
fn repository_whose_worktrees_would_be_elsewhere_is_refused() {
    let test = with_submodule();
    let lib = test.flow().join("lib");
    let at = lib.display().to_string();
    git(&lib, &["config", "extensions.worktreeConfig", "true"]);
    let refused = test.run(&["START.md", "--cwd", &at]);
    assert_refused(
        &test,
        &refused,
        "has `extensions.worktreeConfig`, so that its `core.worktree` counts",
    );
    git(&lib, &["config", "--unset", "extensions.worktreeConfig"]);
    test.script(&[
        when("start")
            .runs("git config extensions.worktreeConfig true")
            .reply("<fork next=\"END.md\">WORKER.md</fork>"),
        when("end").reply("<result>ended</result>"),
    ]);
    let ended = test.run(&["START.md", "--cwd", &at]);
    let why = ended.ok().failed("main.1").to_owned();
    ended.assert(why.contains("git config --worktree core.worktree DIR"), "the remedy");
    git(&lib, &["config", "--unset", "extensions.worktreeConfig"]);
    assert_eq!(git(&lib, &["worktree", "list"]).lines().count(), 1);
    assert_eq!(git(&lib, &["status", "--porcelain"]), "");
}

#[test]
fn extension_in_a_usual_repository_does_not_matter() {
    let test = place();
    git(&test.flow(), &["config", "extensions.worktreeConfig", "true"]);
    test.run(&["START.md"]).ok().ended("main.1", "worked");
}

#[test]
fn odd_places_and_states_of_a_repository_do_not_matter() {
    let test = place();
    let odd = test.root().join("mit ü leer");
    repository(&odd);
    git(&odd, &["commit", "-q", "--allow-empty", "-m", "two"]);
    git(&odd, &["checkout", "-q", "--detach", "HEAD~1"]);
    std::fs::write(odd.join(".git/index.lock"), "").expect("written");
    let at = odd.display().to_string();
    test.run(&["START.md", "--cwd", &at]).ok().ended("main.1", "worked");
    let tree = test.dir().join("worktrees/t/main.1");
    assert_eq!(git(&tree, &["rev-parse", "HEAD"]), git(&odd, &["rev-parse", "HEAD"]));
}

#[test]
fn missing_repository_is_warned_of_before_a_turn() {
    let test = place();
    let plain = test.root().join("out").display().to_string();
    let ended = test.run(&["START.md", "--cwd", &plain]);
    ended.code(1).stderr_has("agents of this workflow get worktrees, but ");
    ended.stderr_has("is not in a git repository: create one with `git init`");
    let test = place();
    let bare = test.root().join("bare").display().to_string();
    git(&test.flow(), &["clone", "-q", "--bare", ".", &bare]);
    test.run(&["START.md", "--cwd", &bare]).code(1).stderr_has("is a bare repository");
}
