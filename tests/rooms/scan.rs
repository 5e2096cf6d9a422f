//! Reads a source file as far as the table needs it: its code without comments and strings, the paths it
//! imports, and the lines that are compiled only for tests.

use std::path::Path;
use std::sync::LazyLock;

/// The builds that a line is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    Program,
    Test,
}

/// A source file.
pub(super) struct SourceFile {
    /// The path from the root of the project, with `/`.
    pub(super) path: String,
    pub(super) text: String,
    /// The text with blanks in place of comments and strings.
    pub(super) code: String,
    /// The first and the last line of each item under `#[cfg(test)]`.
    test_blocks: Vec<(usize, usize)>,
}

/// The crates by the names that `src/lib.rs` gives them.
const ALIASES: [(&str, &str); 6] = [
    ("domain", "model"),
    ("language", "lang"),
    ("store", "store"),
    ("process", "agents"),
    ("world", "world"),
    ("engine", "engine"),
];

/// The modules of crates that `src/lib.rs` exports beside the crates, with their crates.
const EXPORTED_MODULES: [(&str, &str); 4] =
    [("fault", "store"), ("plain_file", "store"), ("proof", "store"), ("state_kind", "model")];

/// All files of `src/` and of the crates, sorted.
pub(super) static SOURCES: LazyLock<Vec<SourceFile>> = LazyLock::new(sources);

fn sources() -> Vec<SourceFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let crates = std::fs::read_dir(root.join("crates")).expect("the crates");
    let mut folders: Vec<_> =
        crates.map(|entry| entry.expect("an entry").path().join("src")).collect();
    folders.push(root.join("src"));
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source file");
                let inside = path.strip_prefix(root).expect("it is below the root");
                found.push(SourceFile::new(&inside.to_string_lossy().replace('\\', "/"), &text));
            }
        }
    }
    assert!(found.len() > 50, "only {} sources were found", found.len());
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

impl SourceFile {
    pub(super) fn new(path: &str, text: &str) -> Self {
        let code = without_words(text);
        let starts = code.match_indices("#[cfg(test)]").map(|(at, _)| at);
        let block = |start: usize| {
            let end = end_of_item(&code, start + "#[cfg(test)]".len());
            (line_at(&code, start), line_at(&code, end))
        };
        let test_blocks = starts.map(block).collect();
        Self { path: path.to_owned(), text: text.to_owned(), code, test_blocks }
    }

    /// Returns the crate, or the folder below `src/`, or the name of the file itself.
    pub(super) fn room(&self) -> &str {
        let first = self.inside().split('/').next().unwrap_or_default().trim_end_matches(".rs");
        self.own_crate().unwrap_or(first)
    }

