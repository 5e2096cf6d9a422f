//! The inputs that the fuzz targets begin with: samples and recorded streams of this repository.
//!
//! They are not copied. `fuzz/run` writes them out as a corpus for `cargo fuzz`.

use std::path::{Path, PathBuf};

/// The length of the longest input, in bytes. Longer files are left out, because a change in them rarely
/// matters.
const MAX_SEED_LENGTH: usize = 12 * 1024;

/// Words that have a meaning in one of the languages, and empty texts where words are expected.
pub(crate) const WORDS: [&str; 64] = [
    "<goto>",
    "</goto>",
    "<result>",
    "</result>",
    "<fork next=\"A.md\">",
    "<call return=\"B.md\">",
    "<ask",
    "each='",
    "{{",
    "}}",
    "{{result}}",
    "${",
    "$${",
    "}",
    "---\n",
    "\n---\n",
    "- ",
    ": ",
    "\n  ",
    "{",
    "[",
    "]",
    "(",
    ")",
    "\"",
    "'",
    "\\",
    "\\u0000",
    "\\ud800",
    "\u{0}",
    "\u{feff}",
    "\u{202e}",
    "\u{2028}",
    "é",
    "𝄞",
    "&a ",
    "*a",
    "!!x ",
    "? ",
    "|\n",
    ">-\n",
    "#",
    ";",
    "null",
    "true",
    "-1",
    "1e999",
    "18446744073709551616",
    "0x10",
    ".nan",
    "==",
    "=>",
    ".map(x => x)",
    ".length",
    "?.",
    "(state s",
    "(send a (x))",
    "(await",
    "(workflow w",
    "\"type\":\"result\"",
    "\"total_cost_usd\":-1",
    "\"seq\":1",
    "\r",
    "\n",
];

/// Settings as git lists them.
const GIT_CONFIGS: [&str; 4] = [
    "core.repositoryformatversion\n0\0core.bare\nfalse\0remote.origin.url\ngit@x:y.git\0",
    "filter.e\"=.f.clean\nid > pwned; cat\0filter.e.smudge\na\nb\0filter.e.required\0",
    "includeif.onbranch:**.path\n~/x\0include.path\ny\0",
    "credential.https://x.helper\n!id\0hook.x.command\na\tb\n\0",
];

/// Returns the first inputs of a target.
pub(crate) fn of(target: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = if root.join("workflows").is_dir() { root.to_owned() } else { root.join("..") };
    let mut files = Vec::new();
    for folder in ["workflows", "examples", "tests/fixtures"] {
        walk(&root.join(folder), &mut files);
    }
    files.sort();
    let is = |path: &Path, ending: &str| path.to_string_lossy().ends_with(ending);
    let whole = |endings: &[&str]| -> Vec<Vec<u8>> {
        let wanted = files.iter().filter(|path| endings.iter().any(|ending| is(path, ending)));
        wanted.filter_map(|path| std::fs::read(path).ok()).collect()
    };
    let lines = |ending: &str, part: &str| -> Vec<Vec<u8>> {
        let read = whole(&[ending]);
        let lines = read.iter().flat_map(|text| text.split(|&byte| byte == b'\n'));
        let lines = lines.filter(|line| String::from_utf8_lossy(line).contains(part));
        lines.map(<[u8]>::to_vec).collect()
    };
    let bytes = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    let mut seeds: Vec<Vec<u8>> = match target {
        "tag" | "template" | "frontmatter" => whole(&[".md"]),
        "graph" => [whole(&["workflow.yaml"]), bytes(&GRAPHS)].concat(),
        "program" => [whole(&[".lisp"]), bytes(&PROGRAMS)].concat(),
        "replies" => whole(&["replies.yaml"]),
        "expression" => bytes(&EXPRESSIONS),
        "record" => {
            let stored = ["journal.jsonl", "every-event.jsonl"];
            [stored.map(|file| lines(file, "\"seq\"")).concat(), bytes(&RECORDS)].concat()
        }
        "inbox" => bytes(&COMMANDS),
        "stream" => lines(".jsonl", "\"type\""),
        "git_config" => bytes(&GIT_CONFIGS),
        _ => Vec::new(),
    };
    seeds.retain(|seed| seed.len() <= MAX_SEED_LENGTH);
    seeds.dedup();
    seeds
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { walk(&path, files) } else { files.push(path) }
    }
}

