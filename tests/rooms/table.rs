//! The table itself: a row a room, and the judgement of one import.
//!
//! A row says what a room may import: which rooms, which crates, and what of the standard library
//! it must leave alone. An entry like `language::source` opens that module and no other.

use super::scan::{Kind, Source};

/// What a room may import.
struct Row {
    room: &'static str,
    rooms: &'static [&'static str],
    crates: &'static [&'static str],
    never: &'static [&'static str],
}

/// What of the standard library touches the world outside.
const WORLD: &[&str] = &[
    "std::fs",
    "std::env",
    "std::process",
    "std::net",
    "std::thread",
    "std::os",
    "std::io",
    "std::time::SystemTime",
    "std::time::Instant",
    "std::path::Path::exists",
];

/// The same without the clock.
const WORLD_BUT_TIME: &[&str] = &[
    "std::fs",
    "std::env",
    "std::process",
    "std::net",
    "std::thread::spawn",
    "std::thread::sleep",
    "std::os",
    "std::io",
];

/// What prints: the command line's business, and the logger's.
const PRINTS: &[&str] = &["println", "print", "eprintln", "eprint", "dbg", "std::io::stdout"];

/// What asks the environment of this process.
const ENVIRONMENT: &[&str] = &[
    "std::env::var",
    "std::env::var_os",
    "std::env::vars",
    "std::env::vars_os",
    "std::env::args",
    "std::env::args_os",
    "std::env::current_dir",
    "std::io::stderr",
    "std::net",
];

const TABLE: &[Row] = &[
    // jiff reads and writes points in time there; the clock is the actors' to ask.
    Row {
        room: "domain",
        rooms: &[],
        crates: &["jiff", "schemars", "serde", "serde_json", "strum", "thiserror"],
        never: WORLD,
    },
    // jsonschema checks answers against the schemas of states; without its features it fetches nothing.
    Row {
        room: "language",
        rooms: &["domain"],
        crates: &[
            "granit_parser",
            "jsonschema",
            "pest",
            "pest_derive",
            "serde",
            "memchr",
            "shlex",
            "strsim",
            "strum",
            "regex",
            "schemars",
            "serde_json",
            "sha2",
            "thiserror",
            "unicode_width",
        ],
        never: WORLD,
    },
    Row {
        room: "store",
        rooms: &[
            "domain",
            "fault",
            "plain_file",
            "proof",
            "language::checksum",
            "language::source",
            "language::hint",
        ],
        crates: &[
            "crc32fast",
            "rustix",
            "serde",
            "serde_json",
            "sha2",
            "thiserror",
            "tracing",
            "uuid",
        ],
        never: &[
            "std::process::Command",
            "std::process::Child",
            "std::env",
            "std::io::stderr",
            "std::net",
        ],
    },
    Row {
        room: "process",
        rooms: &["domain", "fault", "plain_file", "proof"],
        crates: &[
            "jiff",
            "memchr",
            "rustix",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
            "tracing",
            "uuid",
        ],
        never: ENVIRONMENT,
    },
    // What graphs ask for: files, git, the web; programs are started by the room that owns that.
    Row {
        room: "world",
        rooms: &["domain", "fault", "plain_file", "process", "proof"],
        crates: &[
            "encoding_rs",
            "globset",
            "reqwest",
            "rustls",
            "rustls_native_certs",
            "serde",
            "serde_json",
            "serde_yaml",
            "sha2",
            "tokio",
            "webpki_roots",
            "yaml_edit",
        ],
        never: &["std::process::Command", "std::io::stderr", "std::io::stdout", "std::net"],
    },
    Row {
        room: "actor",
        rooms: &["domain", "fault", "language", "proof", "store", "process", "world"],
        crates: &["actix", "dashmap", "serde_json", "tokio", "tracing", "uuid"],
        never: WORLD_BUT_TIME,
    },
    Row {
        room: "plugin",
        rooms: &[
            "domain",
            "plain_file",
            "actor::message",
            "actor::registry",
            "actor::clock",
            "process::turn_transcript",
        ],
        crates: &[
            "actix",
            "async_trait",
            "console",
            "http",
            "indicatif",
            "jiff",
            "opentelemetry",
            "opentelemetry_http",
            "opentelemetry_otlp",
            "opentelemetry_sdk",
            "reqwest",
            "rustls",
            "schemars",
            "serde",
            "serde_json",
            "strum",
            "thiserror",
            "tokio",
            "tracing",
            "webpki_roots",
        ],
        never: &["std::env", "std::process", "std::net"],
    },
    // Puts the others together; nothing of it prints.
    Row {
        room: "runtime",
        rooms: &["domain", "language", "proof", "store", "process", "world", "actor", "plugin"],
        crates: &[
            "actix",
            "jiff",
            "serde_json",
            "similar",
            "thiserror",
            "tokio",
            "tracing",
            "uuid",
        ],
        never: &["std::process::Command", "std::net", "std::io::stderr", "std::io::stdout"],
    },
    // Failpoints: nothing in a build without the feature that the tests turn on. One of them reads a file.
    Row { room: "fault", rooms: &[], crates: &["rustix"], never: &["std::net", "std::thread"] },
    // Tells what raymond wrote from what others did.
    Row { room: "proof", rooms: &["language::checksum"], crates: &["hmac", "sha2"], never: WORLD },
    // Opens and replaces files where others can put something in their place.
    Row {
        room: "plain_file",
        rooms: &["fault"],
        crates: &["rustix", "thiserror"],
        never: &["std::env", "std::process", "std::net", "std::thread"],
    },
];

/// What a module that is compiled only for tests may use besides.
const FOR_TESTS: &[&str] = &["proptest", "roxmltree", "serde_json", "tempfile"];

/// The crates of the language itself; anything of them is allowed that no row forbids.
const LANGUAGE: &[&str] = &["std", "core", "alloc"];

/// Why a room must not have this import; `None` if it may.
pub(super) fn offence(source: &Source, line: usize, path: &[String]) -> Option<String> {
    let import = path.join("::");
    let first = path.first()?.as_str();
    let Some(row) = TABLE.iter().find(|row| row.room == source.room()) else {
        return outside_the_table(source, &import);
    };
    let why = format!("the room `{}` may not use `{import}`", row.room);
    let test = source.kind(line) == Kind::Test;
    let allowed = if first == "crate" {
        opens(row, &path[1..])
    } else if is_within(&import, PRINTS) {
        false
    } else if LANGUAGE.contains(&first) {
        test || !is_within(&import, row.never)
    } else {
        row.crates.contains(&first) || (test && FOR_TESTS.contains(&first))
    };
    (!allowed).then_some(why)
}

/// The command line may use all; nobody but `main.rs` may use it. There are no other rooms.
fn outside_the_table(source: &Source, import: &str) -> Option<String> {
    if !["cli", "main", "lib"].contains(&source.room()) {
        return Some(format!("`{}` is not a room of the table", source.room()));
    }
    let is_cli = import == "crate::cli" || import.starts_with("crate::cli::");
    (is_cli && source.room() != "cli").then(|| format!("only main.rs may use `{import}`"))
}

/// Whether a path in this crate is in the room itself or in what its row opens.
fn opens(row: &Row, path: &[String]) -> bool {
    let inside = path.join("::");
    path.is_empty()
        || path[0] == row.room
        || row.rooms.iter().any(|open| is_within(&inside, &[open]))
        || row.rooms.iter().any(|open| *open == path[0])
}

fn is_within(path: &str, modules: &[&str]) -> bool {
    modules.iter().any(|module| {
        path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    })
}