    /// Returns the crate below `crates/` that it is in.
    fn own_crate(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// Returns the path below `src/`.
    fn inside(&self) -> &str {
        self.path.split_once("src/").map_or(&*self.path, |(_, inside)| inside)
    }

    /// Returns a path through a crate as one through its room.
    fn through_room(&self, mut path: Vec<String>) -> Vec<String> {
        let Some(first) = path.first().cloned() else { return path };
        if let Some(named) = first.strip_prefix("raymond_") {
            path.splice(..1, ["crate", named].map(str::to_owned));
        } else if first == "crate" {
            let second = path.get(1);
            let find = |names: &[(&str, &'static str)]| {
                names.iter().find(|(name, _)| second.is_some_and(|s| s == name)).map(|(_, to)| *to)
            };
            if let Some(own) = self.own_crate() {
                path.insert(1, own.to_owned());
            } else if let Some(room) = find(&ALIASES) {
                room.clone_into(&mut path[1]);
            } else if let Some(room) = find(&EXPORTED_MODULES) {
                path.insert(1, room.to_owned());
            }
        }
        path
    }

    /// Returns the kind of a line, counted from 1.
    pub(super) fn kind(&self, line: usize) -> LineKind {
        let own = self.path.rsplit('/').next().unwrap_or_default();
        let in_tests = self.path.split('/').any(|folder| folder == "tests");
        if in_tests || own == "tests.rs" || own.ends_with("_tests.rs") {
            return LineKind::Test;
        }
        if self.test_blocks.iter().any(|(first, last)| (*first..=*last).contains(&line)) {
            LineKind::Test
        } else {
            LineKind::Program
        }
    }

    /// Returns the path of its module, beginning with its room, such as `store::fault`.
    pub(super) fn place(&self) -> String {
        self.through_room(self.module())[1..].join("::")
    }

    /// Returns the module that this file is, as a path in the crate.
    fn module(&self) -> Vec<String> {
        let parts = self.inside().trim_end_matches(".rs").split('/');
        let parts = parts.filter(|part| !matches!(*part, "mod" | "lib" | "main"));
        std::iter::once("crate").chain(parts).map(str::to_owned).collect()
    }

    /// Returns each path that leads out of the module, with its line: imports, paths in code, macros that
    /// print.
    pub(super) fn imports(&self) -> Vec<(usize, Vec<String>)> {
        let mut found = Vec::new();
        let bytes = self.code.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let starts = is_word(bytes[at]) && (at == 0 || !is_word(bytes[at - 1]));
            if !starts {
                at += 1;
                continue;
            }
            let rest = &self.code[at..];
            let is_use = word(rest) == "use";
            let length =
                if is_use { rest.find(';').unwrap_or(rest.len()) } else { path_length(rest) };
            let length = length.max(word(rest).len());
            let within_path = self.code[..at].trim_end().ends_with([':', '.']);
            if is_use {
                let mut paths = Vec::new();
                flatten(&[], rest["use".len()..length].trim(), &mut paths);
                for path in paths {
                    found.push((line_at(&self.code, at), self.resolve(at, path)));
                }
            } else if !within_path && counts(rest, length) {
                let path = segments(&rest[..length]);
                found.push((line_at(&self.code, at), self.resolve(at, path)));
            }
            at += length;
        }
        found
    }

    /// Returns a path from the crate's root, for a path that stands at this offset.
    fn resolve(&self, at: usize, path: Vec<String>) -> Vec<String> {
        let relative = |part: &String| matches!(part.as_str(), "super" | "self");
        let stands = |first: &String| !relative(first) && (path.len() == 1 || is_a_crate(first));
        if path.first().is_none_or(stands) {
            return self.through_room(path);
        }
        let mut place = self.module();
        place.extend(std::iter::repeat_n("block".to_owned(), self.modules_around(at)));
        let ups = path.iter().take_while(|part| relative(part)).filter(|part| *part == "super");
        place.truncate(place.len().saturating_sub(ups.count()).max(1));
        place.extend(path.iter().skip_while(|part| relative(part)).cloned());
        self.through_room(place)
    }

    /// Returns the number of `mod name { … }` of this file that contain an offset.
    fn modules_around(&self, at: usize) -> usize {
        let opens = self.code.match_indices("mod ").filter(|(start, _)| {
            let before = self.code[..*start].bytes().next_back();
            let name = word(self.code[start + 4..].trim_start());
            let after = self.code[start + 4..].trim_start()[name.len()..].trim_start();
            let is_block = before.is_none_or(|byte| !is_word(byte)) && after.starts_with('{');
            is_block && *start < at && at < end_of_item(&self.code, *start)
        });
        opens.count()
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn word(text: &str) -> &str {
    let end = text.bytes().position(|byte| !is_word(byte)).unwrap_or(text.len());
    &text[..end]
}

/// Returns the length of the path `a::b::c` at the beginning of a text.
fn path_length(text: &str) -> usize {
    let mut length = word(text).len();
    while let Some(rest) = text[length..].strip_prefix("::") {
        match word(rest) {
            "" => break,
            next => length += 2 + next.len(),
        }
    }
    length
}

fn segments(path: &str) -> Vec<String> {
    path.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// Returns whether the table applies to a path of this length: one with several parts that begins with a
/// module or a crate, or a macro that prints.
fn counts(text: &str, length: usize) -> bool {
    let path = &text[..length];
    let lower = path.starts_with(|c: char| c.is_lowercase());
    let prints = matches!(path, "println" | "print" | "eprintln" | "eprint" | "dbg");
    let first = word(path);
    (prints && text[length..].starts_with('!'))
        || (lower && length > first.len() && is_a_crate(first))
}

/// Returns whether a name is the crate's own root, a crate of the language, or a dependency. Otherwise it is
/// a module of the same file.
fn is_a_crate(name: &str) -> bool {
    const CARGO: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
    let dependencies =
        CARGO.split("\n[").filter(|section| section.starts_with("workspace.dependencies]"));
    let mut keys = dependencies
        .flat_map(str::lines)
        .filter_map(|line| line.split_once('='))
        .map(|(key, _)| key.trim().replace('-', "_"));
    matches!(name, "std" | "core" | "alloc" | "crate" | "super" | "self")
        || keys.any(|key| key == name)
}

/// Splits `a::{b, c::d as e}` into `a::b` and `a::c::d`; `self` and `*` stand for the module.
fn flatten(prefix: &[String], tree: &str, into: &mut Vec<Vec<String>>) {
    let (path, list) = match tree.split_once('{') {
        Some((path, list)) => (path, Some(without_close(list.trim_end()))),
        None => (tree.split(" as ").next().unwrap_or(tree), None),
    };
    let mut full = prefix.to_vec();
    full.extend(segments(path).into_iter().filter(|part| part != "*"));
    if full.len() > 1 && full.last().is_some_and(|last| last == "self") {
        full.pop();
    }
    let Some(list) = list else {
        into.push(full);
        return;
    };
    let (mut depth, mut start) = (0, 0);
    for (at, c) in list.char_indices().chain([(list.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = list[start..at].trim();
                if !part.is_empty() {
                    flatten(&full, part, into);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

fn without_close(list: &str) -> &str {
    list.strip_suffix('}').unwrap_or(list)
}

/// Returns the end of the item that begins here: its `;`, or the end of its block.
fn end_of_item(code: &str, start: usize) -> usize {
    let mut depth = 0usize;
    for (at, c) in code[start..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth <= 1 => return start + at,
            '}' => depth -= 1,
            ';' if depth == 0 => return start + at,
            _ => {}
        }
    }
    code.len()
}

/// Returns the text with blanks in place of comments, strings and characters; lines stay where they are.
fn without_words(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let length = words_length(rest, code.bytes().next_back());
        let length = if length == 0 { char_length(rest) } else { length };
        let blank = words_length(rest, code.bytes().next_back()) > 0;
        for c in rest[..length].chars() {
            let kept = !blank || c == '\n';
            if kept { code.push(c) } else { code.extend(std::iter::repeat_n(' ', c.len_utf8())) }
        }
        rest = &rest[length..];
    }
    code
}

fn char_length(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

/// Returns the length of the comment, string or character at the beginning of a text; 0 if there is none.
fn words_length(text: &str, before: Option<u8>) -> usize {
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return block_comment(text);
    }
    if text.starts_with('"') {
        return quoted(text);
    }
    if before.is_none_or(|byte| !is_word(byte))
        && let Some(length) = raw_string(text)
    {
        return length;
    }
    if text.starts_with('\'') { character(text) } else { 0 }
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while at < text.len() {
        match &text.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] if depth == 1 => return at + 2,
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    text.len()
}

fn quoted(text: &str) -> usize {
    let mut escaped = true;
    for (at, c) in text.char_indices() {
        match c {
            _ if at == 0 => escaped = false,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn raw_string(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = rest.bytes().take_while(|&byte| byte == b'#').count();
    let body = rest[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let open = text.len() - body.len();
    Some(body.find(&close).map_or(text.len(), |end| open + end + close.len()))
}

/// Returns the length of a character such as `'"'` or `'\n'`; a lifetime is not a character.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, c))) => {
            let after = at + c.len_utf8();
            text[after..].find('\'').map_or(0, |end| after + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 0,
    }
}

fn line_at(code: &str, offset: usize) -> usize {
    code[..offset].matches('\n').count() + 1
}
