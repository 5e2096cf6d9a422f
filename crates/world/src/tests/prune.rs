//! Worktrees that are looked at and removed, with the real git: nobody's work is lost.

use std::collections::BTreeMap;

use super::trees::agent;
use super::*;
use crate::worktrees::{RemovedWorktree, WorktreeInspection};
use raymond_agents::working_dirs::{WorktreeRecord, WorktreeStage};
use raymond_model::worktree::{RemovalRefusal, WorktreeStatus};

const MAIN_1: &str = "worktrees/world/main.1";

impl Ground {
    /// A repository with the worktree of main.1.
    async fn grove() -> Self {
        let ground = Self::repository();
        ground.put(".gitignore", "*.log\n");
        ground.commit_all();
        ground.make("main.1", None).await.expect("made");
        ground
    }

    fn put_in_tree(&self, path: &str, content: &str) {
        let path = self.tree("main.1").join(path);
        std::fs::create_dir_all(path.parent().expect("one")).expect("made");
        std::fs::write(path, content).expect("written");
    }

    fn commit_in_tree(&self) -> String {
        self.git(MAIN_1, &["add", "-A"]);
        self.git(MAIN_1, &["commit", "-q", "-m", "work"]);
        self.head(MAIN_1)
    }

    async fn sight(&self) -> WorktreeInspection {
        match self.world.trees().await {
            Ok(mut trees) => trees.remove(0).1.expect("it is seen"),
            other => panic!("{other:?}"),
        }
    }

    async fn removal(&self, all: bool) -> Result<RemovedWorktree, RemovalRefusal> {
        match self.world.remove_tree(&agent("main.1"), false, all).await {
            Ok(removed) => removed,
            other => panic!("{other:?}"),
        }
    }

    /// All files of a commit.
    fn files(&self, commit: &str) -> BTreeMap<String, String> {
        let names = self.git("root", &["ls-tree", "-r", "--name-only", commit]);
        let content = |name: &str| self.git("root", &["show", &format!("{commit}:{name}")]);
        names.lines().map(|name| (name.to_owned(), content(name))).collect()
    }

    fn branches(&self) -> String {
        self.git("root", &["branch", "--list", "--format=%(refname:short)", "raymond/*"])
    }

    /// The record of main.1.
    fn record(&self) -> Option<WorktreeRecord> {
        self.working_dirs().record(&agent("main.1")).expect("it can be read")
    }
}

const BRANCH: &str = "raymond/world/main.1";

fn gone(kept: Option<&str>, branch: Option<&str>) -> RemovedWorktree {
    RemovedWorktree { kept: kept.map(str::to_owned), branch: branch.map(str::to_owned) }
}

#[tokio::test]
async fn clean_merged_worktree_is_removed_with_its_branch() {
    let ground = Ground::grove().await;
    let there =
        |ahead, unmerged| WorktreeStatus::Present { ahead, unmerged, uncommitted: 0, locked: None };
    assert_eq!(ground.sight().await.condition, there(0, 0));
    ground.put_in_tree("mine", "x");
    let commit = ground.commit_in_tree();
    let sight = ground.sight().await;
    assert_eq!((sight.condition, sight.merged_into), (there(1, 1), None));
    assert_eq!(sight.head.as_ref(), Some(&commit));
    assert_eq!(ground.removal(false).await, Err(RemovalRefusal::Unmerged(1)));
    // Another branch than the one the user is at.
    ground.git("root", &["branch", "other", &commit]);
    let sight = ground.sight().await;
    assert_eq!(sight.condition, there(1, 0));
    assert_eq!(sight.merged_into.as_deref(), Some("refs/heads/other"));
    ground.put_in_tree("quiet.log", "ignored");
    assert_eq!(ground.removal(false).await, Ok(gone(None, None)));
    assert_eq!((ground.branches(), ground.record()), (String::new(), None));
    assert!(!ground.tree("main.1").exists());
    ground.assert_sound(&[]);
    assert_eq!(ground.removal(false).await, Ok(gone(None, None)), "it is gone already");
    assert_eq!(ground.world.trees().await, Ok(Vec::new()));
}

#[tokio::test]
async fn commits_in_detached_head_of_user_count_as_merged() {
    let ground = Ground::grove().await;
    ground.put_in_tree("mine", "x");
    let commit = ground.commit_in_tree();
    ground.git("root", &["checkout", "-q", "--detach", &commit]);
    assert_eq!(ground.sight().await.merged_into.as_deref(), Some("HEAD"));
    assert_eq!(ground.removal(false).await, Ok(gone(None, None)));
    assert_eq!(ground.branches(), "");
}

