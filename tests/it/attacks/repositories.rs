//! An agent, or a graph without trust, makes a repository out of plain files, whose configuration names a program.

use std::path::Path;

use crate::support::Test;

const PROGRAM: &str = r#"(workflow flow
  (roles (author :cwd "notes"))
  (state s
    (action (send-prompt :agent author :template "Write." :request-id x)
            (await (transcript-response :request-id x)))
    (terminal :result (artifact author))))
"#;

/// Fetches a missing object with a program.
const LAZY: &str = r#"[core]\n repositoryformatversion = 1\n bare = BARE\n worktree = .\n[extensions]\n partialClone = o\n[remote \"o\"]\n promisor = true\n url = /nowhere\n uploadpack = \"touch pwned; false\"\n"#;

/// Cleans each file with a program.
const FILTER: &str = r#"[core]\n repositoryformatversion = 0\n bare = false\n worktree = .\n[filter \"e\"]\n clean = \"touch pwned; cat\"\n"#;

/// Returns a flow whose first agent writes such a repository, before a program looks at the work of another.
fn flow(head: &str, config: &str) -> Test {
    let replies = format!(
        "START.md:\n  - reply: <goto>flow.lisp</goto>\n    files:\n      notes/objects/x: \"\"\n      notes/refs/x: \"\"\n      notes/a.txt: hello\n      notes/info/attributes: \"*.txt filter=e\\n\"\n      notes/HEAD: \"{head}\\n\"\n      notes/config: \"{config}\"\nflow.lisp#author:\n  - {{ reply: ok, repeat: true }}\n"
    );
    let policy = "---\nallowed_transitions: [{ tag: goto, target: flow.lisp }]\n---\nWrite.";
    Test::new()
        .prompt("START.md", policy)
        .file("flow.lisp", PROGRAM.as_bytes())
        .file("replies.yaml", replies.as_bytes())
}

fn is_marked(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    entries.into_iter().any(|entry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        entry.file_name() == "pwned" || (is_folder && is_marked(&entry.path()))
    })
}

fn work(test: &Test) -> String {
    let work = test.root().join("work");
    std::fs::create_dir(&work).expect("made");
    work.display().to_string()
}

#[test]
fn repository_of_plain_files_that_an_agent_wrote_executes_nothing() {
    let commit = "1".repeat(40);
    let lazy = LAZY.replace("BARE", "false");
    for (head, config) in [(&*commit, &*lazy), ("ref: refs/heads/main", FILTER)] {
        let test = flow(head, config);
        let place = work(&test);
        test.run(&["START.md", "--agent", "scripted", "--cwd", &place]);
        assert!(Path::new(&place).join("notes/config").exists(), "the agent wrote it");
        assert!(!is_marked(test.root()), "{config}");
    }
}

#[test]
fn graph_without_trust_writes_no_repository() {
    let config = LAZY.replace("BARE", "true");
    let write = |path: &str, content: &str| {
        format!("      - {{ type: write_file, path: {path}, content: \"{content}\" }}\n")
    };
    let graph = |head: &str| {
        format!(
            "name: flow\nversion: \"1.0.0\"\ndescription: Writes files.\nentry_preconditions: []\ninitial_state: {{ flags: {{}}, computed: {{ head: HEAD }} }}\nstart_node: a\nnodes:\n  a:\n    type: action\n    actions:\n      - {{ type: create_directory, path: x/objects }}\n      - {{ type: create_directory, path: x/refs }}\n{}{}      - {{ type: get_sha, repo_path: x, store_as: sha }}\n    on_success: done\n    on_failure: failed\nendings:\n  done: {{ type: success, message: Done }}\n  failed: {{ type: error, message: \"${{computed.last_error}}\" }}\n",
            write("x/config", &config),
            write(head, &format!("{}\\n", "1".repeat(40))),
        )
    };
    let untrusted = || Test::new().env("RAYMOND_TRUST", "false");
    let test = untrusted().file("workflow.yaml", graph("'x/${computed.head}'").as_bytes());
    let place = work(&test);
    let outcome = test.run(&["workflow.yaml", "--agent", "scripted", "--cwd", &place]);
    assert!(outcome.code(1).failed("main").contains("programs obey"), "{}", outcome.stderr);
    assert!(!is_marked(test.root()));

    let test = untrusted().file("workflow.yaml", graph("x/HEAD").as_bytes());
    let place = work(&test);
    let shown = test.raymond(&["trust", "--show", test.flow().to_str().expect("text")]);
    shown.stdout_has("write_file: x/HEAD");
    let options = ["workflow.yaml", "--agent", "scripted", "--cwd", &place];
    test.run(&options).code(77);
    let trusting = test.run(&[&options[..], &["--trust", "--id", "second"]].concat());
    assert!(trusting.code(1).stdout.contains("no git repository at `x`"), "{}", trusting.stdout);
    assert!(!is_marked(test.root()));
}
