//! Worktrees of agents, with the real git: made, made again after a kill, and refused.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::*;
use crate::outcome::OperationError;
use raymond_agents::working_dirs::WorkingDirs;
use raymond_model::id::{AgentId, Folder};
use raymond_model::worktree_snapshot::WorkingDir;

pub(super) fn agent(id: &str) -> AgentId {
    AgentId::parse(id).expect("an id")
}

pub(super) fn working_dir(id: &str) -> WorkingDir {
    WorkingDir { tree: Some(agent(id)), ..WorkingDir::default() }
}

impl Ground {
    pub(super) fn working_dirs(&self) -> WorkingDirs {
        WorkingDirs::new(self.root(), self.base().join("worktrees/world"))
    }

    pub(super) fn tree(&self, id: &str) -> PathBuf {
        self.working_dirs().tree(&agent(id))
    }

    pub(super) async fn make(&self, id: &str, base: Option<&str>) -> Result<(), String> {
        self.world.worktree(&agent(id), base).await.map_err(|error| failure(&error))
    }

    pub(super) async fn refused(&self, id: &str) -> String {
        let why = self.make(id, None).await.expect_err("it cannot be made");
        let tree = self.tree(id);
        let about = format!("cannot make the worktree of the agent {id} at {}: ", tree.display());
        why.strip_prefix(&about).unwrap_or_else(|| panic!("{why}")).to_owned()
    }

    pub(super) fn head(&self, place: &str) -> String {
        self.git(place, &["rev-parse", "HEAD"])
    }

    /// Checks that the repository is intact, that it has no locks, and that it knows these worktrees.
    #[track_caller]
    pub(super) fn assert_sound(&self, agents: &[&str]) {
        assert_eq!(self.git("root", &["fsck", "--no-dangling", "--no-progress"]), "");
        assert_eq!(self.git("root", &["worktree", "prune", "--dry-run", "--verbose"]), "");
        let listed = self.git("root", &["worktree", "list", "--porcelain"]);
        assert!(!listed.contains("locked"), "{listed}");
        let mut known: Vec<&str> =
            listed.lines().filter_map(|line| line.strip_prefix("worktree ")).skip(1).collect();
        known.sort_unstable();
        let trees: Vec<String> =
            agents.iter().map(|id| self.tree(id).display().to_string()).collect();
        assert_eq!(known, trees);
        let admin = std::fs::read_dir(self.root().join(".git/worktrees"));
        assert_eq!(admin.map_or(0, Iterator::count), agents.len());
    }
}

#[tokio::test]
async fn worktree_is_created_once_on_its_branch() {
    let ground = Ground::repository();
    ground.make("main.1", None).await.expect("made");
    let tree = ground.tree("main.1");
    assert_eq!(std::fs::read_to_string(tree.join("file")).expect("there"), "one\n");
    assert_eq!(
        ground.git("worktrees/world/main.1", &["branch", "--show-current"]),
        "raymond/world/main.1"
    );
    assert_eq!(tree.metadata().expect("there").permissions().mode() & 0o777, 0o700);
    std::fs::write(tree.join("new"), "x").expect("written");
    ground.make("main.1", None).await.expect("it is there");
    assert!(tree.join("new").exists(), "nobody has touched it");
    ground.assert_sound(&["main.1"]);
}

#[tokio::test]
async fn worktree_starts_at_given_commit_or_that_of_nearest_ancestor() {
    let ground = Ground::repository();
    let first = ground.head("root");
    ground.put("file", "two\n");
    ground.commit_all();
    let second = ground.head("root");
    ground.make("main", Some(&first)).await.expect("made");
    assert_eq!(ground.head("worktrees/world/main"), first);
    ground.make("main.1.1", None).await.expect("made");
    assert_eq!(ground.head("worktrees/world/main.1.1"), first, "main.1 has none of its own");
    std::fs::remove_file(ground.working_dirs().record_file(&agent("main"))).expect("removed");
    ground.make("main.2", None).await.expect("made");
    assert_eq!(ground.head("worktrees/world/main.2"), second);
    let why = ground.make("main.3", Some(&"1".repeat(40))).await.expect_err("no such commit");
    assert!(why.contains("has no commit 1111"), "{why}");
    let why = ground.make("main.3", Some("--help")).await.expect_err("no such commit");
    assert!(why.contains("has no commit --help"), "{why}");
}

