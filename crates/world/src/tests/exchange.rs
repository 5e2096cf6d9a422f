//! The exchange of work by a git repository, between two hosts in directories of their own.

use super::trees::agent;
use super::*;
use crate::outcome::OperationError;
use raymond_agents::working_dirs::ExchangeCopy;
use raymond_model::git_exchange::{ExchangeAddress, ExchangeName, GitExchange};
use raymond_model::host::HostEpoch;
use raymond_model::id::Folder;
use raymond_model::turn::TurnId;

/// Returns a ground whose workspace is a directory of a repository, with an exchange.
async fn started() -> (Ground, GitExchange) {
    let ground = Ground::new();
    ground.git("", &["init", "--quiet", "--bare", "exchange.git"]);
    ground.git("", &["init", "--quiet", "--initial-branch=main", "root"]);
    ground.put("part/lamp.txt", "on");
    ground.git("root", &["add", "."]);
    ground.git("root", &["commit", "--quiet", "--message", "lamp"]);
    ground.put("part/draft.txt", "x");
    let at_part = working_dirs_at(&ground, "root/part", "none");
    let world = world_with(&ground.base(), at_part, CustomTypeRegistry::default(), &[]);
    let address = ground.base().join("exchange.git");
    let address = ExchangeAddress::parse(address.to_str().expect("text")).expect("an address");
    let started = done(world.begin_exchange(&ExchangeName::Address(address)).await);
    assert_eq!((started.is_new, started.uncommitted), (true, 1));
    assert_eq!(started.exchange.directory.as_ref().map(Folder::as_str), Some("part"));
    (ground, started.exchange)
}

fn working_dirs_at(ground: &Ground, root: &str, host: &str) -> WorkingDirs {
    WorkingDirs::new(ground.base().join(root), ground.base().join(host).join("worktrees/world"))
}

fn copy_at(ground: &Ground, host: &str, exchange: &GitExchange, epoch: u64) -> ExchangeCopy {
    let home = ground.base().join(host).join("workspaces/world");
    ExchangeCopy { exchange: exchange.clone(), epoch: HostEpoch(epoch), home }
}

fn world_of(ground: &Ground, host: &str, exchange: &GitExchange, epoch: u64) -> WorkspaceExecutor {
    let copy = copy_at(ground, host, exchange, epoch);
    std::fs::create_dir_all(ground.base().join(host).join("workspaces")).expect("made");
    let root = copy.root();
    let root = root.strip_prefix(ground.base()).expect("below").to_str().expect("text").to_owned();
    let dirs = working_dirs_at(ground, &root, host).with_exchange(Some(copy));
    world_with(&ground.base(), dirs, CustomTypeRegistry::default(), &[])
}

/// Returns a host that has its clone, and where a clone of an earlier epoch is now.
async fn host(
    ground: &Ground,
    name: &str,
    exchange: &GitExchange,
    epoch: u64,
) -> (WorkspaceExecutor, Option<PathBuf>) {
    let moved = done(world_of(ground, name, exchange, epoch).clone_exchange().await);
    (world_of(ground, name, exchange, epoch), moved)
}

#[track_caller]
fn done<T>(outcome: Result<T, OperationError>) -> T {
    outcome.expect("it succeeds")
}

#[track_caller]
fn why<T>(outcome: Result<T, OperationError>) -> String {
    failure(&outcome.err().expect("it fails"))
}

const TREE: &str = "a/worktrees/world/main.1";
const BRANCH: &str = "refs/heads/raymond/world/main.1";

/// Makes the worktree of `main.1` at host `a`.
async fn made(world: &WorkspaceExecutor, exchange: &GitExchange) {
    let agent_id = agent("main.1");
    assert_eq!(done(world.fetch_work(Some(&agent_id)).await), None);
    done(world.worktree(&agent_id, Some(&exchange.base)).await);
}

