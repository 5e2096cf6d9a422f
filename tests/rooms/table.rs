//! The table of docs/architecture.md, one row for each room, and the judgement of an import.
//!
//! A crate names the crates that it may use in its `Cargo.toml`, so that the table leaves them to the compiler.

use std::sync::LazyLock;

use super::scan::{LineKind, SourceFile};

/// The imports that a room may use.
struct RoomRow {
    room: String,
    /// The rooms and modules of rooms it may use; `None` for a crate.
    rooms: Option<Vec<String>>,
    /// The paths in `std` it must not use.
    never: Vec<String>,
}

/// The parts of the standard library that touch the world outside.
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

/// The same parts without the clock.
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

/// The paths that print; only the command line and the logger use them.
const PRINTS: &[&str] = &["println", "print", "eprintln", "eprint", "dbg", "std::io::stdout"];

/// The paths that read the environment of this process.
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

/// The page with the table.
const PAGE: &str = include_str!("../../docs/architecture.md");

/// The head of the table.
const HEAD: &str = "| room | rooms it may use |";

static TABLE: LazyLock<Vec<RoomRow>> = LazyLock::new(|| {
    let rows = PAGE.lines().skip_while(|line| !line.starts_with(HEAD)).skip(2);
    rows.take_while(|line| line.starts_with('|')).map(RoomRow::read).collect()
});

impl RoomRow {
    fn read(line: &str) -> Self {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [room, rooms, never] = cells[..] else { panic!("three cells: {line}") };
        let never = match never {
            "everything outside" => owned(WORLD),
            "everything outside but the clock" => owned(WORLD_BUT_TIME),
            "the environment" => owned(ENVIRONMENT),
            listed => names(listed),
        };
        let room = names(room).pop().expect("the room's name in backticks");
        let rooms = (rooms != "`Cargo.toml`").then(|| names(rooms));
        Self { room, rooms, never }
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Returns the names in backticks in a cell.
fn names(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The crates of the language itself; everything in them is allowed unless a row forbids it.
const LANGUAGE: &[&str] = &["std", "core", "alloc"];

/// The crates that only these rooms of the package use.
const OWNED_CRATES: [(&[&str], &[&str]); 4] = [
    (&["clap", "ratatui", "crossterm", "rustix"], &["cli"]),
    (&["console"], &["cli", "plugin"]),
    (
        &["reqwest", "rustls", "opentelemetry", "opentelemetry_otlp", "opentelemetry_sdk"],
        &["plugin"],
    ),
    (&["hyper", "hyper_util"], &["serve"]),
];

/// Returns whether a room of the package may use another crate; a crate of the workspace names its own.
fn may_use(row: &RoomRow, other: &str) -> bool {
    let owners = OWNED_CRATES.iter().find(|(crates, _)| crates.contains(&other));
    row.rooms.is_none() || owners.is_none_or(|(_, rooms)| rooms.contains(&&*row.room))
}

/// Returns the reason why a room must not have this import; `None` if it may.
pub(super) fn offence(source: &SourceFile, line: usize, path: &[String]) -> Option<String> {
    let import = path.join("::");
    let first = path.first()?.as_str();
    let place = source.place();
    let Some(row) = TABLE.iter().find(|row| is_within(&place, &[&row.room])) else {
        return outside_the_table(source, &import);
    };
    let why = format!("the room `{}` may not use `{import}`", row.room);
    let test = source.kind(line) == LineKind::Test;
    let allowed = if first == "crate" {
        opens(row, &path[1..])
    } else if is_within(&import, PRINTS) {
        false
    } else if LANGUAGE.contains(&first) {
        test || !is_within(&import, &row.never)
    } else {
        may_use(row, first)
    };
    (!allowed).then_some(why)
}

/// Judges an import of a file outside of the rooms of the table. The command line may use all rooms, and only
/// `main.rs` may use the command line.
fn outside_the_table(source: &SourceFile, import: &str) -> Option<String> {
    if !["cli", "main", "lib"].contains(&source.room()) {
        return Some(format!("`{}` is not a room of the table", source.room()));
    }
    let is_cli = import == "crate::cli" || import.starts_with("crate::cli::");
    (is_cli && source.room() != "cli").then(|| format!("only main.rs may use `{import}`"))
}

/// Returns whether a path in this workspace is in the room itself or in a room or module of its row.
fn opens(row: &RoomRow, path: &[String]) -> bool {
    let Some(rooms) = &row.rooms else { return true };
    path.first().is_none_or(|room| row.room == *room) || is_within(&path.join("::"), rooms)
}

fn is_within(path: &str, modules: &[impl AsRef<str>]) -> bool {
    modules.iter().any(|module| {
        path.strip_prefix(module.as_ref())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    })
}
