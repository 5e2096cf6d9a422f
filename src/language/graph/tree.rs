//! YAML as a tree in which every key and every value has its place.
//!
//! A file with mistakes is read to its end, so the tree is built from the parser's events. Deserializing
//! into types would stop at the first mistake. The value of an alias is shared, but counted as a copy, so
//! that a few lines cannot become a tree that fills the memory.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use serde_json::{Map, Number, Value};

use super::scalar;
pub(in crate::language) use crate::language::place::SourcePlace;
pub(in crate::language) use crate::language::report::quoted;

/// The largest nesting depth of lists and maps.
const DEEPEST: usize = 64;

/// The longest text of a graph, in bytes.
pub(in crate::language) const LONGEST: usize = 1024 * 1024;

/// The largest size of the tree with its aliases written out: the bytes of its texts, and [`NODE`] per node.
const LARGEST: usize = 8 * LONGEST;
const NODE: usize = 16;

/// A value and its place.
#[derive(Debug, Clone)]
pub(in crate::language) struct YamlValue {
    pub(in crate::language) at: SourcePlace,
    pub(in crate::language) value: YamlContent,
}

/// A value.
#[derive(Debug, Clone)]
pub(in crate::language) enum YamlContent {
    Null,
    Bool(bool),
    Number(Number),
    Text(YamlScalar),
    List(Arc<Vec<YamlValue>>),
    Map(Arc<Vec<YamlEntry>>),
}

/// A text and its style.
#[derive(Debug, Clone)]
pub(in crate::language) struct YamlScalar {
    pub(in crate::language) text: Arc<str>,
    pub(in crate::language) style: ScalarStyle,
    /// Its range in the whole text, in bytes.
    pub(in crate::language) range: Range<usize>,
}

/// A key and its value.
#[derive(Debug)]
pub(in crate::language) struct YamlEntry {
    pub(in crate::language) key: Arc<str>,
    pub(in crate::language) at: SourcePlace,
    pub(in crate::language) value: YamlValue,
}

/// A mistake in the YAML itself.
#[derive(Debug)]
pub(in crate::language) struct YamlFault {
    pub(in crate::language) at: SourcePlace,
    pub(in crate::language) code: &'static str,
    pub(in crate::language) message: String,
}

impl YamlValue {
    /// Returns the value as JSON.
    pub(in crate::language) fn json(&self) -> Value {
        match &self.value {
            YamlContent::Null => Value::Null,
            YamlContent::Bool(value) => Value::Bool(*value),
            YamlContent::Number(number) => Value::Number(number.clone()),
            YamlContent::Text(text) => Value::String(text.text.to_string()),
            YamlContent::List(list) => Value::Array(list.iter().map(Self::json).collect()),
            YamlContent::Map(map) => {
                let entry = |entry: &YamlEntry| (entry.key.to_string(), entry.value.json());
                Value::Object(map.iter().map(entry).collect::<Map<_, _>>())
            }
        }
    }

    /// Returns the text, if it is one.
    pub(in crate::language) fn text(&self) -> Option<&YamlScalar> {
        match &self.value {
            YamlContent::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns its kind in words, for a message.
    pub(in crate::language) fn sort(&self) -> &'static str {
        match &self.value {
            YamlContent::Null => "nothing",
            YamlContent::Bool(_) => "a boolean",
            YamlContent::Number(_) => "a number",
            YamlContent::Text(_) => "a text",
            YamlContent::List(_) => "a list",
            YamlContent::Map(_) => "a mapping",
        }
    }

    /// Returns all texts in it, at any depth.
    pub(in crate::language) fn texts(&self) -> Vec<(SourcePlace, &YamlScalar)> {
        match &self.value {
            YamlContent::Text(text) => vec![(self.at, text)],
            YamlContent::List(list) => list.iter().flat_map(Self::texts).collect(),
            YamlContent::Map(map) => map.iter().flat_map(|entry| entry.value.texts()).collect(),
            _ => Vec::new(),
        }
    }
}

/// Reads a text. All duplicate keys are found; the first mistake of another kind ends the reading.
pub(in crate::language) fn parse(text: &str) -> (Option<YamlValue>, Vec<YamlFault>) {
    if text.len() > LONGEST {
        let size = text.len();
        let message = format!("this is {size} bytes long, a graph may have {LONGEST}; divide it");
        return (
            None,
            vec![YamlFault { at: SourcePlace { line: 1, column: 1 }, code: "WF001", message }],
        );
    }
    let options = granit_parser::options! {
        flow_nesting_limit: DEEPEST + 1,
        block_nesting_limit: DEEPEST + 1,
        emit_comments: false,
    };
    let parser = Parser::new_from_str_with_options(text, options);
    let mut builder =
        YamlBuilder { parser, text, anchors: HashMap::new(), size: 0, faults: Vec::new() };
    let root = builder.document();
    let root = root.map_err(|fault| builder.faults.push(fault)).ok();
    (root, builder.faults)
}

struct YamlBuilder<'text> {
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
    fault(at, format!("this is not YAML: {}", error.info()))
}

