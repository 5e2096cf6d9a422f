//! Tests of the changes since a program began, with the real git.

use std::collections::BTreeMap;

use super::*;
use crate::outcome::OperationError;
use raymond_model::activity::ActivityResult;

const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

impl Ground {
    /// A workspace that is a repository with a file and a commit.
    pub(super) fn repository() -> Self {
        let ground = Self::new();
        ground.git("root", &["init", "-q", "-b", "main"]);
        ground.put("file", "one\n");
        ground.put("web/page", "old\n");
        ground.commit_all();
        ground
    }

    pub(super) fn commit_all(&self) {
        self.git("root", &["add", "-A"]);
        self.git("root", &["commit", "-q", "-m", "x"]);
    }

    async fn bases(
        &self,
        directories: &[&str],
        branch: Option<&str>,
    ) -> Result<ActivityResult, OperationError> {
        let directories: Vec<String> =
            directories.iter().map(|&directory| directory.to_owned()).collect();
        self.world.bases("main.1", &directories, branch, false).await
    }

    async fn commit_of(&self, directory: &str, branch: Option<&str>) -> Option<String> {
        match self.bases(&[directory], branch).await {
            Ok(ActivityResult::Bases(mut bases)) => bases.remove(directory).expect("asked"),
            other => panic!("{other:?}"),
        }
    }

    async fn changes(&self, directory: &str, base: &str) -> Result<String, String> {
        match self.world.changes("main.2", directory, base, true).await {
            Ok(ActivityResult::Changes(diff)) => Ok(diff),
            Err(OperationError::Failed(why)) => Err(why),
            other => panic!("{other:?}"),
        }
    }

    async fn diff(&self, directory: &str, base: &str) -> String {
        self.changes(directory, base).await.expect("a diff")
    }

    /// The files of the repository itself, and what is in them.
    fn inside(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut to_look_at = vec![self.root().join(".git")];
        while let Some(directory) = to_look_at.pop() {
            for entry in std::fs::read_dir(directory).expect("read") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    to_look_at.push(path);
                } else {
                    let content = std::fs::read(&path).expect("read");
                    files.insert(path, content);
                }
            }
        }
        files
    }
}

/// The files that a diff shows, as its headers name them.
fn shown(diff: &str) -> Vec<&str> {
    diff.lines().filter_map(|line| line.strip_prefix("diff --git ")).collect()
}

#[tokio::test]
async fn base_is_commit_of_branch_or_of_head() {
    let ground = Ground::repository();
    let first = ground.git("root", &["rev-parse", "HEAD"]);
    ground.git("root", &["branch", "old"]);
    ground.put("file", "two\n");
    ground.commit_all();
    let head = ground.git("root", &["rev-parse", "HEAD"]);
    assert_eq!(ground.commit_of("", None).await.as_ref(), Some(&head));
    assert_eq!(ground.commit_of("", Some("old")).await.as_ref(), Some(&first));
    assert_eq!(ground.commit_of("web", Some("HEAD~1")).await.as_ref(), Some(&first));
    assert_eq!(ground.commit_of("web/yet/to/be", None).await.as_ref(), Some(&head));
    for none in ["gone", "--all", "^main", "main..old", "", "a b", "HEAD^{tree}"] {
        let Err(OperationError::Failed(why)) = ground.bases(&[""], Some(none)).await else {
            panic!("{none:?} was taken")
        };
        let expected = format!("no branch or commit `{none}`; --base-branch names");
        assert!(why.contains(&expected), "{why}");
    }
    let Err(OperationError::Failed(why)) = ground.bases(&["../x"], None).await else {
        panic!("refused")
    };
    assert!(why.contains("leads out of the workspace"), "{why}");
}

#[tokio::test]
async fn base_is_empty_tree_without_commits_and_none_without_repository() {
    let ground = Ground::new();
    ground.put("new", "x\n");
    assert_eq!(ground.commit_of("", None).await, None);
    let why = ground.changes("", EMPTY_TREE).await.expect_err("no repository");
    assert!(why.starts_with("cannot tell what has changed in the workspace: `git "), "{why}");
    assert!(why.contains("not a git repository"), "{why}");

    ground.git("root", &["init", "-q", "-b", "main"]);
    assert_eq!(ground.commit_of("", Some("main")).await.as_deref(), Some(EMPTY_TREE));
    assert!(
        ground
            .diff("", EMPTY_TREE)
            .await
            .ends_with("--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n")
    );
    ground.git("root", &["init", "-q", "--bare", "bare"]);
    assert_eq!(ground.commit_of("bare", None).await, None);

    let without = Ground::with(CustomTypeRegistry::default(), &[("PATH", "/nowhere")]);
    assert_eq!(without.commit_of("", None).await, None);
}

