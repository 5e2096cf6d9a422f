//! The table of the rooms, enforced: the imports of each room, and the form of its files.
//!
//! The sources are read as text. A module that is compiled only for tests may use the tools of tests;
//! otherwise the rules of its room apply to it.

#![expect(clippy::expect_used, reason = "a test may end with a message that explains")]

#[path = "rooms/scan.rs"]
mod scan;
#[path = "rooms/table.rs"]
mod table;

use scan::{LineKind, SourceFile};

/// The most lines a file may have.
const MAX_LINES_PER_FILE: usize = 800;

/// Words that mark unfinished work.
const UNFINISHED: [&str; 4] = ["TODO", "FIXME", "todo!", "unimplemented!"];

fn assert_none(offences: &[String], rule: &str) {
    assert!(offences.is_empty(), "{rule}:\n  {}\n", offences.join("\n  "));
}

/// Returns a line of the report for each line of a source that breaks a rule.
fn offences(rule: impl Fn(&SourceFile) -> Vec<(usize, String)>) -> Vec<String> {
    let mut found = Vec::new();
    for source in scan::SOURCES.iter() {
        let lines = rule(source);
        found.extend(lines.into_iter().map(|(line, why)| format!("{}:{line}: {why}", source.path)));
    }
    found
}

#[test]
fn every_room_imports_only_modules_allowed_by_table() {
    let forbidden = offences(|source| {
        let rule = |(line, path): &(usize, Vec<String>)| {
            table::offence(source, *line, path).map(|why| (*line, why))
        };
        source.imports().iter().filter_map(rule).collect()
    });
    assert_none(&forbidden, "an import that the table of the rooms does not allow");
}

#[test]
fn every_file_opens_with_a_doc_sentence() {
    let silent = offences(|source| {
        let head = source.text.lines().next().unwrap_or_default();
        if head.starts_with("//! ") && head.ends_with(['.', ':']) {
            Vec::new()
        } else {
            vec![(1, "does not open with `//!` and a sentence on one line".to_owned())]
        }
    });
    assert_none(&silent, "each file says what it is for");
}

#[test]
fn every_mod_rs_has_only_declarations() {
    let doing = offences(|source| {
        if !source.path.ends_with("/mod.rs") {
            return Vec::new();
        }
        let starts = [
            "fn",
            "struct",
            "enum",
            "union",
            "trait",
            "impl",
            "macro_rules",
            "static",
            "const",
            "type",
        ];
        let item = |line: &str| {
            let words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            let mut words = words.filter(|word| !word.is_empty());
            let plain = ["pub", "crate", "super", "async", "unsafe", "extern", "in", "default"];
            words.find(|word| !plain.contains(word)).map(str::to_owned)
        };
        let lines = source.code.lines().zip(1..);
        let does = lines.filter_map(|(line, number)| {
            let word = item(line)?;
            starts.contains(&word.as_str()).then(|| (number, format!("`{}`", line.trim())))
        });
        does.collect()
    });
    assert_none(&doing, "a mod.rs only declares; what does something has a file with a name");
}

#[test]
fn no_file_exceeds_line_limit() {
    let long = offences(|source| {
        let lines = source.text.lines().count();
        let why = format!("{lines} lines, at most {MAX_LINES_PER_FILE}");
        if lines > MAX_LINES_PER_FILE { vec![(lines, why)] } else { Vec::new() }
    });
    assert_none(&long, "one file, one subject");
}

/// The files that write to the terminal. The others print through them, and so through `domain::printable`.
const WRITERS: [&str; 5] = [
    "src/cli/output.rs",
    "src/cli/diagnostics.rs",
    "src/cli/background.rs",
    "src/cli/top.rs",
    "src/plugin/terminal.rs",
];

#[test]
fn only_listed_files_write_to_the_terminal() {
    let others = offences(|source| {
        let prints = ["cli", "plugin", "main"].contains(&source.room());
        if !prints || WRITERS.contains(&source.path.as_str()) {
            return Vec::new();
        }
        let writes = |line: &str| {
            let asks = ["Term::", "use_", "is_terminal()"].iter().any(|part| line.contains(part));
            !asks
                && ["stdout()", "stderr()", "print!(", "println!("]
                    .iter()
                    .any(|call| line.contains(call))
        };
        let lines = source.code.lines().zip(1..);
        let lines =
            lines.filter(|&(line, number)| source.kind(number) != LineKind::Test && writes(line));
        lines.map(|(line, number)| (number, format!("`{}`", line.trim()))).collect()
    });
    assert_none(&others, "what is printed goes through `cli::output` or `plugin::terminal`");
}

/// The calls that start and end processes, with the only files that may make them.
const PROCESS_OWNERS: [(&str, &[&str]); 2] = [
    (
        "Command::new(",
        &[
            "crates/agents/src/child.rs",
            "src/cli/background.rs",
            // The launcher becomes the program.
            "crates/agents/src/registry.rs",
            // A person's editor and interactive program have the terminal, and end before this process.
            "crates/agents/src/attach.rs",
            // The browser is no part of a run, and `raymond start` leaves by itself what it starts.
            "src/cli/serve.rs",
            "src/cli/serve/actions.rs",
        ],
    ),
    // A failpoint kills this process itself.
    ("kill_process", &["crates/agents/src/child.rs", "crates/store/src/fault.rs"]),
];

