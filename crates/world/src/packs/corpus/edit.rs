//! Edits a YAML text and leaves the rest of it as it is: comments, order, spelling. Pure.
//!
//! A change is applied to the values first. Then the text is edited in place, and the edit is accepted only if it reads
//! as exactly those values. Otherwise the whole text is generated from them, and its comments are lost. A text that
//! means anything else is never written.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;

use serde_json::{Map, Value};
use serde_yaml::Error;
use yaml_edit::{AsYaml, Document, Mapping, YamlNode};

/// A step down into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EditStep {
    /// To the value of a key.
    Key(String),
    /// To an item of a list.
    Item(usize),
}

/// A change.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ValueEdit {
    /// Sets the value at a path.
    Set(Vec<EditStep>, Value),
    /// Appends a value to the list of a top-level key.
    Push(String, Value),
}

/// Reads a YAML 1.2 text. An empty one is an empty map.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let options = serde_yaml::options! { strict_booleans: true, with_snippet: false };
    let value: Option<Value> =
        serde_yaml::from_str_with_options(text, options).map_err(|error| placed_mistake(&error))?;
    Ok(value.unwrap_or_else(|| Value::Object(Map::new())))
}

/// Returns the text with the changes made; `None` if they change nothing.
pub(super) fn apply(text: &str, changes: &[ValueEdit]) -> Result<Option<String>, String> {
    let before = parse(text)?;
    let mut after = before.clone();
    for change in changes {
        change_value(&mut after, change)?;
    }
    if after == before {
        return Ok(None);
    }
    let edited = catch_unwind(AssertUnwindSafe(|| edit(text, changes))).ok().flatten();
    if let Some(edited) = edited
        && parse(&edited).is_ok_and(|read| read == after)
    {
        return Ok(Some(edited));
    }
    written_like(text, &after).map(Some)
}

/// Returns a value as YAML, with its keys in the order of a text. New keys come last, in their own order.
pub(super) fn written_like(text: &str, value: &Value) -> Result<String, String> {
    let like = parse(text).unwrap_or_default();
    serde_yaml::to_string(&in_order_of(value.clone(), &like)).map_err(|error| error.to_string())
}

fn in_order_of(value: Value, like: &Value) -> Value {
    match (value, like) {
        (Value::Object(mut rest), Value::Object(like)) => {
            let known = like.iter().filter_map(|(key, like)| {
                Some((key.clone(), in_order_of(rest.shift_remove(key)?, like)))
            });
            let mut ordered: Map<String, Value> = known.collect();
            ordered.extend(rest);
            Value::Object(ordered)
        }
        (Value::Array(list), Value::Array(like)) => {
            let likes = like.iter().map(Some).chain(std::iter::repeat(None));
            let ordered = |(value, like): (Value, Option<&Value>)| match like {
                Some(like) => in_order_of(value, like),
                None => value,
            };
            list.into_iter().zip(likes).map(ordered).collect()
        }
        (value, _) => value,
    }
}

fn change_value(value: &mut Value, change: &ValueEdit) -> Result<(), String> {
    match change {
        ValueEdit::Set(steps, new) => {
            let mut here = value;
            for step in steps {
                here = down(here, step)?;
            }
            *here = new.clone();
        }
        ValueEdit::Push(key, new) => {
            let list = down(value, &EditStep::Key(key.clone()))?;
            if list.is_null() {
                *list = Value::Array(Vec::new());
            }
            let Some(list) = list.as_array_mut() else {
                return Err(format!("`{key}` is not a list"));
            };
            list.push(new.clone());
        }
    }
    Ok(())
}

