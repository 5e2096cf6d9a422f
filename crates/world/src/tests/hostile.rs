//! Repositories that agents make out of plain files, and configurations that name programs: git executes nothing of them.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::json;

use super::trees::{agent, working_dir};
use super::*;
use raymond_model::activity::ActivityResult;
use raymond_model::turn::TurnId;

/// What each setting of a repository can have git execute. `MARK` is a command that leaves a file.
const SETTINGS: [&str; 30] = [
    "[filter \"e\"]\n clean = MARK; cat\n smudge = MARK; cat\n required = true\n",
    "[filter \"e=f.g\"]\n process = MARK\n",
    "[filter.e]\n clean = MARK\n",
    "[Filter \"e\"] Clean = \"MARK; cat\" ; x\n",
    "[diff \"e\"]\n command = MARK\n textconv = MARK; cat\n",
    "[diff]\n external = MARK\n",
    "[merge \"e\"]\n driver = MARK\n",
    "[core]\n fsmonitor = MARK; false\n",
    "[core]\n sshCommand = MARK\n gitProxy = MARK\n askPass = MARK\n",
    "[core]\n editor = MARK\n pager = MARK\n alternateRefsCommand = MARK\n",
    "[core]\n hooksPath = HOOKS\n",
    "[core]\n worktree = .\n",
    "[core]\n worktree = ..\n",
    "[core]\n bare = false\n",
    "[core]\n bare = true\n",
    "[core]\n repositoryformatversion = 1\n[extensions]\n partialClone = o\n[remote \"o\"]\n promisor = true\n url = /nowhere\n uploadpack = \"MARK; false\"\n",
    "[remote \"o\"]\n promisor = true\n url = ssh://x/y\n[core]\n repositoryformatversion = 1\n sshCommand = MARK\n[extensions]\n partialClone = o\n",
    "[remote \"o\"]\n promisor = true\n url = ext::sh -c MARK\n[protocol]\n allow = always\n[extensions]\n partialClone = o\n",
    "[remote \"o\"]\n promisor = true\n vcs = ext\n url = MARK\n",
    "[url \"ext::sh -c MARK \"]\n insteadOf = /\n",
    "[gpg]\n program = MARK\n[commit]\n gpgSign = true\n[merge]\n verifySignatures = true\n",
    "[credential]\n helper = !MARK\n",
    "[alias]\n status = !MARK\n rev-parse = !MARK\n",
    "[hook \"x\"]\n event = post-checkout\n command = MARK\n",
    "[submodule \"sub\"]\n update = !MARK\n active = true\n url = /nowhere\n",
    "[include]\n path = more\n",
    "[includeIf \"onbranch:**\"]\n path = more\n",
    "[extensions]\n worktreeConfig = true\n",
    "[pager]\n diff = MARK\n[sequence]\n editor = MARK\n[gc]\n recentObjectsHook = MARK\n auto = 1\n",
    "[interactive]\n diffFilter = MARK\n[trailer \"x\"]\n command = MARK\n[tar \"x\"]\n command = MARK\n",
];

const ATTRIBUTES: &str = "* filter=e diff=e merge=e\n*.txt filter=e=f.g\n";

/// A workspace whose run begins once [`begin`](Ground::begin) is called, and the mark of an executed command.
struct Trap {
    ground: Ground,
}

impl Trap {
    fn new() -> Self {
        Self { ground: Ground::repository() }
    }

    fn filled(&self, text: &str) -> String {
        let base = self.ground.base();
        let mark = format!("touch {}", base.join("pwned").display());
        text.replace("MARK", &mark).replace("HOOKS", &base.join("root/hooks").display().to_string())
    }

    fn write(&self, path: &str, text: &str) {
        self.ground.put(path, &self.filled(text));
    }

    /// Has raymond do all that it does in repositories.
    async fn use_all(&self, directory: &str) {
        let world = &self.ground.world;
        let steps = world.bases("main.1", &[directory.to_owned()], None, false).await;
        let base = match steps {
            Ok(ActivityResult::Bases(mut bases)) => bases.remove(directory).flatten(),
            _ => None,
        };
        let base = base.unwrap_or_else(|| "1".repeat(40));
        let _ = world.changes("main.2", directory, &base, false).await;
        let sha = json!({"type": "get_sha", "repo_path": if directory.is_empty() { "." } else { directory }});
        let _ = self.ground.perform("main.3", sha, false).await;
    }

