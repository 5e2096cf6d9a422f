//! The bodies of the fuzz targets: what is done with an input, and what must hold then. There is one function
//! for each target.
//!
//! The targets of `cargo fuzz` and the tests that run without a nightly compiler share them. All of them take
//! any bytes. A language reads text, so bytes that are not UTF-8 are replaced first.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use raymond::domain::event::RunCommand;
use raymond::domain::git_exchange::{GitSetting, read_git_config};
use raymond::language::diagnostic::Diagnostic;
use raymond::language::expression::{Expression, Fuel, NameScope, ValueTemplate};
use raymond::language::graph::profile::GraphProfile;
use raymond::language::graph::read::read as read_graph;
use raymond::language::graph::vocabulary::GraphVocabulary;
use raymond::language::program::read::read as read_program;
use raymond::language::prompt::document;
use raymond::language::replies::{self, ScriptedReplies};
use raymond::language::{tag, template, yaml};
use raymond::process::claude::stream::StreamParser;
use raymond::process::dialogue::Dialogue;
use raymond::store::record;
use serde_json::Value;

/// A target: its name and its body.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// The fuzz targets.
#[allow(dead_code, reason = "a target of cargo fuzz uses its own body only")]
pub(crate) const TARGETS: [Target; 11] = [
    ("tag", tag),
    ("template", template),
    ("frontmatter", frontmatter),
    ("graph", graph),
    ("program", program),
    ("expression", expression),
    ("replies", replies),
    ("record", journal_record),
    ("inbox", inbox_entry),
    ("stream", stream),
    ("git_config", git_config),
];

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Checks that tags stand in order inside the text, and that no more are read than are written.
pub(crate) fn tag(bytes: &[u8]) {
    let text = text(bytes);
    let reading = tag::find(&text);
    assert!(reading.tags.len() <= tag::MAX_TAGS, "more tags than are read");
    let written = tag::written(&text);
    assert!(written.len() >= reading.tags.len(), "a tag that is not written");
    let mut end = 0;
    for (place, found) in written.iter().enumerate() {
        let span = &found.span;
        assert!(end <= span.start && text[span.clone()].starts_with('<'), "{span:?}");
        end = span.end;
        if let Some(read) = reading.tags.get(place) {
            assert_eq!(read, &found.transition, "the same tag, read and written");
        }
    }
}

/// Checks that placeholders without a value stay as they are, and that values are not filled again.
pub(crate) fn template(bytes: &[u8]) {
    let text = text(bytes);
    let kept = template::fill(&text, |_| None);
    assert_eq!(kept.text, text, "nothing is known, so nothing changes");
    let mut places = Vec::new();
    for (name, place) in template::placeholders(&text) {
        assert!(text[place..].starts_with("{{"), "{name} at {place}");
        assert!(kept.unknown.iter().any(|(unknown, _)| unknown == name), "{name} is reported");
        places.push(place);
    }
    assert!(places.is_sorted(), "{places:?}");
    let names: Vec<String> = kept.unknown.into_iter().map(|(name, _)| name).collect();
    let filled = template::fill(&text, |name| Some(format!("{{{{{name}}}}}").into()));
    assert!(filled.unknown.is_empty(), "all are known");
    let again = template::fill(&filled.text, |_| None);
    let found: Vec<String> = again.unknown.into_iter().map(|(name, _)| name).collect();
    assert!(names.iter().all(|name| found.contains(name)), "{names:?} and {found:?}");
}

/// Checks that each mistake has its place in the file, and that a document without one is read.
pub(crate) fn frontmatter(bytes: &[u8]) {
    let text = text(bytes);
    let examined = document::examine(&text);
    examined.errors.all().iter().for_each(|error| assert_in_text(error, &text));
    assert_eq!(document::parse(&text).is_ok(), examined.errors.is_empty(), "the same judgement");
    assert!(text.ends_with(&*examined.document.body), "the prompt is the end of the file");
}

/// Checks that a graph is either read, or has an error with a reason and a place. A second reading gives
/// the same.
pub(crate) fn graph(bytes: &[u8]) {
    static VOCABULARY: LazyLock<GraphVocabulary> = LazyLock::new(GraphVocabulary::new);
    let text = text(bytes);
    let source =
        BTreeMap::from([("lib/git.md".to_owned(), "# Git\n\n## Clone\n\nIt.\n".to_owned())]);
    let read = |profile| read_graph("g.yaml", None, &text, &VOCABULARY, &source, profile);
    let reading = read(GraphProfile::Lenient);
    assert_judged(reading.graph.is_some(), &reading.diagnostics, &text);
    assert_eq!(read(GraphProfile::Lenient).diagnostics, reading.diagnostics, "the same again");
    let strict = read(GraphProfile::Seed);
    assert_judged(strict.graph.is_some(), &strict.diagnostics, &text);
    assert!(strict.graph.is_none() || reading.graph.is_some(), "strict, but not lenient");
}

/// Checks that a program is either read, or has an error with a reason and a place. A second reading gives
/// the same.
pub(crate) fn program(bytes: &[u8]) {
    let text = text(bytes);
    let source = BTreeMap::from([("review/START.md".to_owned(), "Review it.".to_owned())]);
    let reading = read_program("p.lisp", &text, &source);
    assert_judged(reading.program.is_some(), &reading.diagnostics, &text);
    assert_eq!(read_program("p.lisp", &text, &source).diagnostics, reading.diagnostics);
}