#[tokio::test]
async fn uncommitted_changes_are_saved_before_removal() {
    let ground = Ground::grove().await;
    ground.git("root", &["config", "status.showUntrackedFiles", "no"]);
    ground.put_in_tree("web/page", "new");
    ground.put_in_tree("fresh/file", "fresh");
    ground.put_in_tree("quiet.log", "ignored");
    ground.put_in_tree("twice", "staged");
    ground.git(MAIN_1, &["add", "twice"]);
    ground.put_in_tree("twice", "and changed");
    std::fs::remove_file(ground.tree("main.1").join("file")).expect("removed");
    let WorktreeStatus::Present { uncommitted, .. } = ground.sight().await.condition else {
        panic!()
    };
    assert_eq!(uncommitted, 4);
    assert_eq!(ground.removal(false).await, Err(RemovalRefusal::Uncommitted(4)));
    let head = ground.head(MAIN_1);
    let kept = "refs/raymond/kept/world/main.1";
    assert_eq!(ground.removal(true).await, Ok(gone(Some(kept), None)));
    assert!(!ground.tree("main.1").exists());
    let expected = [
        (".gitignore", "*.log"),
        ("fresh/file", "fresh"),
        ("twice", "and changed"),
        ("web/page", "new"),
    ];
    let expected = expected.map(|(name, content)| (name.to_owned(), content.to_owned()));
    assert_eq!(ground.files(kept), BTreeMap::from(expected));
    assert_eq!(ground.git("root", &["rev-parse", &format!("{kept}^1")]), head);
    assert_eq!(ground.files(&format!("{kept}^2"))["twice"], "staged");
    ground.assert_sound(&[]);
}

#[tokio::test]
async fn branch_of_unmerged_worktree_is_not_deleted() {
    let ground = Ground::grove().await;
    ground.put_in_tree("mine", "x");
    let commit = ground.commit_in_tree();
    assert_eq!(ground.removal(true).await, Ok(gone(None, Some(BRANCH))));
    assert_eq!(ground.head("root"), ground.git("root", &["rev-parse", "HEAD"]));
    assert_eq!(ground.git("root", &["rev-parse", BRANCH]), commit);
    ground.assert_sound(&[]);
}

#[tokio::test]
async fn earlier_saved_ref_is_not_overwritten() {
    let ground = Ground::grove().await;
    ground.git("root", &["update-ref", "refs/raymond/kept/world/main.1", "HEAD"]);
    ground.put_in_tree("mine", "x");
    let kept = "refs/raymond/kept/world/main.1-1";
    assert_eq!(ground.removal(true).await, Ok(gone(Some(kept), None)));
    assert_eq!(ground.files(kept)["mine"], "x");
}

#[tokio::test]
async fn locked_or_live_worktree_is_never_removed() {
    let ground = Ground::grove().await;
    let tree = ground.tree("main.1").display().to_string();
    ground.git("root", &["worktree", "lock", "--reason", "on a stick", &tree]);
    for all in [false, true] {
        assert_eq!(ground.removal(all).await, Err(RemovalRefusal::Locked("on a stick".to_owned())));
    }
    ground.git("root", &["worktree", "unlock", &tree]);
    let live = ground.world.remove_tree(&agent("main.1"), true, true).await;
    assert_eq!(live, Ok(Err(RemovalRefusal::Live)));
    ground.assert_sound(&["main.1"]);
}

#[tokio::test]
async fn worktree_containing_a_repository_is_not_removed() {
    let ground = Ground::grove().await;
    ground.put_in_tree("mine", "x");
    ground.git(MAIN_1, &["init", "-q", "nested"]);
    ground.git(&format!("{MAIN_1}/nested"), &["commit", "-q", "--allow-empty", "-m", "x"]);
    ground.put_in_tree("nested/y", "y");
    let Err(RemovalRefusal::Refused(why)) = ground.removal(true).await else {
        panic!("it is gone")
    };
    assert!(why.contains("contains another repository") && why.contains("nested"), "{why}");
    assert!(ground.tree("main.1").join("nested/y").exists());
    // Once its name is in a commit, git itself refuses.
    ground.git(MAIN_1, &["-c", "advice.addEmbeddedRepo=false", "add", "-A"]);
    ground.git(MAIN_1, &["commit", "-q", "-m", "nested"]);
    ground.put_in_tree("more", "x");
    let head = ground.head(MAIN_1);
    let Err(RemovalRefusal::Refused(why)) = ground.removal(true).await else {
        panic!("it is gone")
    };
    assert!(why.contains("submodules") && why.contains("also kept as refs/raymond/kept"), "{why}");
    assert_eq!(ground.head(MAIN_1), head);
    assert_eq!(ground.git(MAIN_1, &["branch", "--show-current"]), BRANCH);
    assert_eq!(ground.git(MAIN_1, &["status", "--porcelain"]), "M nested\n?? more");
    assert_eq!(ground.record().map(|record| record.stage), Some(WorktreeStage::Ready));
}

#[tokio::test]
async fn conflicted_merge_is_saved_before_removal() {
    let ground = Ground::grove().await;
    ground.put_in_tree("file", "mine\n");
    let head = ground.commit_in_tree();
    ground.put("file", "theirs\n");
    ground.commit_all();
    let merging = std::process::Command::new("git")
        .current_dir(ground.tree("main.1"))
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "merge", "-q", "main"])
        .output();
    assert!(!merging.expect("git runs").status.success(), "there is a conflict");
    assert_eq!(ground.removal(false).await, Err(RemovalRefusal::Uncommitted(1)));
    let kept = "refs/raymond/kept/world/main.1";
    assert_eq!(ground.removal(true).await, Ok(gone(Some(kept), Some(BRANCH))));
    assert!(ground.files(kept)["file"].contains("<<<<<<<"));
    assert_eq!(ground.git("root", &["rev-parse", &format!("{kept}^1")]), head);
    ground.assert_sound(&[]);
}

