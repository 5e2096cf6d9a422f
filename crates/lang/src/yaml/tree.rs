//! Builds the tree of a YAML text.
//!
//! All YAML files of a workflow are read here: frontmatter, manifests, scripted replies, schemas, graphs.
//!
//! A file with mistakes is read to its end, so the tree is built from the parser's events. Deserializing
//! into types would stop at the first mistake. The value of an alias is shared, but counted as a copy, so
//! that a few lines cannot become a tree that fills the memory.
//!
//! The meaning of a text is that of the core schema of YAML 1.2. It has no merge keys: `<<` is an ordinary key.

use std::collections::HashMap;
use std::sync::Arc;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use serde_json::Number;

use crate::diagnostic::quoted;
use crate::source::SourcePlace;
use crate::yaml::{YamlContent, YamlEntry, YamlScalar, YamlValue};

/// The largest nesting depth of lists and maps.
const MAX_DEPTH: usize = 64;

/// The bytes that a value counts besides its text.
const NODE_BYTES: usize = 16;

/// The largest size of a tree with its aliases written out, as a multiple of the longest text.
const MAX_GROWTH: usize = 8;

/// A kind of file that is YAML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct YamlFileKind {
    /// Its name in messages.
    name: &'static str,
    /// The longest text, in bytes.
    pub(crate) max_bytes: usize,
}

impl YamlFileKind {
    /// A graph.
    pub(crate) const GRAPH: Self = Self::new("graph");
    /// The head of a prompt.
    pub(crate) const FRONTMATTER: Self = Self::new("prompt's frontmatter");
    /// The manifest of a workflow.
    pub(crate) const MANIFEST: Self = Self::new("manifest");
    /// The form of an answer.
    pub(crate) const SCHEMA: Self = Self::new("schema");
    /// The answers of a person to the questions of a graph.
    pub(crate) const ANSWERS: Self = Self::new("list of answers");
    /// The test cases of a workflow.
    pub(crate) const CASES: Self = Self { name: "list of cases", max_bytes: 16 * 1024 * 1024 };
    /// What a user has set for all commands.
    pub(crate) const USER_CONFIG: Self = Self::new("configuration");
    /// A workflow in one file.
    pub(crate) const IMPORT: Self = Self { name: "workflow", max_bytes: 16 * 1024 * 1024 };
    /// The scripted replies of a workflow.
    pub(crate) const REPLIES: Self = Self { name: "list of replies", max_bytes: 16 * 1024 * 1024 };

    const fn new(name: &'static str) -> Self {
        Self { name, max_bytes: 1024 * 1024 }
    }
}

/// A mistake in the YAML itself.
#[derive(Debug)]
pub(crate) struct YamlFault {
    pub(crate) at: SourcePlace,
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

/// Reads a text. All duplicate keys and wrong tags are found; the first mistake of another kind ends the reading.
pub(crate) fn parse(kind: YamlFileKind, text: &str) -> (Option<YamlValue>, Vec<YamlFault>) {
    let YamlFileKind { name, max_bytes } = kind;
    if text.len() > max_bytes {
        let size = text.len();
        let message =
            format!("this is {size} bytes long, a {name} may have {max_bytes}; divide it");
        return (None, vec![fault(SourcePlace::START, message)]);
    }
    let options = granit_parser::options! {
        flow_nesting_limit: MAX_DEPTH + 1,
        block_nesting_limit: MAX_DEPTH + 1,
        emit_comments: false,
    };
    let parser = Parser::new_from_str_with_options(text, options);
    let mut builder =
        YamlBuilder { kind, parser, text, anchors: HashMap::new(), size: 0, faults: Vec::new() };
    let root = builder.document();
    let root = root.map_err(|fault| builder.faults.push(fault)).ok();
    (root, builder.faults)
}

struct YamlBuilder<'text> {
    kind: YamlFileKind,
    parser: Parser<'text, StrInput<'text>>,
    text: &'text str,
    /// The value of each anchor, and its size.
    anchors: HashMap<usize, (YamlValue, usize)>,
    size: usize,
    faults: Vec<YamlFault>,
}

type YamlResult<T> = Result<T, YamlFault>;

fn fault(at: SourcePlace, message: impl Into<String>) -> YamlFault {
    YamlFault { at, code: "WF001", message: message.into() }
}