/// Returns the value one step down; a missing key is added to a map or to null.
fn down<'value>(value: &'value mut Value, step: &EditStep) -> Result<&'value mut Value, String> {
    if value.is_null() && matches!(step, EditStep::Key(_)) {
        *value = Value::Object(Map::new());
    }
    let kind = kind(value);
    match (value, step) {
        (Value::Object(map), EditStep::Key(key)) => {
            Ok(map.entry(key.clone()).or_insert(Value::Null))
        }
        (Value::Array(list), EditStep::Item(index)) => {
            let length = list.len();
            let missing = || format!("no item {index} in a list of {length}");
            list.get_mut(*index).ok_or_else(missing)
        }
        (_, EditStep::Key(key)) => Err(format!("{kind} has no key `{key}`")),
        (_, EditStep::Item(index)) => Err(format!("{kind} has no item {index}")),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// Edits the text in place, if that is possible. The caller checks the result by reading it.
fn edit(text: &str, changes: &[ValueEdit]) -> Option<String> {
    let document = Document::from_str(text).ok()?;
    for change in changes {
        let top = document.as_mapping()?;
        match change {
            ValueEdit::Set(steps, new) => set(&top, steps, new)?,
            ValueEdit::Push(key, new) => match top.get(key.as_str()) {
                Some(YamlNode::Sequence(list)) if !list.is_empty() => list.push(node(new)?),
                _ => top.set(key.as_str(), node(&Value::Array(vec![new.clone()]))?),
            },
        }
    }
    Some(document.to_string())
}

fn set(top: &Mapping, steps: &[EditStep], new: &Value) -> Option<()> {
    let (last, path) = steps.split_last()?;
    let mut here = YamlNode::Mapping(top.clone());
    for (depth, step) in path.iter().enumerate() {
        let next = match (&here, step) {
            (YamlNode::Mapping(map), EditStep::Key(key)) => map.get(key.as_str()),
            (YamlNode::Sequence(items), EditStep::Item(index)) => items.get(*index),
            _ => return None,
        };
        let into = next.filter(|next| next.is_mapping() || next.is_sequence());
        let Some(next) = into else {
            // A missing map on the path is added together with its content.
            let (YamlNode::Mapping(map), EditStep::Key(key)) = (&here, step) else { return None };
            let whole = steps[depth + 1..].iter().rev().try_fold(new.clone(), |inner, step| {
                let EditStep::Key(key) = step else { return None };
                Some(Value::Object(Map::from_iter([(key.clone(), inner)])))
            })?;
            map.set(key.as_str(), node(&whole)?);
            return Some(());
        };
        here = next;
    }
    match last {
        EditStep::Key(last) => here.as_mapping()?.set(last.as_str(), node(new)?),
        EditStep::Item(index) => return here.as_sequence()?.set(*index, node(new)?).then_some(()),
    }
    Some(())
}

/// Returns a value as a piece of YAML.
fn node(value: &Value) -> Option<impl AsYaml> {
    let text = serde_yaml::to_string(value).ok()?;
    let document = Document::from_str(&text).ok()?;
    document
        .as_mapping()
        .map(YamlNode::Mapping)
        .or_else(|| document.as_sequence().map(YamlNode::Sequence))
        .or_else(|| document.as_scalar().map(YamlNode::Scalar))
}

/// Returns the place of a mistake and a sentence about it: `line 2, column 5: …`.
fn placed_mistake(error: &Error) -> String {
    let sentence = mistake(error);
    match error.location().filter(|location| location.line() > 0) {
        Some(at) => format!("line {}, column {}: {sentence}", at.line(), at.column()),
        None => sentence,
    }
}

fn mistake(error: &Error) -> String {
    match error.without_snippet() {
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key `{key}` is given twice; remove one")
        }
        Error::DuplicateMappingKey { .. } => "a key is given twice; remove one".to_owned(),
        Error::Eof { .. } => {
            "it ends too early; something is cut off, or a bracket or quote is missing".to_owned()
        }
        Error::MultipleDocuments { .. } => {
            "a second document begins here; keep one, without `---` after it".to_owned()
        }
        Error::UnknownAnchor { .. } => "no anchor has the name of this alias".to_owned(),
        Error::InvalidUtf8Input => "it is not UTF-8 text".to_owned(),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            "it is too large or too deeply nested to be read".to_owned()
        }
        _ => "this is not valid YAML; look for wrong indentation, a missing quote or bracket, or a `:` in an unquoted string".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const CONFIG: &str = "\
# What the corpus is made of.
corpus:
  name: 'docs'   # shown to people
sources:
  # the first
  - id: a
    type: git
    branch: main # not master

  - {id: b, type: web}

index: {built: false}
";

    fn keys(path: &str) -> Vec<EditStep> {
        path.split('.')
            .map(|key| key.parse().map_or(EditStep::Key(key.into()), EditStep::Item))
            .collect()
    }

    fn set(path: &str, value: Value) -> ValueEdit {
        ValueEdit::Set(keys(path), value)
    }

    fn edited(text: &str, change: ValueEdit) -> String {
        apply(text, &[change]).expect("it can be made").expect("it is one")
    }

    #[test]
    fn setting_a_value_preserves_rest_of_text() {
        let text = edited(CONFIG, set("corpus.name", json!("new docs")));
        assert_eq!(text, CONFIG.replace("'docs'", "new docs"));
        let text = edited(CONFIG, set("sources.0.branch", json!("trunk")));
        assert_eq!(text, CONFIG.replace("branch: main", "branch: trunk"));
        let text = edited(CONFIG, set("index.built", json!(true)));
        assert_eq!(text, CONFIG.replace("false", "true"));
    }

    #[test]
    fn new_keys_and_items_are_inserted_and_comments_preserved() {
        let text =
            edited(CONFIG, ValueEdit::Push("sources".into(), json!({"id": "c", "n": [1, 2]})));
        assert!(text.contains("# the first") && text.contains("# not master"), "{text}");
        let ids: Vec<Value> = parse(&text).expect("YAML")["sources"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|source| source["id"].clone())
            .collect();
        assert_eq!(ids, ["a", "b", "c"]);
        let text = edited(CONFIG, set("corpus.made.by.whom", json!("us")));
        assert!(text.starts_with("# What the corpus") && text.contains("# shown to people"));
        assert_eq!(parse(&text).expect("YAML")["corpus"]["made"]["by"]["whom"], "us");
        let text =
            edited("a: 1\nsources: []\n", ValueEdit::Push("sources".into(), json!({"id": "c"})));
        assert_eq!(parse(&text), Ok(json!({"a": 1, "sources": [{"id": "c"}]})));
        let text =
            edited("# none yet\nsources:\n", ValueEdit::Push("sources".into(), json!({"id": 1})));
        assert_eq!(parse(&text), Ok(json!({"sources": [{"id": 1}]})));
        let text = edited("", set("a.b", json!("yes")));
        assert_eq!(parse(&text), Ok(json!({"a": {"b": "yes"}})));
    }

    #[test]
    fn rewritten_text_keeps_order_of_its_keys() {
        let text = "z: &base {x: 1, b: 2}\na: *base\nm: 3\n";
        let text = edited(text, set("z.new", json!(4)));
        let at = |key: &str| text.find(key).unwrap_or_else(|| panic!("{key}: {text}"));
        assert!(!text.contains('*') && at("z:") < at("a:") && at("a:") < at("m:"), "{text}");
        assert!(at("x: 1") < at("b: 2") && at("b: 2") < at("new: 4"), "{text}");
    }

    #[test]
    fn impossible_change_is_an_error_with_reason() {
        let why = |change| apply(CONFIG, &[change]).expect_err("refused");
        assert_eq!(why(set("corpus.name.first", json!(1))), "a text has no key `first`");
        assert_eq!(why(set("sources.7.id", json!(1))), "no item 7 in a list of 2");
        assert_eq!(why(ValueEdit::Push("corpus".into(), json!(1))), "`corpus` is not a list");
        assert!(apply("a: [", &[]).is_err());
        assert_eq!(apply(CONFIG, &[set("corpus.name", json!("docs"))]), Ok(None));
    }

    #[test]
    fn changing_an_anchor_keeps_value_of_its_alias() {
        let text = "base: &base {x: 1}\nother: *base\n";
        let text = edited(text, set("base.x", json!(2)));
        assert_eq!(parse(&text), Ok(json!({"base": {"x": 2}, "other": {"x": 1}})));
        assert!(!text.contains('*'), "there is no alias any more: {text}");
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[ -~\\n]{0,12}".prop_map(Value::from),
            Just(json!("yes")),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z#: -]{1,6}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn edited_text_parses_to_requested_value(value in any_value(), pushed in any::<bool>()) {
            let change = if pushed {
                ValueEdit::Push("sources".into(), value.clone())
            } else {
                set("corpus.name", value.clone())
            };
            let mut expected = parse(CONFIG).expect("YAML");
            change_value(&mut expected, &change).expect("it can be made");
            if let Some(text) = apply(CONFIG, &[change]).expect("it can be made") {
                prop_assert_eq!(parse(&text), Ok(expected));
            }
        }
    }
}