#[test]
fn only_listed_files_start_and_end_processes() {
    let others = offences(|source| {
        let owned = PROCESS_OWNERS.iter().filter(|(_, files)| !files.contains(&&*source.path));
        let calls: Vec<&str> = owned.map(|(call, _)| *call).collect();
        let lines = source.code.lines().zip(1..);
        let lines = lines.filter(|&(line, number)| {
            source.kind(number) != LineKind::Test && calls.iter().any(|call| line.contains(call))
        });
        lines.map(|(line, number)| (number, format!("`{}`", line.trim()))).collect()
    });
    assert_none(&others, "processes are started and ended by `process::child`");
}

#[test]
fn no_file_has_a_todo_marker() {
    let later = offences(|source| {
        let lines = source.text.lines().zip(1..);
        let found = lines.filter_map(|(line, number)| {
            let word = UNFINISHED.into_iter().find(|word| line.contains(word))?;
            Some((number, format!("`{word}`")))
        });
        found.collect()
    });
    assert_none(&later, "what is left for later is not written down here");
}

/// Words that only packs know, with the crates that only they use.
const WORDS_OF_PACKS: [&str; 6] =
    ["hiivmind", "marketplace", "3vl", "corpora", "serde_yaml", "yaml_edit"];

#[test]
fn only_packs_know_their_words() {
    let others = offences(|source| {
        if source.path.contains("/corpus") {
            return Vec::new();
        }
        let lines = source.text.lines().zip(1..);
        let lines = lines.filter(|&(_, number)| source.kind(number) != LineKind::Test);
        let found = lines.filter_map(|(line, number)| {
            let line = line.to_lowercase();
            let word = WORDS_OF_PACKS.into_iter().find(|word| line.contains(word))?;
            Some((number, format!("`{word}`")))
        });
        found.collect()
    });
    assert_none(&others, "the words of one project stay in its pack");
}

/// Tests of the scanner: its code, imports and lines of tests.
mod scanner {
    use super::*;

    fn imports(text: &str) -> Vec<String> {
        let source = SourceFile::new("crates/store/src/x.rs", text);
        source.imports().iter().map(|(_, path)| path.join("::")).collect()
    }

    #[test]
    fn nested_import_list_is_expanded() {
        let found = imports("use crate::{self, inbox, a::{b, c as d}};\npub use std::fs;\n");
        let expected =
            ["crate::store", "crate::store::inbox", "crate::store::a::b", "crate::store::a::c"];
        assert_eq!(found[..4], expected);
        assert_eq!(found[4..], ["std::fs"]);
    }

    #[test]
    fn inline_path_counts_as_import() {
        let found = imports("fn f() { g(std::env::var(\"x\"), crate::y::z); tokio::select! {} }");
        assert_eq!(found, ["std::env::var", "crate::store::y::z", "tokio::select"]);
        assert_eq!(imports("fn f() { println!(\"x\"); self.std::fs }"), ["println"]);
    }

    #[test]
    fn super_paths_are_resolved() {
        assert_eq!(
            imports("use super::Error;\nuse raymond_model::id::x;\nuse raymond_store::proof::y;"),
            ["crate::store::Error", "crate::model::id::x", "crate::store::proof::y"]
        );
        let nested = "mod tests {\n    use super::*;\n    use super::super::journal;\n}";
        assert_eq!(imports(nested), ["crate::store::x", "crate::store::journal"]);
    }

    #[test]
    fn paths_in_strings_and_comments_are_ignored() {
        let text = "// use std::fs;\n/* std::env::x /* y */ std::fs::x */\nlet s = \"std::fs::x\";\n\
                    let r = r#\"std::fs::\"x\"#; let c = '\"'; let l: &'static str = \"a\\\"std::fs::x\";\n";
        assert_eq!(imports(text), Vec::<String>::new());
    }

    #[test]
    fn lines_of_test_modules_count_as_tests() {
        let source = SourceFile::new(
            "crates/store/src/x.rs",
            "fn a() {}\n#[cfg(test)]\nmod tests {\n    x\n}\nfn b() {}\n",
        );
        let kinds: Vec<bool> = (1..=6).map(|line| source.kind(line) == LineKind::Test).collect();
        assert_eq!(kinds, [false, true, true, true, true, false]);
        assert_eq!(SourceFile::new("crates/store/src/x/tests.rs", "x").kind(1), LineKind::Test);
        assert_eq!(SourceFile::new("crates/store/src/x/tests/y.rs", "x").kind(1), LineKind::Test);
    }

    #[test]
    fn each_forbidden_import_is_reported() {
        let table = [
            ("crates/model/src/x.rs", "use std::fs::File;"),
            ("crates/model/src/x.rs", "use std::time::SystemTime;"),
            ("crates/lang/src/x.rs", "use std::fs;"),
            ("crates/store/src/x.rs", "use std::process::Command;"),
            ("src/actor/x.rs", "fn f() { println!(); }"),
            ("src/actor/x.rs", "fn f() { let x = clap::x(); }"),
            ("src/runtime/x.rs", "use reqwest::Client;"),
            ("src/plugin/x.rs", "use crate::actor::supervisor::Supervisor;"),
            ("src/plugin/x.rs", "use crate::store;"),
            ("src/plugin/x.rs", "use raymond_store::fault;"),
            ("src/actor/x.rs", "use crate::engine::Engine;"),
            ("src/serve/x.rs", "use raymond_agents::child::Child;"),
            ("src/plugin/x.rs", "use crate::engine::Engine;"),
        ];
        for (path, text) in table {
            let source = SourceFile::new(path, text);
            let found = source.imports();
            let bites = |(line, import): &(usize, Vec<String>)| {
                table::offence(&source, *line, import).is_some()
            };
            assert!(found.iter().any(bites), "{path}: `{text}` was let through: {found:?}");
        }
    }
}