    async fn use_worktree(&self) {
        let world = &self.ground.world;
        let _ = world.head("x").await;
        if self.ground.make("main.1", None).await.is_err() {
            return;
        }
        std::fs::write(self.ground.tree("main.1").join("new.txt"), "new\n").expect("written");
        let _ = world
            .snapshot(&agent("main.1"), &TurnId { agent: agent("main.1"), step: 1, turn: 0 })
            .await;
        let _ = world.tree_changes(&agent("main.1")).await;
        let _ = world.trees().await;
        let inside = world.at(&working_dir("main.1")).expect("a worktree");
        let _ = inside.bases("main.4", &[String::new()], None, false).await;
        let _ = world.remove_tree(&agent("main.1"), false, true).await;
    }

    #[track_caller]
    fn assert_nothing_ran(&self, what: &str) {
        assert!(!self.ground.base().join("pwned").exists(), "executed: {what}");
    }
}

#[tokio::test]
async fn settings_of_a_repository_execute_nothing() {
    for setting in SETTINGS {
        let mut trap = Trap::new();
        let config = trap.ground.text(".git/config");
        trap.write(".git/config", &format!("{config}{setting}"));
        trap.write(".git/more", SETTINGS[0]);
        trap.write(".git/config.worktree", SETTINGS[0]);
        trap.write(".gitattributes", ATTRIBUTES);
        trap.write("hooks/post-checkout", "#!/bin/sh\nMARK\n");
        trap.write("hooks/reference-transaction", "#!/bin/sh\nMARK\n");
        for hook in ["post-checkout", "reference-transaction"] {
            let file = trap.ground.root().join("hooks").join(hook);
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(file, mode).expect("set");
        }
        trap.ground.begin(&[]);
        trap.write("a.txt", "changed after the attributes\n");
        trap.use_all("").await;
        trap.use_worktree().await;
        trap.assert_nothing_ran(setting);
    }
}

#[tokio::test]
async fn user_filters_stay_in_effect_but_not_those_of_the_repository() {
    let mut trap = Trap::new();
    trap.ground.put("page.bin", "pointer\n");
    trap.ground.put(".gitattributes", "*.bin filter=lfs\n");
    trap.ground.git("root", &["add", "page.bin", ".gitattributes"]);
    trap.ground.git("root", &["commit", "-q", "-m", "x"]);
    let config = trap.ground.text(".git/config");
    let filters = "[filter \"lfs\"]\n smudge = MARK; cat\n clean = MARK; cat\n";
    trap.write(".git/config", &format!("{config}{filters}"));
    let users = trap.ground.base().join("gitconfig");
    std::fs::write(&users, "[filter \"lfs\"]\n smudge = sed s/pointer/content/\n")
        .expect("written");
    trap.ground.begin(&[("GIT_CONFIG_GLOBAL", users.to_str().expect("text"))]);
    trap.ground.make("main.1", None).await.expect("made");
    let page = std::fs::read_to_string(trap.ground.tree("main.1").join("page.bin"));
    assert_eq!(page.expect("there"), "content\n");
    trap.assert_nothing_ran("a filter of the repository in place of the user's");
}

#[tokio::test]
async fn repository_of_plain_files_is_not_used() {
    for setting in SETTINGS {
        let trap = Trap::new();
        for (path, text) in [
            ("objects/x", ""),
            ("refs/x", ""),
            ("HEAD", "1111111111111111111111111111111111111111\n"),
            ("config", setting),
            ("info/attributes", ATTRIBUTES),
            ("a.txt", "hello\n"),
            ("more", SETTINGS[0]),
        ] {
            trap.write(&format!("notes/{path}"), text);
        }
        let sha = trap.ground.why(json!({"type": "get_sha", "repo_path": "notes"})).await;
        assert!(sha.starts_with("no git repository at `notes`"), "{sha}");
        let bases = trap.ground.world.bases("main.1", &["notes".to_owned()], None, false).await;
        let none = [("notes".to_owned(), None)].into();
        assert_eq!(bases, Ok(ActivityResult::Bases(none)));
        trap.use_all("notes").await;
        trap.assert_nothing_ran(setting);
    }
}

