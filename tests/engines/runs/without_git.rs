//! Hosts without git, for runs that need it.

use super::cluster::Cluster;
use super::fake::answers;

#[test]
fn agent_with_a_worktree_names_the_host_without_git() {
    let cluster = Cluster::new().file("START.md", "---\nworktree: true\n---\nstart");
    cluster.script(&[answers("start", "<result>done</result>")]);
    let bare = cluster.machine("a");
    let bin = bare.path("bin");
    let _worker = bare.with("PATH", bin.to_str().expect("a path")).worker(1, &[]);
    let failed = cluster.machine("s").run(&["--max-restarts", "0"]).wait();
    failed.code(1).says("host a: cannot make the worktree").says("no program `git`");
    assert!(cluster.calls().is_empty(), "{:?}", cluster.calls());
}