const GRAPHS: [&str; 4] = [
    "name: g\nversion: \"1\"\ndescription: d\nentry_preconditions: []\ninitial_state: { known: 1 }\nstart_node: a\nnodes:\n  a:\n    type: action\n    actions:\n      - { type: set_variable, name: known, value: \"${known + 1}\" }\n    on_success: done\nendings:\n  done: { type: success, message: Done }\n",
    "name: g\nversion: \"1\"\ndescription: d\ninitial_state: {}\nstart_node: a\nnodes:\n  a:\n    type: conditional\n    condition: { type: expression, expression: \"known == 1\" }\n    branches: { true: done, false: failed }\nendings:\n  done: { type: success, message: Done }\n  failed: { type: error, message: Failed }\n",
    "name: g\nversion: \"1\"\ndescription: d\ninitial_state: {}\nstart_node: a\nnodes:\n  a: { type: reference, document: lib/git.md, section: Clone, next_node: done }\nendings: { done: { type: success, message: x } }\n",
    "name: &n g\nnodes: [a, *n, {b: !!x c}]\nstart_node: |\n  a\n",
];

const PROGRAMS: [&str; 4] = [
    "(workflow w (roles (a) (b))\n(state s\n(send a (text \"Do it.\") :as r)\n(await (answered r) :timeout 5m :on-timeout late)\n(goto done)))",
    "(workflow w (metadata (description \"d\")) (roles (a :model opus)) (state s (ask a \"x\") (if (= 1 2) (goto t) (end))) (state t (end)))",
    "(workflow w (roles (a)) (state s (signal \"k\" @label) (await (fact \"k\")) (end :result @context/x)))",
    "; a comment\n(workflow \"w\" (roles) #| block |# (state s))",
];

const EXPRESSIONS: [&str; 12] = [
    "a.b[0] + n * 2 >= 7 && !(s == 'x')",
    "list.map(x => x * 2).filter(x => x > 2).join(', ')",
    "a?.b?.[4]?.c ?? 'nothing'",
    "s.toUpperCase().replace('A', \"b\").split(', ')[1].length",
    "n > 3 ? { ok: true, of: [n, ...list] } : null",
    "list.reduce((sum, x) => sum + x, 0) % 4 === 2",
    "`text ${n} and ${s}`",
    "Object.keys(a).includes('b') || typeof n == 'number'",
    "list.sort().slice(-2).concat([n])",
    "Clone ${s} into ${a.b[2]}, $${not} this",
    "${list.map(x => `${x}!`).join(' ')}",
    "-n ** 2 / 0",
];

const RECORDS: [&str; 6] = [
    r#"{"seq":7,"at":"2026-01-15T14:30:22.123Z","event":"command_received","id":"a","command":{"command":"stop"},"crc":"00000000"}"#,
    r#"{"seq":1,"at":"2026-01-15T14:30:22.123Z","event":"run_paused","pause":{"reason":"interrupted"},"crc":"89abcdef"}"#,
    r#"{"seq":2,"at":"2026-01-15T14:30:22.123Z","more":true,"event":"limit_reached","until":"2026-01-15T15:00:00.000Z","message":"m","crc":"89abcdef"}"#,
    r#"{"seq":3,"at":"2026-01-15T14:30:22.123Z","event":"cost_counted","agent":"main","step":2,"turn":0,"cost_usd":0.25,"crc":"89abcdef"}"#,
    r#"{"format":2,"seq":4,"at":"2026-01-15T14:30:22.123Z","event":"turn_failed","agent":"main.1","step":2,"turn":1,"state":"START.md","cause":"crash","message":"m","cost_usd":0.0,"counts":true,"crc":"89abcdef"}"#,
    r#"{"format":2,"seq":5,"at":"2026-01-15T14:30:22.123Z","event":"step_finished","agent":"main","step":1,"turn":0,"state":"START.md","transition":{"tag":"goto","target":"NEXT.md"},"cost_usd":0.01,"session_id":"s","crc":"89abcdef"}"#,
];

const COMMANDS: [&str; 4] = [
    r#"{"command":"stop"}"#,
    r#"{"command":"answer","node":"review","text":"yes"}"#,
    r#"{"command":"answer","agent":"main.2","node":"review","text":"ü \u2028"}"#,
    r#"{"command":"answer","agent":"main","step":3,"node":"n","text":""}"#,
];