#[tokio::test]
async fn repository_made_during_a_run_may_not_name_programs_or_lead_elsewhere() {
    let mut trap = Trap::new();
    trap.ground.begin(&[]);
    let ground = &trap.ground;
    ground.git("root", &["init", "-q", "made"]);
    ground.put("made/a", "x");
    ground.git("root/made", &["add", "a"]);
    ground.git("root/made", &["commit", "-q", "-m", "x"]);
    let head = ground.head("root/made");
    let sha = json!({"type": "get_sha", "repo_path": "made"});
    assert_eq!(ground.value(sha.clone()).await, json!(head), "one with nothing of that is fine");
    ground.git("root/made", &["config", "filter.e.clean", "id"]);
    let why = ground.why(sha.clone()).await;
    assert!(
        why.contains("is not the repository that the run began in")
            && why.contains("filter.e.clean"),
        "{why}"
    );
    ground.git("root/made", &["config", "--unset", "filter.e.clean"]);
    ground.git("root/made", &["config", "include.path", "x"]);
    assert!(ground.why(sha).await.contains("include.path"));

    ground.put("link/.git", "gitdir: ../.git\n");
    let why = ground.why(json!({"type": "get_sha", "repo_path": "link"})).await;
    assert!(why.contains("leads to") && why.contains("does not name it"), "{why}");
    let sha = json!({"type": "get_sha", "repo_path": "."});
    assert_eq!(ground.value(sha).await, json!(ground.head("root")), "the run's own is fine");
}

/// Makes a repository `n` inside a directory, with a filter of its own, and stages it there. A file in it changes then
/// without another size.
fn stage_repository_with_filter(trap: &Trap, directory: &str) {
    let inner = format!("{directory}/n");
    trap.ground.git(directory, &["init", "-q", "n"]);
    let file = |name: &str| trap.ground.base().join(&inner).join(name);
    std::fs::write(file("a.txt"), "aaaa\n").expect("written");
    trap.ground.git(&inner, &["add", "a.txt"]);
    trap.ground.git(&inner, &["commit", "-q", "-m", "x"]);
    trap.ground.git(&inner, &["config", "filter.e.clean", &trap.filled("MARK; cat")]);
    std::fs::create_dir_all(file(".git/info")).expect("made");
    std::fs::write(file(".git/info/attributes"), "* filter=e\n").expect("written");
    trap.ground.git(directory, &["add", "n"]);
    std::fs::write(file("a.txt"), "bbbb\n").expect("written");
    trap.assert_nothing_ran("the test itself");
}

#[tokio::test]
async fn staged_repository_inside_executes_nothing() {
    let mut trap = Trap::new();
    trap.ground.begin(&[]);
    let world = &trap.ground.world;
    trap.ground.make("main.1", None).await.expect("made");
    stage_repository_with_filter(&trap, "worktrees/world/main.1");
    stage_repository_with_filter(&trap, "root");
    for number in 0..250 {
        std::fs::write(trap.ground.tree("main.1").join(format!("{number}")), "x").expect("written");
    }
    let turn = TurnId { agent: agent("main.1"), step: 1, turn: 0 };
    let taken = world.snapshot(&agent("main.1"), &turn).await;
    trap.assert_nothing_ran("a snapshot of many files");
    let Ok(taken) = taken else { panic!("{taken:?}") };
    let kept = trap.ground.git("root", &["ls-tree", "--name-only", &taken.commit]);
    assert!(kept.lines().any(|name| name == "249"), "{kept}");
    let inner = trap.ground.head("worktrees/world/main.1/n");
    let tree = trap.ground.git("root", &["ls-tree", &taken.commit, "n"]);
    assert!(tree.contains(&inner), "the commit of the inner one is noted: {tree}");
    let _ = world.uncommitted(&agent("main.1")).await.expect("a status");
    trap.assert_nothing_ran("a status");
    let _ = world.tree_changes(&agent("main.1")).await;
    let _ = world.trees().await;
    trap.assert_nothing_ran("an inspection");
    let removed = world.remove_tree(&agent("main.1"), false, true).await;
    trap.assert_nothing_ran("a removal");
    let shown = format!("{removed:?}");
    assert!(shown.contains("contains another repository"), "{shown}");
    trap.use_all("").await;
    trap.assert_nothing_ran("the changes in a directory");
    trap.use_all("n").await;
    trap.assert_nothing_ran("the inner repository itself");
}