fn place(span: &Span) -> SourcePlace {
    let (line, column) = (span.start.line(), span.start.col() + 1);
    SourcePlace { line: line.max(1) as u64, column: column as u64 }
}

fn syntax(error: &ScanError) -> YamlFault {
    let mark = error.marker();
    let at = SourcePlace { line: mark.line().max(1) as u64, column: mark.col() as u64 + 1 };
    let info = error.info();
    let hint = HINTS.iter().find(|(part, _)| info.contains(part)).map_or("", |(_, hint)| hint);
    fault(at, format!("this is not YAML: {info}{hint}"))
}

/// What helps against a message of the parser that has these words.
const HINTS: [(&str, &str); 5] = [
    (
        "mapping values are not allowed",
        "; put a text with `: ` in quotes, and write each key on its own line",
    ),
    ("parsing a flow mapping", "; put a text with `{`, `}` or `,` in quotes"),
    ("parsing a flow sequence", "; put a text with `[`, `]` or `,` in quotes"),
    (
        "anchor or alias",
        "; an entry of a list begins with `- `, and a text with `*` or `&` is put in quotes",
    ),
    ("unexpected character", "; put the text in quotes"),
];

impl<'text> YamlBuilder<'text> {
    fn next(&mut self) -> YamlResult<(Event<'text>, Span)> {
        match self.parser.next_event() {
            Some(event) => event.map_err(|error| syntax(&error)),
            None => Err(fault(SourcePlace::START, "this is not YAML: it ends too early")),
        }
    }

    fn document(&mut self) -> YamlResult<YamlValue> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => break,
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
                _ if root.is_some() => {
                    let name = self.kind.name;
                    let message =
                        format!("a second document begins here; a {name} is one document");
                    return Err(fault(place(&span), message));
                }
                event => root = Some(self.node(event, &span, 0)?),
            }
        }
        let nothing = YamlValue { at: SourcePlace::START, value: YamlContent::Null, written: None };
        Ok(root.unwrap_or(nothing))
    }

    fn node(&mut self, event: Event<'text>, span: &Span, depth: usize) -> YamlResult<YamlValue> {
        let at = place(span);
        if depth > MAX_DEPTH {
            let message = format!("this is nested too deeply; {MAX_DEPTH} levels are allowed");
            return Err(fault(at, message));
        }
        let before = self.size;
        self.size += NODE_BYTES;
        let mut written = None;
        let (value, anchor) = match event {
            Event::Alias(id) => return self.alias(id, at),
            Event::Scalar(text, style, anchor, tag) => {
                self.size += text.len();
                let value = self.scalar(&text, style, tag.as_deref(), span);
                if matches!(value, YamlContent::Bool(_) | YamlContent::Number(_)) {
                    written = Some(Arc::from(&*text));
                }
                (value, anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.core_tag(tag.as_deref(), "seq", span);
                (self.list(depth)?, anchor)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.core_tag(tag.as_deref(), "map", span);
                (self.map(depth)?, anchor)
            }
            _ => return Err(fault(at, "this is not YAML: a value is expected here")),
        };
        let node = YamlValue { at, value, written };
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), self.size - before));
        }
        Ok(node)
    }

    fn alias(&mut self, id: usize, at: SourcePlace) -> YamlResult<YamlValue> {
        let Some((node, size)) = self.anchors.get(&id) else {
            return Err(fault(at, "this alias contains itself; write it out"));
        };
        self.size = self.size.saturating_add(*size);
        if self.size > MAX_GROWTH * self.kind.max_bytes {
            let name = self.kind.name;
            let message =
                format!("the aliases up to here make the {name} too large; write out less");
            return Err(fault(at, message));
        }
        Ok(node.clone())
    }

    /// Reports a tag of a list or a mapping, unless it is the tag of its kind.
    fn core_tag(&mut self, tag: Option<&Tag>, kind: &str, span: &Span) {
        if let Some(tag) = tag.filter(|tag| tag.core_suffix() != Some(kind)) {
            self.meaningless(tag, span);
        }
    }

    /// Reports a tag without a meaning; the value is read without it.
    fn meaningless(&mut self, tag: &Tag, span: &Span) {
        if tag.original() != "!" {
            let message = format!("the tag `{}` has no meaning here; leave it out", tag.original());
            self.faults.push(fault(place(span), message));
        }
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: &Span,
    ) -> YamlContent {
        let core = tag.and_then(Tag::core_suffix);
        let is_plain = style == ScalarStyle::Plain;
        let resolved = match (core, tag) {
            (Some(core), _) => tagged(core, text).unwrap_or_else(|TagMismatch| {
                let message = format!("{} is not what the tag `!!{core}` says", quoted(text));
                self.faults.push(fault(place(span), message));
                None
            }),
            (None, Some(tag)) => {
                self.meaningless(tag, span);
                None
            }
            (None, None) if is_plain => plain(text),
            (None, None) => None,
        };
        if let Some(value) = resolved {
            return value;
        }
        let range = span.byte_range().unwrap_or_default();
        let range = if self.text.get(range.clone()).is_some() { range } else { 0..0 };
        YamlContent::Text(YamlScalar { text: text.into(), style, range })
    }

    fn list(&mut self, depth: usize) -> YamlResult<YamlContent> {
        let mut list = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(YamlContent::List(Arc::new(list))),
                (event, span) => list.push(self.node(event, &span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> YamlResult<YamlContent> {
        let mut map: Vec<YamlEntry> = Vec::new();
        let mut known: HashMap<Arc<str>, u64> = HashMap::new();
        loop {
            let (at, key) = match self.next()? {
                (Event::MappingEnd, _) => return Ok(YamlContent::Map(Arc::new(map))),
                (Event::Scalar(text, ..), span) => {
                    self.size += text.len();
                    (place(&span), Arc::from(&*text))
                }
                (_, span) => {
                    let message = "expected a key, a plain text; put a text that begins with `{` or has `: ` in it in quotes";
                    return Err(fault(place(&span), message));
                }
            };
            let (event, span) = self.next()?;
            let value = self.node(event, &span, depth + 1)?;
            if let Some(line) = known.get(&key) {
                let message = format!("the key {} is already on line {line}", quoted(&key));
                self.faults.push(YamlFault { at, code: "WF002", message });
                continue;
            }
            known.insert(Arc::clone(&key), at.line);
            map.push(YamlEntry { key, at, value });
        }
    }
}

// Reads plain scalars by the core schema of YAML 1.2, and finds the place of a character in a scalar.

/// Reads a plain scalar; `None` if it is a text. `yes` and `no` are texts, and so are numbers that JSON
/// cannot hold.
pub(super) fn plain(text: &str) -> Option<YamlContent> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(YamlContent::Null),
        "true" | "True" | "TRUE" => return Some(YamlContent::Bool(true)),
        "false" | "False" | "FALSE" => return Some(YamlContent::Bool(false)),
        _ => {}
    }
    number(text).map(YamlContent::Number)
}