/// Checks that an expression either has a flaw with a place, or can be evaluated within its bounds.
pub(crate) fn expression(bytes: &[u8]) {
    struct Names(BTreeMap<&'static str, Value>);
    impl NameScope for Names {
        fn root(&self, name: &str) -> Option<&Value> {
            self.0.get(name)
        }
    }
    let text = text(bytes);
    let names = Names(BTreeMap::from([
        ("a", serde_json::json!({ "b": [1, 2.5, "x", null, { "c": true }] })),
        ("n", serde_json::json!(7)),
        ("s", serde_json::json!("a text, é")),
        ("list", serde_json::json!([3, 1, 2])),
    ]));
    let bounds = Fuel { steps: 5_000, text: 4_096, list: 256 };
    match Expression::parse(&text) {
        Ok(read) => {
            let mut fuel = bounds;
            let value = read.evaluate(&names, &mut fuel);
            assert!(fuel.steps <= bounds.steps, "steps are only spent");
            let again = read.evaluate(&names, &mut { bounds });
            assert_eq!(again, value, "the same again");
        }
        Err(flaw) => {
            assert!(flaw.offset <= text.len() && !flaw.message.is_empty(), "{flaw:?}");
        }
    }
    match ValueTemplate::parse(&Value::String(text.to_string())) {
        Ok(read) => drop(read.fill(&names, &mut { bounds })),
        Err((flaw, _)) => assert!(flaw.offset <= text.len(), "{flaw:?}"),
    }
}

/// Checks that scripted replies are either read, or have a mistake with a place.
pub(crate) fn replies(bytes: &[u8]) {
    let text = text(bytes);
    let states = replies::states(&text);
    let (_, errors) = ScriptedReplies::examine(&text);
    errors.all().iter().for_each(|error| assert_in_text(error, &text));
    if errors.is_empty() {
        assert!(states.iter().all(|(_, at)| at.line >= 1 && at.column >= 1), "{states:?}");
    }
}

/// Checks that a record that is read can be written and read back unchanged, and that a line with a wrong
/// byte is refused.
pub(crate) fn journal_record(bytes: &[u8]) {
    let text = text(bytes);
    for seq in [1, 2] {
        if let Ok(line) = record::check(bytes, seq) {
            drop(record::decode(line));
        }
    }
    // Most inputs would end at the checksum, so the content is checked without it, too.
    let Ok(read) = record::decode(&text) else { return };
    let line = record::encode(&read).expect("what was read can be written");
    let again = record::check(line.as_bytes(), read.seq).and_then(record::decode);
    assert_eq!(again.as_ref(), Ok(&read), "{line}");
    let place = bytes.len() % line.len();
    let mut wrong = line.into_bytes();
    wrong[place] ^= 1;
    assert!(record::check(&wrong, read.seq).and_then(record::decode).is_err(), "byte {place}");
}

/// Checks that a command that is read can be written and read back unchanged.
pub(crate) fn inbox_entry(bytes: &[u8]) {
    let Ok(command) = serde_json::from_slice::<RunCommand>(bytes) else { return };
    let written = serde_json::to_vec(&command).expect("what was read can be written");
    let again: RunCommand =
        serde_json::from_slice(&written).expect("what was written is a command");
    assert_eq!(again, command);
}

/// Checks that the sizes of the reads change nothing, and that no total is negative.
pub(crate) fn stream(bytes: &[u8]) {
    let read = |size: usize| {
        let mut stream = StreamParser::default();
        for chunk in bytes.chunks(size.max(1)) {
            stream.feed(chunk).expect("no line is that long");
        }
        stream.end();
        stream
    };
    let whole = read(bytes.len());
    let parts = read(1 + bytes.len() % 61);
    let seen = |stream: &StreamParser| {
        let progress = stream.progress();
        let counts = (progress.events, progress.results, stream.garbage.clone());
        let result = (progress.result.clone(), progress.remainder());
        (counts, result, progress.taken().clone(), progress.has_unknown_cost())
    };
    assert_eq!(seen(&whole), seen(&parts));
    let mut cut = whole;
    cut.progress_mut().cut_off();
    let taken = cut.progress().taken();
    assert!(taken.cost >= raymond::domain::money::Usd::ZERO, "{taken:?}");
}

/// Checks that a file is read if and only if it has no errors, and that each diagnostic has a place in the
/// file.
fn assert_judged(is_read: bool, diagnostics: &[Diagnostic], text: &str) {
    assert_eq!(is_read, !diagnostics.iter().any(Diagnostic::is_error), "{diagnostics:#?}");
    let lines = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count() as u64 + 1;
    for found in diagnostics {
        assert!((1..=lines).contains(&found.line) && found.column >= 1, "{found} of {lines}");
        assert!(!found.message.is_empty() && !found.code.is_empty(), "{found}");
    }
}

fn assert_in_text(error: &yaml::Error, text: &str) {
    let lines = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count() as u64 + 1;
    assert!((1..=lines).contains(&error.at.line), "{error} of {lines} lines");
    assert!(error.at.column >= 1 && !error.message.is_empty(), "{error}");
}

/// Checks that the settings in a list of git are the same when they are listed again, and that one which names a program
/// is not plain.
pub(crate) fn git_config(bytes: &[u8]) {
    let settings = read_git_config(bytes);
    let mut listed = Vec::new();
    for GitSetting { key, value } in &settings {
        listed.extend_from_slice(key);
        listed.extend(value.iter().flat_map(|value| [b"\n", &value[..]].concat()));
        listed.push(0);
    }
    assert_eq!(read_git_config(&listed), settings, "listed again");
    for setting in &settings {
        assert!(setting.neutral().is_none() || !setting.is_plain(), "{setting:?}");
        assert!(setting.included().is_none() || !setting.is_plain(), "{setting:?}");
    }
}
