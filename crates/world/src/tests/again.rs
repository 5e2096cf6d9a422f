//! Worktrees that were begun and came to no end, with the real git: they are made again.

use super::trees::agent;
use super::*;
use raymond_agents::working_dirs::{WorktreeRecord, WorktreeStage};

/// A record as it is before git begins.
fn started(ground: &Ground, id: &str) -> WorktreeRecord {
    let branch = format!("raymond/world/{id}");
    let (base, prefix) = (ground.head("root"), String::new());
    WorktreeRecord {
        agent: agent(id),
        branch,
        base,
        prefix,
        snapshot: None,
        stage: WorktreeStage::Creating,
    }
}

/// The description of what a killed git left, and the function that makes it.
type Left<'left> = (&'left str, Box<dyn Fn() + 'left>);

#[tokio::test]
async fn worktree_half_made_by_killed_git_is_created_again() {
    let ground = Ground::repository();
    let record = started(&ground, "main.1");
    let tree = ground.tree("main.1");
    let shown = tree.display().to_string();
    let reason = format!("raymond is making {shown}");
    let known = ground.root().join(".git/worktrees/main.1");
    let add = ["worktree", "add", "--lock", "--reason", &reason, "-b", &record.branch, &shown];
    let lefts: [Left<'_>; 6] = [
        ("nothing", Box::new(|| {})),
        ("a branch", Box::new(|| drop(ground.git("root", &["branch", &record.branch])))),
        (
            "half of a directory",
            Box::new(|| {
                ground.git("root", &add);
                std::fs::remove_file(tree.join("file")).expect("removed");
                std::fs::write(known.join("index.lock"), "").expect("written");
            }),
        ),
        (
            "a directory that git does not know",
            Box::new(|| {
                ground.git("root", &["branch", &record.branch]);
                std::fs::create_dir_all(tree.join("web")).expect("made");
            }),
        ),
        (
            "only what git knows, and not where",
            Box::new(|| {
                ground.git("root", &["branch", &record.branch]);
                std::fs::create_dir_all(&known).expect("made");
                std::fs::write(known.join("locked"), &reason).expect("written");
            }),
        ),
        (
            "all of it, unlocked",
            Box::new(|| {
                ground.git("root", &add);
                ground.git("root", &["worktree", "unlock", &shown]);
            }),
        ),
    ];
    for (what, leave) in lefts {
        ground.working_dirs().write_record(&record).expect("noted");
        leave();
        ground.make("main.1", None).await.unwrap_or_else(|why| panic!("{what}: {why}"));
        ground.assert_sound(&["main.1"]);
        assert_eq!(ground.git("worktrees/world/main.1", &["status", "--porcelain"]), "", "{what}");
        ground.git("root", &["worktree", "remove", &shown]);
        ground.git("root", &["branch", "-D", &record.branch]);
        ground.working_dirs().remove_record(&record.agent).expect("forgotten");
    }
}

#[tokio::test]
async fn retry_after_kill_does_not_reset_a_moved_branch() {
    let ground = Ground::repository();
    let record = started(&ground, "main.1");
    ground.working_dirs().write_record(&record).expect("noted");
    ground.put("file", "two\n");
    ground.commit_all();
    ground.git("root", &["branch", &record.branch]);
    let why = ground.refused("main.1").await;
    assert!(why.contains("is not at") && why.contains("git branch -m"), "{why}");
}

#[tokio::test]
async fn worktree_creation_succeeds_after_git_was_killed() {
    let mut ground = Ground::repository();
    ground.put(".gitattributes", "late filter=mortal\n");
    ground.put("late", "x\n");
    ground.commit_all();
    let alive = ground.base().join("alive").display().to_string();
    // Ends git with all it has started, as a kill of raymond's processes does.
    let mortal = format!("if [ -e {alive} ]; then cat; else kill -9 0; fi");
    let config = ground.base().join("gitconfig");
    let text = format!("[filter \"mortal\"]\n smudge = \"{mortal}\"\n");
    std::fs::write(&config, text).expect("written");
    ground.begin(&[("GIT_CONFIG_GLOBAL", config.to_str().expect("text"))]);
    let why = ground.refused("main.1").await;
    assert!(why.contains("`git worktree` was killed by signal 9"), "{why}");
    ground.assert_sound(&[]);
    assert_eq!(ground.git("root", &["branch", "--list", "raymond/*"]), "");
    std::fs::write(&alive, "").expect("written");
    ground.make("main.1", None).await.expect("made");
    ground.assert_sound(&["main.1"]);
}