/// The text is not of the kind that its tag names.
pub(super) struct TagMismatch;

/// Reads a scalar with a tag of the core schema; `None` if it is a text.
pub(super) fn tagged(tag: &str, text: &str) -> Result<Option<YamlContent>, TagMismatch> {
    match (tag, plain(text)) {
        ("str", _) => Ok(None),
        ("null", found @ Some(YamlContent::Null))
        | ("bool", found @ Some(YamlContent::Bool(_))) => Ok(found),
        ("int", Some(YamlContent::Number(number))) if !number.is_f64() => {
            Ok(Some(YamlContent::Number(number)))
        }
        ("float", Some(YamlContent::Number(number))) => {
            let number = number.as_f64().and_then(Number::from_f64).ok_or(TagMismatch)?;
            Ok(Some(YamlContent::Number(number)))
        }
        _ => Err(TagMismatch),
    }
}

fn number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let looks = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.contains(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || ".eE+-".contains(c));
    if !looks {
        return None;
    }
    let plain = text.strip_prefix('+').unwrap_or(text);
    let whole = plain.parse::<i64>().map(Number::from);
    let whole = whole.or_else(|_| plain.parse::<u64>().map(Number::from));
    whole.ok().or_else(|| Number::from_f64(plain.parse().ok()?))
}

fn radix(digits: &str, radix: u32) -> Option<Number> {
    let all = digits.chars().all(|c| c.is_digit(radix));
    u64::from_str_radix(digits, radix).ok().filter(|_| all).map(Number::from)
}

