//! A git that was killed in the middle of a commit, and the lock that it leaves.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::*;

/// The name and the address of an author.
const WHO: &str = "-c user.name=a -c user.email=a@b";

/// Returns a repository whose hook tells the ids of git and of itself, and then waits until a file `go` is there.
fn ground() -> Ground {
    let ground = Ground::repository();
    ground.put("file", "changed\n");
    let hook = ground.root().join(".git/hooks/pre-commit");
    std::fs::create_dir_all(hook.parent().expect("one")).expect("made");
    let root = ground.root();
    let script = format!(
        "#!/bin/sh\necho $PPID $$ > '{0}/ids.new'\nmv '{0}/ids.new' '{0}/ids'\nwhile [ ! -e '{0}/go' ]; do sleep 0.05; done\n",
        root.display()
    );
    std::fs::write(&hook, script).expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&hook, mode).expect("allowed");
    ground
}

fn commit() -> Value {
    json!({
        "type": "bash_exec", "command": format!("unset GIT_DIR; git {WHO} commit -q -a -m two"),
        "unless": "unset GIT_DIR; git log -1 --format=%s | grep -qx two",
    })
}

/// Waits for the hook, and kills git and the hook.
async fn kill(ids: &Path) {
    let text = loop {
        match tokio::fs::read_to_string(ids).await {
            Ok(text) => break text,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    for id in text.split_whitespace() {
        let killed = std::process::Command::new("kill").args(["-KILL", id]).status();
        assert!(killed.expect("it runs").success(), "{id}");
    }
}

#[tokio::test]
async fn commit_whose_git_was_killed_is_repeated_without_its_stale_lock() {
    let ground = ground();
    let (ids, lock) = (ground.root().join("ids"), ground.root().join(".git/index.lock"));
    let both = async { tokio::join!(ground.perform("main.1", commit(), false), kill(&ids)) };
    let (first, ()) = tokio::time::timeout(Duration::from_mins(1), both).await.expect("it ends");
    let Err(OperationError::Failed(why)) = first else { panic!("{first:?}") };
    assert!(lock.exists(), "git left its lock: {why}");
    assert!(why.contains("index.lock is there, and no git works here"), "{why}");
    ground.put("go", "");
    let again = ground.perform("main.1", commit(), true).await;
    assert!(again.is_ok(), "{again:?}");
    assert!(!lock.exists());
    assert_eq!(ground.git("root", &["log", "--format=%s", "-1"]).trim(), "two");
    let left = std::fs::read_dir(ground.base().join("steps")).expect("there");
    let notes = left
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(".unlocked"));
    assert_eq!(notes.count(), 0, "the note is removed");
}

#[tokio::test]
async fn lock_that_was_there_before_stays_and_is_named() {
    let ground = ground();
    let lock = ground.root().join(".git/index.lock");
    std::fs::write(&lock, "").expect("written");
    for again in [false, true] {
        let failed = ground.perform("main.1", commit(), again).await;
        let Err(OperationError::Failed(why)) = failed else { panic!("{failed:?}") };
        assert!(lock.exists(), "it is not of this command");
        let expected = format!("{} is there, and no git works here", lock.display());
        assert!(why.contains(&expected) && why.ends_with("remove this file"), "{why}");
    }
}