#[test]
fn unprotected_git_runs_filters_of_a_staged_repository_inside() {
    for words in [["add", "--all"], ["add", "--intent-to-add"], ["status", "--short"]] {
        let trap = Trap::new();
        stage_repository_with_filter(&trap, "root");
        trap.ground.git("root", &[&words[..], &["."]].concat());
        assert!(trap.ground.base().join("pwned").exists(), "{words:?}");
    }
}

#[tokio::test]
async fn old_directory_that_becomes_a_repository_is_not_trusted() {
    for name in [".git", "older"] {
        let mut trap = Trap::new();
        trap.ground.git("root", &["init", "-q", "n"]);
        trap.ground.put("n/a", "x");
        trap.ground.git("root/n", &["add", "a"]);
        trap.ground.git("root/n", &["commit", "-q", "-m", "x"]);
        trap.ground.git("root/n", &["config", "filter.e.clean", "id"]);
        let moved = trap.ground.root().join("n").join(name);
        std::fs::rename(trap.ground.root().join("n/.git"), &moved).expect("moved");
        trap.ground.begin(&[]);
        std::fs::rename(&moved, trap.ground.root().join("n/.git")).expect("moved");
        let sha = json!({"type": "get_sha", "repo_path": "n"});
        let why = trap.ground.why(sha.clone()).await;
        assert!(why.contains("is not the repository that the run began in"), "{why}");
        trap.ground.git("root/n", &["config", "--unset", "filter.e.clean"]);
        let head = trap.ground.head("root/n");
        assert_eq!(trap.ground.value(sha).await, json!(head), "without programs it may be used");
    }
}

#[tokio::test]
async fn run_of_an_older_raymond_judges_repositories_by_their_age() {
    let mut trap = Trap::new();
    let config = trap.ground.text(".git/config");
    trap.write(".git/config", &format!("{config}{}", SETTINGS[0]));
    trap.ground.git("root", &["init", "-q", "old"]);
    trap.write("old/.git/info/x", "");
    trap.ground.git("root/old", &["commit", "-q", "--allow-empty", "-m", "x"]);
    trap.ground.git("root/old", &["config", "filter.e.clean", "id"]);
    trap.ground.begin(&[]);
    let sha = |path: &str| json!({"type": "get_sha", "repo_path": path});
    assert!(trap.ground.why(sha("old")).await.contains("filter.e.clean"));
    std::fs::remove_file(trap.ground.base().join("run/repository")).expect("removed");
    trap.ground.value(sha("old")).await;
    trap.ground.value(sha(".")).await;
}

#[tokio::test]
async fn includes_of_a_linked_configuration_are_found_beside_the_link() {
    let mut trap = Trap::new();
    let config = trap.ground.text(".git/config");
    trap.write("other/config", &format!("{config}[include]\n path = more\n"));
    trap.write(".git/more", SETTINGS[0]);
    trap.write(".gitattributes", ATTRIBUTES);
    let link = trap.ground.root().join(".git/config");
    std::fs::remove_file(&link).expect("removed");
    std::os::unix::fs::symlink("../other/config", &link).expect("linked");
    trap.ground.begin(&[]);
    trap.write("a.txt", "changed after the attributes\n");
    trap.use_all("").await;
    trap.use_worktree().await;
    trap.assert_nothing_ran("a file that a linked configuration includes");
}

#[tokio::test]
async fn fifos_in_a_repository_are_errors() {
    for (file, include) in [(".git/commondir", ""), (".git/more", "[include]\n path = more\n")] {
        let mut trap = Trap::new();
        let config = trap.ground.text(".git/config");
        trap.write(".git/config", &format!("{config}{include}"));
        raymond_store::plain_file::make_fifo(&trap.ground.root().join(file));
        trap.ground.begin(&[]);
        let why = trap.ground.why(json!({"type": "get_sha", "repo_path": "."})).await;
        assert!(why.contains("it is a FIFO, not a plain file"), "{file}: {why}");
    }
    let trap = Trap::new();
    std::fs::create_dir(trap.ground.root().join("n")).expect("made");
    raymond_store::plain_file::make_fifo(&trap.ground.root().join("n/.git"));
    let why = trap.ground.why(json!({"type": "get_sha", "repo_path": "n"})).await;
    assert!(why.contains("n/.git names no repository"), "{why}");
}