#[tokio::test]
async fn worktrees_can_be_created_concurrently() {
    let ground = Ground::repository();
    let ids: Vec<String> = (1..=12).map(|number| format!("main.{number}")).collect();
    let mut made = tokio::task::JoinSet::new();
    for id in &ids {
        let (world, id) = (ground.world.clone(), agent(id));
        made.spawn(async move { world.worktree(&id, None).await });
    }
    while let Some(made) = made.join_next().await {
        assert_eq!(made.expect("it came to an end"), Ok(()));
    }
    let mut ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    ids.sort_unstable();
    ground.assert_sound(&ids);
}

#[tokio::test]
async fn agent_works_in_same_subfolder_as_its_run() {
    let mut ground = Ground::repository();
    ground.put(".gitignore", "new\n");
    ground.put("new/deep/x", "x");
    ground.commit_all();
    for (below, at) in [("web", "main.1/web"), ("new/deep", "main.2/new/deep")] {
        let id = &at[..6];
        ground.world = world_in(&ground, below, &[]);
        ground.make(id, None).await.expect("made");
        let world = ground.world.at(&working_dir(id)).expect("a working directory");
        assert_eq!(world.root(), ground.working_dirs().trees().join(at));
    }
    let world = ground.world.at(&working_dir("main.1")).expect("a working directory");
    assert_eq!(world.text("page", 10).await, Ok("old\n".to_owned()));
    let Err(OperationError::Failed(why)) = world.text("page", 3).await else {
        panic!("it is too long")
    };
    assert!(why.ends_with("it is larger than 3 bytes"), "{why}");
    let Err(OperationError::Failed(why)) = world.text("../file", 10).await else {
        panic!("outside")
    };
    assert!(why.contains("leads out of the workspace"), "{why}");
}

fn world_in(ground: &Ground, below: &str, variables: &[(&str, &str)]) -> WorkspaceExecutor {
    let working_dirs = WorkingDirs::new(ground.root().join(below), ground.working_dirs().trees());
    world_with(ground.kept.path(), working_dirs, CustomTypeRegistry::default(), variables)
}

#[tokio::test]
async fn changes_of_agent_are_confined_to_its_worktree() {
    let mut ground = Ground::repository();
    ground.world = world_in(&ground, "", &[("GIT_INDEX_FILE", "/nowhere/index")]);
    ground.make("main.1", None).await.expect("made");
    let first = ground.head("root");
    let world = ground.world.at(&working_dir("main.1")).expect("a working directory");
    let done = async |operation: Value| {
        let operation = serde_json::from_value(operation).expect("an operation");
        world.perform("main.1.1", &operation, false).await.map_err(|error| failure(&error))
    };
    let write = |path: &str| json!({"type": "write_file", "path": path, "content": "mine"});
    done(write("web/page")).await.expect("written");
    let script = "pwd; git add -A && git -c user.name=A -c user.email=a@example.org commit -q -m mine && git rev-parse HEAD";
    let output = done(json!({"type": "bash_exec", "command": script})).await.expect("it ran");
    let output = output["stdout"].as_str().expect("a text").to_owned();
    let (pwd, head) = output.trim_end().split_once('\n').expect("two lines");
    assert_eq!(Path::new(pwd), ground.tree("main.1"));
    assert_eq!(done(json!({"type": "get_sha", "repo_path": "."})).await, Ok(head.into()));
    assert_eq!(world.head("main.1.2").await, Ok(head.to_owned()));
    assert_eq!((ground.head("root"), ground.text("web/page")), (first, "old\n".to_owned()));
    for path in ["../main.1.json", "../../../root/file"] {
        let why = done(write(path)).await.expect_err("it is outside");
        assert!(why.contains("leads out of the workspace"), "{why}");
    }
    let below = WorkingDir { cwd: Folder::parse("web").ok(), ..working_dir("main.1") };
    let world = ground.world.at(&below).expect("a working directory");
    assert_eq!(world.text("page", 10).await, Ok("mine".to_owned()));
}