impl<'text> YamlBuilder<'text> {
    fn next(&mut self) -> YamlResult<(Event<'text>, Span)> {
        match self.parser.next_event() {
            Some(event) => event.map_err(|error| syntax(&error)),
            None => Err(fault(
                SourcePlace { line: 1, column: 1 },
                "this is not YAML: it ends too early",
            )),
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
                    let message = "a second document begins here; a graph is one document";
                    return Err(fault(place(&span), message));
                }
                event => root = Some(self.node(event, &span, 0)?),
            }
        }
        let at = SourcePlace { line: 1, column: 1 };
        Ok(root.unwrap_or(YamlValue { at, value: YamlContent::Null }))
    }

    fn node(&mut self, event: Event<'text>, span: &Span, depth: usize) -> YamlResult<YamlValue> {
        let at = place(span);
        if depth > DEEPEST {
            let message = format!("this is nested too deeply; {DEEPEST} levels are allowed");
            return Err(fault(at, message));
        }
        let before = self.size;
        self.size += NODE;
        let (value, anchor) = match event {
            Event::Alias(id) => return self.alias(id, at),
            Event::Scalar(text, style, anchor, tag) => {
                self.size += text.len();
                (self.scalar(&text, style, tag.as_deref(), span)?, anchor)
            }
            Event::SequenceStart(_, anchor, _) => (self.list(depth)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.map(depth)?, anchor),
            _ => return Err(fault(at, "this is not YAML: a value is expected here")),
        };
        let node = YamlValue { at, value };
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), self.size - before));
        }
        Ok(node)
    }

    fn alias(&mut self, id: usize, at: SourcePlace) -> YamlResult<YamlValue> {
        let Some((node, size)) = self.anchors.get(&id) else {
            return Err(fault(at, "this alias stands in what it stands for; write it out"));
        };
        self.size = self.size.saturating_add(*size);
        if self.size > LARGEST {
            let message = "the aliases up to here make the graph too large; write out less";
            return Err(fault(at, message));
        }
        Ok(node.clone())
    }

    fn scalar(
        &self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: &Span,
    ) -> YamlResult<YamlContent> {
        let tag = tag.map(|tag| (tag, tag.core_suffix()));
        if let Some((tag, None)) = tag.filter(|(tag, _)| tag.original() != "!") {
            let message = format!("the tag `{}` means nothing here; leave it out", tag.original());
            return Err(fault(place(span), message));
        }
        let is_text = style != ScalarStyle::Plain
            || tag.is_some_and(|(_, core)| core.is_none_or(|core| core == "str"));
        if let Some(value) = scalar::plain(text).filter(|_| !is_text) {
            return Ok(value);
        }
        let range = span.byte_range().unwrap_or_default();
        let range = if self.text.get(range.clone()).is_some() { range } else { 0..0 };
        Ok(YamlContent::Text(YamlScalar { text: text.into(), style, range }))
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
                    let message = "a key has to be a text that is written out";
                    return Err(fault(place(&span), message));
                }
            };
            let (event, span) = self.next()?;
            let value = self.node(event, &span, depth + 1)?;
            if let Some(line) = known.get(&key) {
                let message = format!("the key {} stands in line {line} already", quoted(&key));
                self.faults.push(YamlFault { at, code: "WF002", message });
                continue;
            }
            known.insert(Arc::clone(&key), at.line);
            map.push(YamlEntry { key, at, value });
        }
    }
}