#[tokio::test]
async fn fifo_as_configuration_is_an_error() {
    let mut trap = Trap::new();
    trap.ground.begin(&[]);
    let config = trap.ground.root().join(".git/config");
    std::fs::remove_file(&config).expect("removed");
    raymond_store::plain_file::make_fifo(&config);
    let why = trap.ground.why(json!({"type": "get_sha", "repo_path": "."})).await;
    assert!(why.contains("it is a FIFO, not a plain file"), "{why}");
}

#[test]
fn unprotected_git_falls_into_these_traps() {
    let trap = Trap::new();
    let config = trap.ground.text(".git/config");
    trap.write(".git/config", &format!("{config}{}", SETTINGS[0]));
    trap.write(".gitattributes", ATTRIBUTES);
    trap.ground.put("new", "x\n");
    trap.ground.git("root", &["add", "new"]);
    assert!(trap.ground.base().join("pwned").exists());
}

/// The places at which a random repository lies, and the directory in which git is asked about it.
const PLACES: [(&str, &str); 6] = [
    ("n/", "n"),
    ("n/.git/", "n"),
    (".git/", ""),
    ("n/.git/modules/x/", "n"),
    (".git/worktrees/n/", "n"),
    ("n/m/", "n/m"),
];

const HEADS: [&str; 4] =
    ["ref: refs/heads/main\n", "1111111111111111111111111111111111111111\n", "ref: x\n", ""];

/// Other files of a repository, or beside it.
const FILES: [(&str, &str); 12] = [
    ("objects/x", ""),
    ("refs/heads/main", "1111111111111111111111111111111111111111\n"),
    ("info/attributes", ATTRIBUTES),
    ("commondir", "..\n"),
    ("commondir", "../../n\n"),
    ("gitdir", "../n/.git\n"),
    ("more", "[filter \"e\"]\n clean = MARK\n"),
    ("config.worktree", "[filter \"e\"]\n smudge = MARK\n"),
    ("objects/info/alternates", "../../.git/objects\n"),
    ("packed-refs", "1111111111111111111111111111111111111111 refs/heads/main\n"),
    ("hooks/post-checkout", "#!/bin/sh\nMARK\n"),
    ("a.txt", "hello\n"),
];

#[test]
fn random_repositories_of_plain_files_execute_nothing() {
    let given = std::env::var("RAYMOND_FUZZ_REPOSITORIES").ok();
    let cases = given.and_then(|text| text.parse().ok()).unwrap_or(8);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let repository = (
        0..PLACES.len(),
        0..HEADS.len(),
        prop::collection::vec(0..SETTINGS.len(), 0..5),
        prop::collection::vec(0..FILES.len(), 0..8),
        any::<(bool, bool, bool)>(),
        any::<bool>(),
    );
    let config = ProptestConfig { failure_persistence: None, cases, ..ProptestConfig::default() };
    let ran = TestRunner::new(config).run(
        &repository,
        |(place, head, settings, files, (led, attributes, young), staged)| {
            let mut trap = Trap::new();
            let (below, directory) = PLACES[place];
            if staged && below.starts_with(".git/") {
                stage_repository_with_filter(&trap, "root");
            }
            if young {
                trap.ground.begin(&[]);
            }
            let config: String = settings.iter().map(|&setting| SETTINGS[setting]).collect();
            let was =
                if below == ".git/" { trap.ground.text(".git/config") } else { String::new() };
            trap.write(&format!("{below}config"), &format!("{was}{config}"));
            if below != ".git/" {
                trap.write(&format!("{below}HEAD"), HEADS[head]);
            }
            for &file in &files {
                let (path, text) = FILES[file];
                if below != ".git/" || !matches!(path, "commondir" | "gitdir") {
                    trap.write(&format!("{below}{path}"), text);
                }
            }
            if led && !trap.ground.root().join("n/.git").exists() {
                trap.write(
                    "n/.git",
                    &format!("gitdir: {}\n", trap.ground.root().join(below).display()),
                );
            }
            if attributes {
                trap.write(".gitattributes", ATTRIBUTES);
                trap.write("n/.gitattributes", ATTRIBUTES);
            }
            if !young {
                trap.ground.begin(&[]);
            }
            trap.write("b.txt", "changed\n");
            runtime.block_on(async {
                trap.use_all(directory).await;
                if place == 2 {
                    trap.use_worktree().await;
                }
            });
            prop_assert!(!trap.ground.base().join("pwned").exists(), "it was executed");
            Ok(())
        },
    );
    ran.expect("nothing is executed");
}
