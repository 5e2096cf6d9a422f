//! The consequences that work on files, the configuration and commands: the effect and the failure of each.

use serde_json::{Value, json};

use super::super::{test, text};
use super::{ActionRow, fails, gives, play};
use crate::support::Test;

/// The rows about files and the configuration.
fn file_rows() -> Vec<ActionRow> {
    let read = |path: &str| json!({"type": "read_file", "path": path, "store_as": "read"});
    let config = || json!({"type": "read_config", "store_as": "config"});
    vec![
        gives(
            "read_config stores data",
            json!([config()]),
            "${computed.config.sources[0].id}",
            json!("docs"),
        ),
        gives(
            "read_file stores text",
            json!([read("docs/a.md")]),
            "${computed.read}",
            json!("# A\n"),
        ),
        fails("read_file of a missing file", read("gone.md"), "gone.md"),
        fails("read_file of a directory", read("docs"), "docs"),
        fails(
            "read_file outside",
            json!({"type": "read_file", "path": "${'..'}/x", "store_as": "read"}),
            "leads out of",
        ),
        gives(
            "write_file makes directories",
            json!([{"type": "write_file", "path": "new/deep/b.txt", "content": "b"}, read("new/deep/b.txt")]),
            "${computed.read}",
            json!("b"),
        ),
        gives(
            "write_file replaces",
            json!([{"type": "write_file", "path": "new/deep/b.txt", "content": "c"}, read("new/deep/b.txt")]),
            "${computed.read}",
            json!("c"),
        ),
        gives(
            "write_file of a number is text",
            json!([{"type": "write_file", "path": "n.txt", "content": "${number}"}, read("n.txt")]),
            "${computed.read}",
            json!("7"),
        ),
        fails(
            "write_file of null",
            json!({"type": "write_file", "path": "n.txt", "content": "${nothing}"}),
            "WF403 `content` takes a text",
        ),
        fails(
            "write_file over a directory",
            json!({"type": "write_file", "path": "docs", "content": "x"}),
            "docs",
        ),
        fails(
            "write_file outside",
            json!({"type": "write_file", "path": "/x${'y'}", "content": "x"}),
            "write_file: ",
        ),
        fails(
            "write_file with an empty path",
            json!({"type": "write_file", "path": "${empty}", "content": "x"}),
            "`path` is empty",
        ),
        gives(
            "create_directory",
            json!([{"type": "create_directory", "path": "made/deep"}, {"type": "directory_exists_check", "path": "made/deep", "store_as": "is"}]),
            "${computed.is}",
            json!(true),
        ),
        gives(
            "create_directory twice",
            json!([{"type": "create_directory", "path": "made/deep"}]),
            "same",
            json!("same"),
        ),
        fails(
            "create_directory over a file",
            json!({"type": "create_directory", "path": "docs/a.md"}),
            "docs/a.md",
        ),
        gives(
            "delete_file",
            json!([{"type": "delete_file", "path": "docs/old.md"}, {"type": "file_exists_check", "path": "docs/old.md", "store_as": "is"}]),
            "${computed.is}",
            json!(false),
        ),
        gives(
            "delete_file twice",
            json!([{"type": "delete_file", "path": "docs/old.md"}]),
            "same",
            json!("same"),
        ),
        fails("delete_file of a directory", json!({"type": "delete_file", "path": "docs"}), "docs"),
        gives(
            "write_config_entry",
            json!([{"type": "write_config_entry", "path": "schema.version", "value": 2}, config()]),
            "${computed.config.schema.version}",
            json!(2),
        ),
        gives(
            "write_config_entry with brackets",
            json!([{"type": "write_config_entry", "path": ".sources[-1].branch", "value": "main"}, config()]),
            "${computed.config.sources[0].branch}",
            json!("main"),
        ),
        fails(
            "write_config_entry without a place",
            json!({"type": "write_config_entry", "path": "sources[9].id", "value": 1}),
            "no `[9]`",
        ),
        gives(
            "add_source",
            json!([{"type": "add_source", "spec": {"id": "more", "url": "u"}}, config()]),
            "${computed.config.sources.map(s => s.id)}",
            json!(["docs", "more"]),
        ),
        gives(
            "add_source of the same spec again",
            json!([{"type": "add_source", "spec": {"url": "u", "id": "more"}}, config()]),
            "${len(computed.config.sources)}",
            json!(2),
        ),
        fails(
            "add_source of the same id",
            json!({"type": "add_source", "spec": {"id": "more", "url": "v"}}),
            "has another of that id",
        ),
        fails(
            "add_source without an id",
            json!({"type": "add_source", "spec": {"url": "v"}}),
            "its spec has no `id`",
        ),
        fails(
            "add_source of no map",
            json!({"type": "add_source", "spec": "${number}"}),
            "WF403 `spec` takes a mapping",
        ),
        gives(
            "update_source",
            json!([{"type": "update_source", "id": "more", "fields": {"url": "w"}}, config()]),
            "${computed.config.sources[1]}",
            json!({"id": "more", "url": "w"}),
        ),
        fails(
            "update_source that is absent",
            json!({"type": "update_source", "id": "gone", "fields": {"a": 1}}),
            "has none of that id",
        ),
        gives(
            "glob_files in order",
            json!([{"type": "glob_files", "pattern": "docs/*.md", "store_as": "found"}]),
            "${computed.found}",
            json!(["docs/a.md", "docs/b.md"]),
        ),
        gives(
            "glob_count",
            json!([{"type": "glob_count", "pattern": "docs/*.md", "store_as": "found"}]),
            "${computed.found}",
            json!(2),
        ),
        gives(
            "append_to_file",
            json!([
                {"type": "append_to_file", "path": "log/x", "content": "1"},
                {"type": "append_to_file", "path": "log/x", "content": "2"},
                read("log/x"),
            ]),
            "${computed.read}",
            json!("12"),
        ),
        gives(
            "bash_exec stores code and output",
            json!([{"type": "bash_exec", "command": "echo out; echo err >&2", "store_as": "shell"}]),
            "${computed.shell.exit_code}, ${computed.shell.stdout}, ${computed.shell.stderr}",
            json!("0, out\n, err\n"),
        ),
        fails(
            "bash_exec that fails",
            json!({"type": "bash_exec", "command": "echo no >&2; exit 3"}),
            "3",
        ),
        gives(
            "run_command",
            json!([{"type": "run_command", "command": "printf %s 42", "store_as": "shell"}]),
            "${computed.shell}",
            json!({"exit_code": 0, "stdout": "42", "stderr": ""}),
        ),
        gives(
            "a result of a command in a text is its output",
            json!([]),
            "got ${computed.shell}",
            json!("got 42"),
        ),
        gives(
            "bash_exec with unless",
            json!([{"type": "bash_exec", "command": "exit 9", "unless": "true", "store_as": "skipped"}]),
            "${computed.skipped.skipped}",
            json!(true),
        ),
    ]
}

pub(super) fn names() -> Vec<&'static str> {
    file_rows().into_iter().map(|row| row.name).chain(["read_config without one"]).collect()
}

pub(super) fn place() -> Test {
    test(&json!({}))
        .file("docs/a.md", b"# A\n")
        .file("docs/b.md", b"# B\n")
        .file("docs/old.md", b"")
        .file("data/config.yaml", b"# ours\nsources: [{id: docs}]\n")
}

pub(super) fn initial() -> Value {
    json!({"number": 7, "nothing": null, "empty": "", "computed": {"gone_page": {"status": 0}}})
}

#[test]
fn consequences_on_files_have_their_effects_and_failures() {
    let place = play(place(), initial(), json!([]), &file_rows());
    assert!(text(&place, "data/config.yaml").starts_with("# ours\n"));
    let row = fails(
        "read_config without one",
        json!({"type": "read_config", "store_as": "x"}),
        "no `data/config.yaml`",
    );
    play(test(&json!({})), initial(), json!([]), &[row]);
}