#[tokio::test]
async fn branch_of_worktree_removed_by_user_is_deleted_once_merged() {
    let ground = Ground::grove().await;
    ground.put_in_tree("mine", "x");
    let commit = ground.commit_in_tree();
    let tree = ground.tree("main.1").display().to_string();
    ground.git("root", &["worktree", "remove", &tree]);
    assert_eq!(ground.sight().await.condition, WorktreeStatus::Missing { unmerged: 1 });
    assert_eq!(ground.removal(false).await, Err(RemovalRefusal::Unmerged(1)));
    ground.git("root", &["merge", "-q", &commit]);
    assert_eq!(ground.removal(false).await, Ok(gone(None, None)));
    assert_eq!((ground.branches(), ground.record()), (String::new(), None));
}

#[tokio::test]
async fn incomplete_worktree_is_removed() {
    let ground = Ground::grove().await;
    let record = ground.record().expect("it is noted");
    ground
        .working_dirs()
        .write_record(&WorktreeRecord { stage: WorktreeStage::Creating, ..record })
        .expect("noted");
    std::fs::remove_file(ground.tree("main.1").join("file")).expect("removed");
    assert_eq!(ground.sight().await.condition, WorktreeStatus::Incomplete);
    assert_eq!(ground.removal(false).await, Ok(gone(None, None)));
    assert_eq!((ground.branches(), ground.record()), (String::new(), None));
    ground.assert_sound(&[]);
}

/// The worktree as a removal left it that was killed once all of it was kept.
async fn half_gone(files_gone: &[&str]) -> (Ground, String) {
    let ground = Ground::grove().await;
    ground.put_in_tree("mine", "x");
    let before = ground.record().expect("it is noted");
    ground.git(MAIN_1, &["add", "-A"]);
    ground.git(MAIN_1, &["commit", "-q", "-m", "kept"]);
    let kept = ground.head(MAIN_1);
    ground.git(MAIN_1, &["reset", "-q", "HEAD~1"]);
    let name = "refs/raymond/kept/world/main.1".to_owned();
    ground.git("root", &["update-ref", &name, &kept]);
    let stage = WorktreeStage::Removing { kept: kept.clone(), found_by: Some(name) };
    ground.working_dirs().write_record(&WorktreeRecord { stage, ..before }).expect("noted");
    for file in files_gone {
        let path = ground.tree("main.1").join(file);
        std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path)).expect("removed");
    }
    (ground, kept)
}

#[tokio::test]
async fn killed_removal_is_completed_by_the_next() {
    let all: &[&str] = &[".git", ".gitignore", "file", "web", "mine"];
    for files_gone in [&[][..], &["file"], &[".git", "web"], &["mine", "web", "file"], all] {
        let (ground, kept) = half_gone(files_gone).await;
        let name = "refs/raymond/kept/world/main.1";
        assert_eq!(ground.removal(false).await, Ok(gone(Some(name), None)), "{files_gone:?}");
        assert_eq!(ground.git("root", &["rev-parse", name]), kept);
        assert!(!ground.tree("main.1").exists());
        assert_eq!((ground.branches(), ground.record()), (String::new(), None));
        ground.assert_sound(&[]);
    }
    let (ground, _) = half_gone(&[]).await;
    let tree = ground.tree("main.1").display().to_string();
    ground.git("root", &["worktree", "remove", "--force", &tree]);
    assert!(ground.removal(false).await.is_ok());
    ground.assert_sound(&[]);
}

#[tokio::test]
async fn files_added_after_killed_removal_are_saved() {
    let (ground, _) = half_gone(&["web"]).await;
    ground.put_in_tree("later", "y");
    let Err(RemovalRefusal::Uncommitted(_)) = ground.removal(false).await else {
        panic!("it is gone")
    };
    let kept = "refs/raymond/kept/world/main.1-1";
    assert_eq!(ground.removal(true).await, Ok(gone(Some(kept), None)));
    assert_eq!(ground.files(kept)["later"], "y");
    ground.assert_sound(&[]);
}

#[tokio::test]
async fn detached_commits_are_saved_before_removal() {
    let ground = Ground::grove().await;
    ground.git(MAIN_1, &["checkout", "-q", "--detach"]);
    ground.put_in_tree("mine", "x");
    let commit = ground.commit_in_tree();
    assert_eq!(ground.removal(false).await, Err(RemovalRefusal::Unmerged(1)));
    let kept = "refs/raymond/kept/world/main.1";
    assert_eq!(ground.removal(true).await, Ok(gone(Some(kept), None)));
    assert_eq!(ground.git("root", &["rev-parse", kept]), commit);
    ground.assert_sound(&[]);
}