#[tokio::test]
async fn diff_shows_all_changes_and_leaves_repository_untouched() {
    let ground = Ground::repository();
    let long = "a\nb\nc\nd\ne\nf\ng\n";
    for (name, content) in [("moved", long), ("gone", "x\n"), ("same", "x\n"), ("kept", "x\n")] {
        ground.put(name, content);
    }
    ground.put(".gitignore", "*.log\n");
    ground.commit_all();
    let base = ground.commit_of("", None).await.expect("a base");
    ground.put("web/page", "new\n");
    ground.commit_all();
    ground.put("staged", "s\n");
    ground.git("root", &["add", "staged"]);
    ground.git("root", &["mv", "moved", "there"]);
    ground.git("root", &["rm", "-q", "--cached", "same"]);
    std::fs::remove_file(ground.root().join("gone")).expect("removed");
    ground.put("file", "one\nmore\n");
    ground.put("-odd \"n\u{e4}me\"\t.txt", "o\n");
    ground.put("binary", "\0\u{1}");
    ground.put("quiet.log", "ignored\n");
    ground.put(".raymond/runs/r/journal.jsonl", "own\n");
    ground.put("web/.Raymond/x", "own\n");
    ground.git("root", &["init", "-q", "nested"]);
    ground.put("nested/x", "another's\n");

    let before = ground.inside();
    let diff = ground.diff("", &base).await;
    assert_eq!(ground.inside(), before);
    assert!(!ground.kept.path().join("steps/main.2.look").exists());
    let expected = [
        "\"a/-odd \\\"n\u{e4}me\\\"\\t.txt\" \"b/-odd \\\"n\u{e4}me\\\"\\t.txt\"",
        "a/binary b/binary",
        "a/file b/file",
        "a/gone b/gone",
        "a/staged b/staged",
        "a/moved b/there",
        "a/web/page b/web/page",
    ];
    assert_eq!(shown(&diff), expected);
    for part in [
        "\n one\n+more\n",
        "Binary files /dev/null and b/binary differ\n",
        "deleted file mode 100644\n",
        "rename from moved\nrename to there\n",
        "\n-old\n+new\n",
    ] {
        assert!(diff.contains(part), "{part:?} is not in\n{diff}");
    }
    let below = ground.diff("web", &base).await;
    assert_eq!(shown(&below), ["a/web/page b/web/page"]);
    ground.put("empty/.gitignore", "*\n");
    assert_eq!(ground.diff("empty", &base).await, "");
}

#[tokio::test]
async fn git_config_neither_changes_diff_nor_runs_commands() {
    let mut ground = Ground::repository();
    let base = ground.commit_of("", None).await.expect("a base");
    ground.put("file", "one\ntwo\n");
    let plain = ground.diff("", &base).await;
    let script = ground.base().join("script");
    std::fs::write(&script, "#!/bin/sh\ntouch ran\n").expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).expect("set");
    let script = script.display().to_string();
    ground.put(".git/info/attributes", "* diff=mine\n");
    for (name, value) in [
        ("diff.external", &*script),
        ("diff.mine.command", &script),
        ("diff.mine.textconv", &script),
        ("core.fsmonitor", &script),
        ("core.pager", &script),
        ("pager.diff", "true"),
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.context", "0"),
        ("diff.autoRefreshIndex", "false"),
        ("core.splitIndex", "true"),
        ("color.ui", "always"),
    ] {
        ground.git("root", &["config", name, value]);
    }
    std::fs::create_dir_all(ground.root().join(".git/hooks")).expect("made");
    std::fs::copy(&script, ground.root().join(".git/hooks/post-index-change")).expect("copied");
    ground.begin(&[]);
    assert_eq!(ground.diff("", &base).await, plain);
    assert!(!ground.root().join("ran").exists());
}

#[tokio::test]
async fn files_outside_sparse_checkout_are_not_shown_as_deleted() {
    let ground = Ground::repository();
    let base = ground.commit_of("", None).await.expect("a base");
    ground.git("root", &["sparse-checkout", "set", "other"]);
    assert!(!ground.root().join("web").exists());
    assert_eq!(ground.diff("", &base).await, "");
    ground.put("beyond/new", "x\n");
    assert_eq!(shown(&ground.diff("", &base).await), ["a/beyond/new b/beyond/new"]);
}

#[tokio::test]
async fn oversized_diff_is_cut_with_a_notice() {
    let ground = Ground::repository();
    let base = ground.commit_of("", None).await.expect("a base");
    ground.put("large", &"0123456789\n".repeat(200_000));
    let diff = ground.diff("", &base).await;
    assert!(diff.len() <= 1024 * 1024 + 100, "{}", diff.len());
    let last: Vec<&str> = diff.lines().rev().take(2).collect();
    assert_eq!(last[1], "+0123456789");
    assert!(last[0].starts_with("[the diff is cut here: 13"), "{}", last[0]);
    assert!(last[0].ends_with(" more bytes are not shown]"), "{}", last[0]);
}

#[tokio::test]
async fn diff_error_names_directory_and_reason() {
    let ground = Ground::repository();
    let base = ground.commit_of("", None).await.expect("a base");
    for (directory, base, expected) in [
        ("gone", &*base, "cannot tell what has changed in `gone`: there is no such directory"),
        ("..", &base, "cannot tell what has changed in `..`: the path `..` leads out of the"),
        (
            "web",
            "--output=x",
            "cannot tell what has changed in `web`: \"--output=x\" is not a commit",
        ),
        ("", &"1".repeat(40), "cannot tell what has changed in the workspace: `git diff` exited"),
    ] {
        let why = ground.changes(directory, base).await.expect_err("it fails");
        assert!(why.starts_with(expected), "{why}");
    }
}

#[tokio::test]
async fn stopped_world_inspects_nothing() {
    let ground = Ground::repository();
    ground.world.stop();
    assert_eq!(ground.bases(&[""], None).await, Err(OperationError::Interrupted));
    assert_eq!(
        ground.world.changes("x", "", EMPTY_TREE, false).await,
        Err(OperationError::Interrupted)
    );
}
