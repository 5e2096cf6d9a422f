//! What a crash means for each operation that had begun and has no record of its end.

use raymond::domain::operation::{Operation, RecoveryClass};
use serde_json::{Value, json};

/// A name, an operation, and its class.
type ClassRow = (&'static str, Value, RecoveryClass);

fn rows() -> Vec<ClassRow> {
    use RecoveryClass::{Converges, Guarded, Read, Uncertain};
    let shell = |more: Value| {
        let mut shell = json!({"type": "bash_exec", "command": "x"});
        shell.as_object_mut().expect("a map").extend(more.as_object().cloned().unwrap_or_default());
        shell
    };
    vec![
        ("a precondition is read again", json!({"type": "file_exists", "path": "x"}), Read),
        (
            "source_has_updates is read again",
            json!({"type": "source_has_updates", "id": "x"}),
            Read,
        ),
        ("read_config is read again", json!({"type": "read_config"}), Read),
        ("read_file is read again", json!({"type": "read_file", "path": "x"}), Read),
        ("get_sha is read again", json!({"type": "get_sha", "repo_path": "x"}), Read),
        ("git_fetch is read again", json!({"type": "git_fetch", "repo_path": "x"}), Read),
        ("web_fetch is read again", json!({"type": "web_fetch", "url": "x"}), Read),
        (
            "write_file converges",
            json!({"type": "write_file", "path": "x", "content": ""}),
            Converges,
        ),
        ("create_directory converges", json!({"type": "create_directory", "path": "x"}), Converges),
        ("delete_file converges", json!({"type": "delete_file", "path": "x"}), Converges),
        (
            "cache_web_content converges",
            json!({"type": "cache_web_content", "content": "", "dest": "x"}),
            Converges,
        ),
        (
            "write_config_entry converges",
            json!({"type": "write_config_entry", "path": "x", "value": 1}),
            Converges,
        ),
        (
            "update_source converges",
            json!({"type": "update_source", "id": "x", "fields": {}}),
            Converges,
        ),
        ("git_pull converges", json!({"type": "git_pull", "repo_path": "x"}), Converges),
        ("add_source is guarded", json!({"type": "add_source", "spec": {"id": "x"}}), Guarded),
        ("clone_repo is guarded", json!({"type": "clone_repo", "url": "x", "dest": "y"}), Guarded),
        (
            "append_to_file is guarded",
            json!({"type": "append_to_file", "path": "x", "content": ""}),
            Guarded,
        ),
        ("a command is uncertain", shell(json!({})), Uncertain),
        ("a command with idempotent is done again", shell(json!({"idempotent": true})), Converges),
        ("a command with unless is guarded", shell(json!({"unless": "true"})), Guarded),
        ("a command with once is uncertain", shell(json!({"once": true})), Uncertain),
    ]
}

pub(super) fn names() -> Vec<&'static str> {
    rows().into_iter().map(|(name, ..)| name).collect()
}

#[test]
fn operations_have_their_classes() {
    for (name, operation, class) in rows() {
        let operation: Operation = serde_json::from_value(operation).expect(name);
        assert_eq!(operation.class(), class, "{name}");
    }
}