fn commit(ground: &Ground, at: &str, name: &str) -> String {
    std::fs::write(ground.base().join(at).join(name), name).expect("written");
    ground.git(at, &["add", "."]);
    ground.git(at, &["commit", "--quiet", "--message", name]);
    ground.git(at, &["rev-parse", "HEAD"])
}

#[tokio::test]
async fn branch_of_an_agent_is_set_back_only_from_what_its_host_has_pushed() {
    let (ground, exchange) = started().await;
    let (world, moved) = host(&ground, "a", &exchange, 1).await;
    assert_eq!(moved, None);
    let agent_id = agent("main.1");
    made(&world, &exchange).await;
    assert!(world.at(&working_dir_of("main.1")).expect("a directory").root().ends_with("part"));
    let there = || ground.git("exchange.git", &["rev-parse", BRANCH]);
    assert_eq!(done(world.push_work(Some(&agent_id)).await), None);
    assert_eq!(there(), exchange.base);
    let first = commit(&ground, TREE, "first.txt");
    done(world.push_work(Some(&agent_id)).await);
    assert_eq!(there(), first);
    ground.git(TREE, &["commit", "--quiet", "--amend", "--message", "amended"]);
    done(world.push_work(Some(&agent_id)).await);
    assert_eq!(there(), ground.git(TREE, &["rev-parse", "HEAD"]));
    // Somebody else writes to the branch.
    ground.git("exchange.git", &["update-ref", BRANCH, &exchange.base]);
    let foreign = ground.git(
        "exchange.git",
        &["commit-tree", "-m", "x", "HEAD^{tree}"]
            .map(|word| if word == "HEAD^{tree}" { "raymond/world/base^{tree}" } else { word }),
    );
    ground.git("exchange.git", &["update-ref", BRANCH, &foreign]);
    commit(&ground, TREE, "second.txt");
    let refused = why(world.push_work(Some(&agent_id)).await);
    assert!(refused.contains("cannot push the work of main.1"), "{refused}");
    assert!(refused.contains("which this host has not pushed"), "{refused}");
    assert_eq!(there(), foreign);
    ground.git("exchange.git", &["update-ref", "-d", BRANCH]);
    done(world.push_work(Some(&agent_id)).await);
    assert_eq!(there(), ground.git(TREE, &["rev-parse", "HEAD"]));
}

fn working_dir_of(id: &str) -> raymond_model::worktree_snapshot::WorkingDir {
    super::trees::working_dir(id)
}

#[tokio::test]
async fn exchange_that_refuses_is_quoted_and_tried_again() {
    let (ground, exchange) = started().await;
    let (world, _) = host(&ground, "a", &exchange, 1).await;
    made(&world, &exchange).await;
    let hook = ground.base().join("exchange.git/hooks/pre-receive");
    std::fs::create_dir_all(hook.parent().expect("one")).expect("made");
    std::fs::write(&hook, "#!/bin/sh\necho no space >&2\nexit 1\n").expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&hook, mode).expect("set");
    let agent_id = agent("main.1");
    let refused = why(world.push_work(Some(&agent_id)).await);
    assert!(refused.contains("hook declined") && refused.contains("no space"), "{refused}");
    std::fs::remove_file(&hook).expect("removed");
    assert_eq!(done(world.push_work(Some(&agent_id)).await), None);
    std::fs::rename(ground.base().join("exchange.git"), ground.base().join("away")).expect("moved");
    // Nothing has changed since, so the exchange is not asked.
    assert_eq!(done(world.push_work(Some(&agent_id)).await), None);
    let unreached = why(world.fetch_work(Some(&agent_id)).await);
    assert!(unreached.contains("cannot fetch from the exchange"), "{unreached}");
}

