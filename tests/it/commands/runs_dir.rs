//! The directory of all runs is found upwards, as git finds its own.

use std::fs;
use std::os::unix::fs::{chown, symlink};

use crate::support::{Test, pair};

/// Returns a test whose search ends at its own folder.
fn found() -> Test {
    let test = pair();
    let home = test.root().to_owned();
    test.env("HOME", home)
}

#[test]
fn nearest_raymond_directory_above_is_used() {
    let test = found();
    let deep = test.flow().join("sub/deep");
    fs::create_dir_all(&deep).expect("made");
    let script = "unset RAYMOND_DIR; \"$0\" run START.md --id one && cd sub/deep && \
                  \"$0\" list && \"$0\" run ../../START.md --id two && \"$0\" status two";
    test.shell(script).wait().ok().stdout_has("one  completed").stdout_has("two  completed");
    assert!(test.flow().join(".raymond/runs/two").is_dir());
    assert!(!deep.join(".raymond").exists());
}

#[test]
fn directory_without_runs_is_named() {
    let test = found();
    let deep = test.flow().join("sub");
    fs::create_dir_all(&deep).expect("made");
    let list = "unset RAYMOND_DIR; cd sub; \"$0\" list";
    test.shell(list).wait().ok().stderr_has("no runs in .raymond; start one");
    fs::create_dir(test.flow().join(".raymond")).expect("made");
    let flow = test.flow().canonicalize().expect("real");
    let path = flow.join(".raymond").display().to_string();
    test.shell(list).wait().ok().stderr_has(&format!("no runs in {path}; start one"));
    let status = "unset RAYMOND_DIR; cd sub; \"$0\" status x";
    test.shell(status).wait().code(64).stderr_has(&format!("no run x in {path}"));
    assert!(!deep.join(".raymond").exists(), "only a run makes one");
}

#[test]
fn only_directory_of_another_user_is_refused_by_commands_that_write() {
    let test = found();
    let foreign = test.flow().join(".raymond");
    fs::create_dir(&foreign).expect("made");
    // Root may give a directory away; anyone else has a link to one of root.
    if chown(&foreign, Some(12345), None).is_err() {
        fs::remove_dir(&foreign).expect("removed");
        symlink("/", &foreign).expect("linked");
    }
    let run = test.shell("unset RAYMOND_DIR; \"$0\" run START.md --id t").wait();
    run.code(64).stderr_has("belongs to another user, who could say what your runs do");
    assert!(test.calls().is_empty());
    let list = test.shell("unset RAYMOND_DIR; \"$0\" list").wait();
    list.ok().stderr_has("warning: ").stderr_has("belongs to another user");
}

#[test]
fn raymond_directory_above_home_is_not_used() {
    let test = pair();
    let home = test.flow();
    let test = test.env("HOME", home);
    fs::create_dir(test.root().join(".raymond")).expect("made");
    test.shell("unset RAYMOND_DIR; \"$0\" run START.md --id t").wait().ok();
    assert!(test.flow().join(".raymond/runs/t").is_dir());
}

#[test]
fn run_in_another_directory_is_found_and_its_commands_name_it() {
    let test = found();
    let sub = test.flow().join("sub");
    fs::create_dir_all(sub.join(".raymond")).expect("made");
    let script = "unset RAYMOND_DIR; \"$0\" run START.md --id t --dir sub/own";
    let named = "`raymond log t --dir sub/own` shows how";
    test.shell(script).wait().ok().stderr_has(named);
    let script = "unset RAYMOND_DIR; \"$0\" run START.md --id one && cd sub && \"$0\" status one";
    let other = "there is one in ../.raymond: give --dir ../.raymond";
    let flow = test.flow().canonicalize().expect("real");
    let searched = format!("no run one in {}; {other}", flow.join("sub/.raymond/runs").display());
    test.shell(script).wait().code(64).stderr_has(&searched);
    for dir in ["..", "../.raymond"] {
        let script = format!("unset RAYMOND_DIR; cd sub; \"$0\" status one --dir {dir}");
        let named = "`raymond log one --dir ../.raymond` shows how";
        test.shell(&script).wait().ok().stdout_has(named);
    }
    test.shell("unset RAYMOND_DIR; \"$0\" status one").wait().ok().stdout_lacks("--dir");
}

#[test]
fn run_that_has_not_ended_is_found_from_anywhere() {
    let test = found();
    test.run(&["START.md", "--id", "t", "--budget", "0.01"]).code(75);
    let dir = test.dir().canonicalize().expect("real").display().to_string();
    let elsewhere = "unset RAYMOND_DIR; cd /usr; \"$0\" status t";
    test.shell(elsewhere).wait().code(64).stderr_has(&format!("give --dir {dir}"));
}