#[cfg(test)]
mod yaml_mistake_tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn invalid_yaml_has_place_and_sentence() {
        for (text, expected) in [
            ("a: [\n", "line 1, column 4: this is not valid YAML; look for wrong indentation"),
            ("a: 1\na: 2\n", "line 2, column 1: the key `a` is given twice; remove one"),
            ("a: *b\n", "line 1, column 4: no anchor has the name of this alias"),
            ("a: 1\n b: 2\n", "this is not valid YAML"),
            ("a: 1\n---\nb: 2\n", "a second document begins here"),
        ] {
            let options = serde_yaml::options! { with_snippet: false };
            let read: Result<Value, Error> = serde_yaml::from_str_with_options(text, options);
            let message = placed_mistake(&read.expect_err(text));
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}

#[cfg(test)]
mod ordered_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_keep_their_order_and_new_keys_come_last() {
        let text = r#"{"z": 1, "a": {"y": true, "b": null}, "list": [{"q": 1.5, "c": -2}]}"#;
        let value = json!({
            "a": {"b": 2, "new": 1, "y": 3}, "to": 1, "also": 0, "list": [{"c": 1, "q": 2}, {"b": 1}], "z": 2,
        });
        let ordered = in_order_of(value.clone(), &parse(text).expect("YAML"));
        let written = serde_json::to_string(&ordered).expect("JSON");
        let expected =
            r#"{"z":2,"a":{"y":3,"b":2,"new":1},"list":[{"q":2,"c":1},{"b":1}],"to":1,"also":0}"#;
        assert_eq!(written, expected);
        let yaml = written_like(text, &value).expect("YAML");
        assert!(yaml.starts_with("z: 2\na:\n"), "{yaml}");
    }

    #[test]
    fn text_that_cannot_be_read_has_no_order() {
        let written = written_like("a: [", &json!({"b": 1, "a": 2}));
        assert_eq!(written, Ok("b: 1\na: 2\n".to_owned()));
    }
}