#[tokio::test]
async fn failed_worktree_creation_names_cause_and_fix() {
    let ground = Ground::new();
    let why = ground.refused("main").await;
    assert!(why.contains("is not in a git repository: create one with `git init`"), "{why}");
    let none = Err(OperationError::Failed(why));
    assert_eq!(ground.world.head("x").await, none);
    ground.git("root", &["init", "-q", "-b", "main"]);
    let why = ground.refused("main").await;
    assert!(why.contains("has no commit yet") && why.contains("`git commit`"), "{why}");
    ground.put("file", "one\n");
    ground.commit_all();
    ground.git("root", &["branch", "raymond/world/main"]);
    let why = ground.refused("main").await;
    let expected = "the branch raymond/world/main already exists, at ";
    assert!(why.starts_with(expected) && why.contains("git branch -m"), "{why}");
    ground.git("root", &["branch", "-m", "raymond/world/main", "raymond"]);
    let why = ground.refused("main").await;
    assert!(why.contains("has a branch `raymond`") && why.contains("git branch -m"), "{why}");
    ground.git("root", &["branch", "-D", "raymond"]);
    std::fs::create_dir_all(ground.tree("main")).expect("made");
    std::fs::write(ground.tree("main").join("x"), "").expect("written");
    let why = ground.refused("main").await;
    assert!(why.contains("something else has that name: move it away"), "{why}");
    std::fs::remove_file(ground.tree("main").join("x")).expect("removed");
    assert_eq!(
        ground.working_dirs().record(&agent("main")),
        Ok(None),
        "nothing is left of a refusal"
    );
    ground.assert_sound(&[]);
    ground.make("main", None).await.expect("now it can");

    let without = Ground::with(CustomTypeRegistry::default(), &[("PATH", "/nowhere")]);
    let why = without.refused("main").await;
    assert!(why.contains("no program `git` on the PATH: install it"), "{why}");
    let mut bare = Ground::new();
    bare.git("root", &["init", "-q", "--bare", "x.git"]);
    bare.world = world_in(&bare, "x.git", &[]);
    let why = bare.refused("main").await;
    assert!(why.contains("x.git is a bare repository: run in a clone"), "{why}");
}

#[tokio::test]
async fn worktree_removed_by_user_is_not_recreated() {
    let ground = Ground::repository();
    ground.make("main.1", None).await.expect("made");
    let tree = ground.tree("main.1").display().to_string();
    ground.git("root", &["worktree", "lock", &tree]);
    ground.make("main.1", None).await.expect("one that is locked can be worked in");
    ground.git("root", &["worktree", "remove", "-f", "-f", &tree]);
    let why = ground.refused("main.1").await;
    assert!(
        why.contains("has been removed since it was made: get it back with `git worktree add"),
        "{why}"
    );
    assert_eq!(ground.world.at(&working_dir("main.1")).expect_err("it is gone"), why);
    ground.git("root", &["worktree", "add", "-f", &tree, "raymond/world/main.1"]);
    ground.make("main.1", None).await.expect("it is there again");
    ground.assert_sound(&["main.1"]);
}

#[tokio::test]
async fn worktree_creation_runs_no_hook_and_sets_no_upstream() {
    let ground = Ground::repository();
    let ran = ground.base().join("ran");
    let hook = ground.root().join(".git/hooks/post-checkout");
    std::fs::create_dir_all(hook.parent().expect("one")).expect("made");
    std::fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", ran.display())).expect("written");
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).expect("set");
    ground.git("root", &["config", "branch.autoSetupMerge", "always"]);
    ground.git("root", &["config", "worktree.useRelativePaths", "true"]);
    ground.make("main.1", None).await.expect("made");
    assert!(!ran.exists());
    assert!(!ground.git("root", &["config", "--list"]).contains("branch.raymond"));
}

#[tokio::test]
async fn stopped_world_creates_no_worktree() {
    let ground = Ground::repository();
    ground.world.stop();
    assert_eq!(ground.world.worktree(&agent("main"), None).await, Err(OperationError::Interrupted));
    assert_eq!(ground.world.head("x").await, Err(OperationError::Interrupted));
}