#[tokio::test]
async fn worktree_is_made_again_at_another_host_with_the_files_of_its_snapshot() {
    let (ground, exchange) = started().await;
    let (world, _) = host(&ground, "a", &exchange, 1).await;
    made(&world, &exchange).await;
    let agent_id = agent("main.1");
    let first = commit(&ground, TREE, "first.txt");
    std::fs::write(ground.base().join(TREE).join("open.txt"), "open").expect("written");
    let turn = TurnId { agent: agent_id.clone(), step: 1, turn: 0 };
    done(world.snapshot(&agent_id, &turn).await);
    assert_eq!(done(world.push_work(Some(&agent_id)).await), None);
    let (other, _) = host(&ground, "b", &exchange, 1).await;
    let notice = done(other.fetch_work(Some(&agent_id)).await).expect("it is said");
    assert!(notice.contains(&first[..12]) && notice.contains("its last snapshot"), "{notice}");
    done(other.worktree(&agent_id, Some(&exchange.base)).await);
    let tree = "b/worktrees/world/main.1";
    assert_eq!(ground.git(tree, &["rev-parse", "HEAD"]), first);
    assert_eq!(ground.git(tree, &["status", "--porcelain"]), "?? open.txt");
    assert_eq!(done(other.fetch_work(Some(&agent_id)).await), None);
    let second = commit(&ground, tree, "second.txt");
    let turn = TurnId { agent: agent_id.clone(), step: 2, turn: 0 };
    done(other.snapshot(&agent_id, &turn).await);
    assert_eq!(done(other.push_work(Some(&agent_id)).await), None);
    assert_eq!(ground.git("exchange.git", &["rev-parse", BRANCH]), second);
    // The parent's host finds it by the name of the agent.
    done(world.fetch_work(None).await);
    let found = ["rev-parse", "refs/remotes/raymond/world/main.1"];
    assert_eq!(ground.git("a/workspaces/world/repository", &found), second);
}

#[tokio::test]
async fn clone_of_an_earlier_epoch_is_moved_aside_and_the_trunk_goes_on() {
    let (ground, exchange) = started().await;
    let (world, _) = host(&ground, "a", &exchange, 1).await;
    let repository = "a/workspaces/world/repository";
    assert_eq!(done(world.push_work(None).await), None);
    let listed = || ground.git("exchange.git", &["for-each-ref", "--format=%(refname)"]);
    assert_eq!(listed(), "refs/heads/raymond/world/base", "nothing is new");
    made(&world, &exchange).await;
    let (other, _) = host(&ground, "b", &exchange, 1).await;
    let merged = commit(&ground, repository, "merged.txt");
    done(world.push_work(None).await);
    assert_eq!(host(&ground, "a", &exchange, 1).await.1, None);
    // The directory of the run goes on at the other host, which had its clone before.
    done(other.fetch_work(None).await);
    assert_eq!(ground.git("b/workspaces/world/repository", &["rev-parse", "HEAD"]), merged);
    let (again, moved) = host(&ground, "a", &exchange, 3).await;
    let moved = moved.expect("it was moved");
    assert!(moved.ends_with("workspaces/world~1") && moved.join("repository/.git").is_dir());
    assert!(ground.base().join("a/worktrees/world~1/main.1.json").is_file());
    assert_eq!(ground.git(repository, &["rev-parse", "HEAD"]), merged);
    assert_eq!(ground.git(repository, &["branch", "--show-current"]), "raymond/world/trunk");
    made(&again, &exchange).await;
}

#[tokio::test]
async fn base_of_another_run_is_refused_and_new_base_is_withdrawn() {
    let (ground, exchange) = started().await;
    let name = ExchangeName::Address(exchange.address.clone());
    let again = done(ground.world.begin_exchange(&name).await);
    assert!(!again.is_new, "it is there already");
    commit(&ground, "root", "more.txt");
    let refused = why(ground.world.begin_exchange(&name).await);
    assert!(refused.contains("raymond/world/base") && refused.contains("--id"), "{refused}");
    done(ground.world.withdraw_exchange(&exchange).await);
    assert_eq!(ground.git("exchange.git", &["for-each-ref"]), "");
    assert!(done(ground.world.begin_exchange(&name).await).is_new);
}