/// Returns the place of a byte of a text, or the beginning of the text if the place cannot be determined.
pub(crate) fn inside(
    source: &str,
    at: SourcePlace,
    text: &YamlScalar,
    offset: usize,
) -> SourcePlace {
    let Some(raw) = source.get(text.range.clone()) else { return at };
    let before = text.text.get(..offset).unwrap_or_default();
    if text.style == ScalarStyle::Literal && !before.starts_with('\n') {
        let line = before.rsplit('\n').next().unwrap_or_default();
        let (lines, chars) = (before.matches('\n').count(), line.chars().count());
        return SourcePlace { line: at.line + lines as u64, column: at.column + chars as u64 };
    }
    let chars = before.chars().count();
    let written = match text.style {
        _ if raw.contains(['\n', '\r']) => None,
        ScalarStyle::Plain => Some(chars),
        ScalarStyle::SingleQuoted => {
            written(raw, chars, |c, rest| usize::from(c == '\'' && rest.starts_with('\'')))
        }
        ScalarStyle::DoubleQuoted => written(raw, chars, |c, rest| match rest.chars().next() {
            Some('x') if c == '\\' => 3,
            Some('u') if c == '\\' => 5,
            Some('U') if c == '\\' => 9,
            _ => usize::from(c == '\\'),
        }),
        ScalarStyle::Literal | ScalarStyle::Folded => None,
    };
    SourcePlace { column: at.column + written.unwrap_or(0) as u64, ..at }
}

/// Returns the number of written characters before a character of a quoted text, with the quote; `more`
/// returns the number of extra characters that belong to one.
fn written(raw: &str, chars: usize, more: impl Fn(char, &str) -> usize) -> Option<usize> {
    let mut rest = raw.char_indices().skip(1);
    let mut written = 1;
    for _ in 0..chars {
        let (index, c) = rest.next()?;
        let besides = more(c, &raw[index + c.len_utf8()..]);
        written += 1 + besides;
        if besides > 0 {
            rest.nth(besides - 1);
        }
    }
    Some(written)
}

#[cfg(test)]
mod scalar_tests {
    use super::*;
    use crate::yaml::tree::{self, YamlFileKind};

    #[test]
    fn scalar_type_follows_yaml_core_schema() {
        let table = [
            ("yes", r#""yes""#),
            ("No", r#""No""#),
            ("on", r#""on""#),
            ("True", "true"),
            ("~", "null"),
            ("0x1F", "31"),
            ("0o17", "15"),
            ("017", "17"),
            ("-3", "-3"),
            ("1.5e2", "150.0"),
            ("18446744073709551615", "18446744073709551615"),
            (".inf", r#"".inf""#),
            ("1e999", r#""1e999""#),
            ("1.2.3", r#""1.2.3""#),
            ("2024-01-02", r#""2024-01-02""#),
            ("-", r#"["-"]"#),
            (".", r#"".""#),
            ("'1'", r#""1""#),
            ("!!str 1", r#""1""#),
            ("! 1", r#""1""#),
            ("!!int '1'", "1"),
            ("!!float 1", "1.0"),
            ("!!bool \"true\"", "true"),
            ("!!null ''", "null"),
        ];
        for (yaml, expected) in table {
            let yaml = if yaml == "-" { "['-']" } else { yaml };
            let (root, faults) = tree::parse(YamlFileKind::GRAPH, yaml);
            assert!(faults.is_empty(), "{yaml}: {faults:?}");
            assert_eq!(root.expect("a value").json().to_string(), expected, "{yaml}");
        }
    }

    #[test]
    fn offset_in_scalar_maps_to_location_in_source() {
        let table = [
            ("k: abcd", "d", 7),
            ("k: 'a''bcd'", "d", 10),
            (r#"k: "a\tb\x41cd""#, "d", 14),
            (r#"k: "ä\"cd""#, "d", 9),
            ("k: 'ab\n  cd'", "d", 4),
            ("k: |\n  abcd", "d", 6),
            ("k: |-\n  ab\n\n   cd\n", "d", 5),
            ("k: >\n  ab\n  cd\n", "d", 3),
        ];
        let lines = [1, 1, 1, 1, 1, 2, 4, 2];
        for ((yaml, wanted, column), line) in table.into_iter().zip(lines) {
            let (root, _) = tree::parse(YamlFileKind::GRAPH, yaml);
            let root = root.expect("a value");
            let (at, text) = root.texts()[0];
            let offset = text.text.find(wanted).expect("there");
            assert_eq!(inside(yaml, at, text, offset), SourcePlace { line, column }, "{yaml}");
        }
    }
}
