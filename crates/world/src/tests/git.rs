//! Repositories, with the real git.

use std::process::Command;

use serde_json::json;

use super::*;

impl Ground {
    /// Has git do something in a directory, as the people of the remote do.
    pub(super) fn git(&self, dir: &str, words: &[&str]) -> String {
        let who = [("AUTHOR", "a"), ("COMMITTER", "c")].map(|(role, name)| {
            [(format!("GIT_{role}_NAME"), name), (format!("GIT_{role}_EMAIL"), "a@b")]
        });
        let ended = Command::new("git")
            .current_dir(self.base().join(dir))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .envs(who.into_iter().flatten())
            .args(words)
            .output()
            .expect("git runs");
        assert!(ended.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ended.stderr));
        String::from_utf8(ended.stdout).expect("text").trim().to_owned()
    }

    /// Makes the remote, with two commits, and tells where it is.
    fn remote(&self) -> String {
        std::fs::create_dir(self.base().join("remote")).expect("made");
        self.git("remote", &["init", "-q", "-b", "main"]);
        self.commit("one");
        self.commit("two");
        format!("file://{}", self.base().join("remote").display())
    }

    fn commit(&self, what: &str) {
        std::fs::write(self.base().join("remote/file"), what).expect("written");
        self.git("remote", &["add", "file"]);
        self.git("remote", &["commit", "-q", "-m", what]);
    }
}

fn clone(url: &str) -> Value {
    json!({"type": "clone_repo", "url": url, "dest": ".source/a"})
}

#[tokio::test]
async fn source_is_cloned_checked_for_updates_and_pulled() {
    let ground = Ground::new();
    let url = ground.remote();
    ground.value(clone(&url)).await;
    assert_eq!(ground.value(json!({"type": "source_cloned", "id": "a"})).await, json!(true));
    assert_eq!(ground.text(".source/a/file"), "two");
    assert_eq!(ground.git("root/.source/a", &["rev-list", "--count", "HEAD"]), "1");
    let sha = json!({"type": "get_sha", "repo_path": ".source/a"});
    let first = ground.value(sha.clone()).await;
    assert_eq!(first, json!(ground.git("remote", &["rev-parse", "HEAD"])));
    let updates = json!({"type": "source_has_updates", "id": "a"});
    assert_eq!(ground.value(updates.clone()).await, json!(false));

    ground.commit("three");
    assert_eq!(ground.value(updates.clone()).await, json!(true));
    ground.value(json!({"type": "git_fetch", "repo_path": ".source/a"})).await;
    assert_eq!(ground.value(sha.clone()).await, first, "fetching moves nothing");
    let pull = json!({"type": "git_pull", "repo_path": ".source/a"});
    ground.put(".source/a/.git/index.lock", "");
    let why = ground.why(pull.clone()).await;
    assert!(why.starts_with("`git pull` exited with code 1"), "{why}");
    let pulled = ground.perform("main.2", pull, true).await;
    let head = ground.value(sha).await;
    assert_eq!(pulled, Ok(head), "the lock was that of a dead one");
    assert_eq!(ground.text(".source/a/file"), "three");
    assert_eq!(ground.value(updates).await, json!(false));
}

#[tokio::test]
async fn clone_is_atomic_and_idempotent() {
    let ground = Ground::new();
    let url = ground.remote();
    ground.put(".source/.main.1.raymond-clone/half", "of a try that died");
    for again in [true, true] {
        let performed = ground.perform("main.1", clone(&url), again).await;
        assert_eq!(performed, Ok(Value::Null));
    }
    let other = format!("{url}/.");
    let why = ground.why(clone(&other)).await;
    assert!(why.contains("it is a clone of file:///"), "{why}");
    ground.put("full/file", "");
    let to = |dest: &str, url: &str| json!({"type": "clone_repo", "url": url, "dest": dest});
    let why = ground.why(to("full", &url)).await;
    assert!(why.ends_with("to `full`: something else has that name"), "{why}");
    let missing = format!("{url}-not");
    let why = ground.why(to("new", &missing)).await;
    assert!(why.starts_with("`git clone` exited with code 128: "), "{why}");
    let names: Vec<_> = std::fs::read_dir(ground.root().join(".source")).expect("read").collect();
    assert_eq!(names.len(), 1, "no draft is left: {names:?}");
    assert!(!ground.root().join("new").exists());
}

#[tokio::test]
async fn branch_can_be_cloned_with_full_history() {
    let ground = Ground::new();
    let url = ground.remote();
    ground.git("remote", &["switch", "-q", "-c", "side"]);
    ground.commit("aside");
    ground.git("remote", &["switch", "-q", "main"]);
    let all = json!({"type": "clone_repo", "url": url, "dest": "x", "branch": "side", "depth": 0});
    ground.value(all).await;
    assert_eq!(ground.git("root/x", &["rev-list", "--count", "HEAD"]), "3");
    let why = json!({"type": "clone_repo", "url": url, "dest": "y", "branch": "--upload-pack=x"});
    assert!(ground.why(why).await.contains("is not a branch name"));
}

#[tokio::test]
async fn repository_hooks_do_not_run_and_parent_repository_is_not_used() {
    let ground = Ground::new();
    let url = ground.remote();
    ground.value(clone(&url)).await;
    ground.commit("three");
    let hook = ground.root().join(".source/a/.git/hooks/post-merge");
    ground.put(".source/a/.git/hooks/post-merge", "#!/bin/sh\ntouch ran\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&hook, mode).expect("set");
    ground.value(json!({"type": "git_pull", "repo_path": ".source/a"})).await;
    assert!(!ground.root().join(".source/a/ran").exists());
    let helper = clone("ext::sh -c touch% /nowhere");
    assert!(ground.why(helper).await.contains("names the helper `ext`"));

    ground.put(".source/a/below/file", "");
    let why = ground.why(json!({"type": "get_sha", "repo_path": ".source/a/below"})).await;
    assert!(why.starts_with("no git repository at `.source/a/below`"), "{why}");
}

#[tokio::test]
async fn clone_error_masks_password_in_url() {
    let ground = Ground::new();
    let why = ground.why(clone("https://me:secret@127.0.0.1:9/x.git")).await;
    assert!(why.starts_with("`git clone` exited with code 128"), "{why}");
    assert!(why.contains("127.0.0.1:9") && !why.contains("secret"), "{why}");
}
