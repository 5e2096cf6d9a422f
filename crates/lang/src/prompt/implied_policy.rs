//! The policy that the tags in a prompt's text imply, for a state that has none.
//!
//! A state without a policy may go anywhere, and a reply that cannot be used ends its agent. With a policy the agent is
//! reminded.

use std::collections::BTreeMap;
use std::fmt;

use raymond_model::id::{ScopePath, StateName};
use raymond_model::transition::{InvalidTransition, TagName, Transition};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::document;
use super::workflow_map::{FolderPrompt, WorkflowMap};
use crate::diagnostic::{closest, is_slip};
use crate::output::OrderedJson;
use crate::position::SourcePlace;
use crate::schema;
use crate::yaml::{Error, PlacedValue};

/// A state without a policy, and the policy that its text implies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImpliedPolicy {
    pub state: StateName,
    /// The entries of `allowed_transitions`, in the order of the tags.
    pub entries: Vec<String>,
}

impl ImpliedPolicy {
    /// Returns the policies of all states that have none and whose text shows only whole tags. A policy that would refuse one
    /// of these tags is not implied, nor is a single way on: it would be taken without its tag.
    pub fn all(map: &WorkflowMap) -> Vec<Self> {
        let of = |(state, prompt): (&StateName, &FolderPrompt)| {
            let implied = Self { state: state.clone(), entries: entries(prompt)? };
            let policy = document::examine(&implied.written_into("x")?).document.frontmatter.policy;
            let mut shown = prompt.shown.iter().filter_map(|tag| tag.transition.as_ref().ok());
            (policy.implied().is_none() && shown.all(|way| policy.allows(way))).then_some(implied)
        };
        map.prompts().filter_map(of).collect()
    }

    /// Returns the lines of `allowed_transitions`, indented.
    pub fn lines(&self, indent: &str) -> String {
        let entries = self.entries.iter().map(|entry| format!("{indent}  - {entry}\n"));
        format!("{indent}allowed_transitions:\n{}", entries.collect::<String>())
    }

    /// Returns the text of the state's file with the policy in its frontmatter; `None` if it would not be read so.
    pub fn written_into(&self, text: &str) -> Option<String> {
        let (mark, text) = match text.strip_prefix('\u{feff}') {
            Some(text) => ("\u{feff}", text),
            None => ("", text),
        };
        let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let policy = self.lines("").replace('\n', end);
        let first = text.lines().find(|line| !line.trim().is_empty());
        let written = if first.is_some_and(|line| line.trim_end() == "---") {
            let opening = text.find("---")? + 3;
            let closing = text[opening..].find("\n---")? + opening + 1;
            format!("{mark}{}{policy}{}", &text[..closing], &text[closing..])
        } else {
            format!("{mark}---{end}{policy}---{end}{text}")
        };
        let after = document::examine(&written);
        let mut before = document::examine(text).document;
        before.frontmatter.policy = after.document.frontmatter.policy.clone();
        before.body_line = after.document.body_line;
        let is_read = after.errors.is_empty()
            && after.document == before
            && before.frontmatter.policy.allowed.len() == self.entries.len();
        is_read.then_some(written)
    }
}

/// Returns the entries for the tags of a prompt; `None` if it has a policy, or shows a tag that is not known whole.
fn entries(prompt: &FolderPrompt) -> Option<Vec<String>> {
    let shown = prompt.shown.iter().filter(|tag| !tag.is_quoted);
    let is_free = prompt.frontmatter.policy.is_open()
        && prompt.frontmatter.output.is_none()
        && prompt.errors.is_empty()
        && !prompt.shows_filled_tags
        && !prompt.shown.is_empty();
    let mut entries = Vec::new();
    for tag in shown.filter(|_| is_free) {
        let entry = entry(tag.transition.as_ref().ok()?);
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    (!entries.is_empty()).then_some(entries)
}

fn entry(transition: &Transition) -> String {
    let at = |scope: &Option<ScopePath>, target: &StateName| match scope {
        Some(scope) => format!("{scope}/{target}"),
        None => target.to_string(),
    };
    let rest = match transition {
        Transition::Goto { target, scope, .. } => format!(", target: {}", at(scope, target)),
        Transition::Reset { target, scope, keeps_stack, .. } => {
            let keep = if *keeps_stack { ", keep: \"stack\"" } else { "" };
            format!(", target: {}{keep}", at(scope, target))
        }
        Transition::Call { target, scope, return_to, .. }
        | Transition::Function { target, scope, return_to, .. } => {
            format!(", target: {}, return: {return_to}", at(scope, target))
        }
        Transition::Fork { target, scope, next, each, .. } => {
            let each = each.as_ref().map(|each| format!(", each: any, as: {}", each.name));
            format!(", target: {}, next: {next}{}", at(scope, target), each.unwrap_or_default())
        }
        Transition::Ask { next, .. } => format!(", next: {next}"),
        Transition::Result { .. } => String::new(),
    };
    format!("{{ tag: {}{rest} }}", transition.tag())
}

// The entries of a policy: each a transition, with the places of the files that it names.
//
// Fills the placeholders in the entries of a policy, and in those of an evaluator's pattern, when the prompt is asked.
//
// The directory of a fork is left as it is: its placeholders are filled for each new agent. An inserted value gives the
// agent no choice that the entry does not give: a space before it keeps an empty text, and `any`, from meaning any.

/// An entry of a policy, as written.
#[derive(Debug, Clone, Default)]
pub(super) struct PolicyEntry {
    /// The tag, and its attributes.
    pub(super) attributes: BTreeMap<String, PlacedValue<String>>,
    /// The conditions on the answer's fields.
    pub(super) when: Option<PlacedValue<OrderedJson>>,
    /// A key that was probably meant to be `when`, and its place.
    pub(super) misspelt_when: Option<(String, SourcePlace)>,
}

impl PolicyEntry {
    /// Reads a `when` with a plain value as a variable of that name, like any other attribute.
    pub(super) fn take_plain_when(&mut self) {
        if let Some(text) = self.when.as_ref().and_then(plain) {
            self.attributes.insert("when".to_owned(), text);
            self.when = None;
        }
    }

    /// Reads a key that looks like `when`: as a variable if its value is plain, else as a misspelling.
    fn take_like_when(&mut self, key: String, value: &PlacedValue<OrderedJson>) {
        match plain(value) {
            Some(text) => {
                self.attributes.insert(key, text);
            }
            None => self.misspelt_when = Some((key, value.at)),
        }
    }
}

/// Returns a plain value as a text.
fn plain(value: &PlacedValue<OrderedJson>) -> Option<PlacedValue<String>> {
    let text = match &value.value {
        OrderedJson::Text(text) => text.clone(),
        OrderedJson::Number(number) => number.to_string(),
        OrderedJson::Bool(value) => value.to_string(),
        OrderedJson::Null | OrderedJson::List(_) | OrderedJson::Object(_) => return None,
    };
    Some(PlacedValue { value: text, at: value.at })
}

impl<'de> Deserialize<'de> for PolicyEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PolicyEntryVisitor)
    }
}

struct PolicyEntryVisitor;

impl<'de> Visitor<'de> for PolicyEntryVisitor {
    type Value = PolicyEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping with a `tag`")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<PolicyEntry, E> {
        let example = if text == "result" { "tag: result" } else { "tag: goto, target: FILE.md" };
        Err(E::custom(format!("an entry is a mapping; write `- {{ {example} }}`")))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PolicyEntry, A::Error> {
        let mut entry = PolicyEntry::default();
        while let Some(key) = map.next_key::<String>()? {
            if key == "when" {
                entry.when = Some(map.next_value()?);
            } else if is_slip(&key, "when") {
                entry.take_like_when(key, &map.next_value()?);
            } else {
                entry.attributes.insert(key, map.next_value()?);
            }
        }
        Ok(entry)
    }
}

/// The place of an entry, and the places of the names in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryPlace {
    pub entry: SourcePlace,
    /// Its `target`.
    pub target: Option<SourcePlace>,
    /// Its `return` or `next`.
    pub continuation: Option<SourcePlace>,
    /// Its `timeout_next`.
    pub late: Option<SourcePlace>,
}

impl EntryPlace {
    pub(super) fn of(entry: &PlacedValue<PolicyEntry>) -> Self {
        let place = |key| entry.value.attributes.get(key).map(|value| value.at);
        Self {
            target: place("target"),
            continuation: place("return").or_else(|| place("next")),
            late: place("timeout_next"),
            ..Self::whole(entry.at)
        }
    }

    /// Returns the place of an entry, without places of its parts.
    pub fn whole(entry: SourcePlace) -> Self {
        Self { entry, target: None, continuation: None, late: None }
    }
}

/// Reads an entry of a policy: it gives the target, and the texts are the agent's own.
pub(super) fn listed(written: PlacedValue<PolicyEntry>) -> Result<Transition, Error> {
    let question = written.value.attributes.get("question").map(|question| question.at);
    let transition = read_entry(written)?;
    match question.filter(|_| transition.tag() == TagName::Ask) {
        None => Ok(transition),
        Some(place) => {
            let message = "the question is the agent's own; write { tag: ask, next: FILE.md }";
            Err(Error::at(place, message.to_owned()))
        }
    }
}

pub(super) fn read_entry(entry: PlacedValue<PolicyEntry>) -> Result<Transition, Error> {
    let (place, mut attributes) = (entry.at, entry.value.attributes);
    if let Some((key, at)) = entry.value.misspelt_when {
        return Err(Error::at(at, format!("unknown key `{key}`; did you mean `when`?")));
    }
    let Some(name) = attributes.remove("tag") else {
        return Err(Error::at(
            place,
            format!("this entry has no `tag`; use one of {}", tag_names()),
        ));
    };
    let Some(tag) = TagName::from_name(&name.value) else {
        let hint = closest(&name.value, TagName::ALL.iter().map(|tag| tag.name()))
            .map(|tag| format!("; did you mean `{tag}`?"));
        let hint = hint.unwrap_or_else(|| format!("; use one of {}", tag_names()));
        return Err(Error::at(name.at, format!("unknown tag `{}`{hint}", name.value)));
    };
    let target = attributes.remove("target");
    let question = if tag == TagName::Ask { attributes.remove("question") } else { None };
    let payload = if tag == TagName::Result { attributes.remove("payload") } else { None };
    if let Some(payload) = payload.as_ref().filter(|payload| payload.value.trim().is_empty()) {
        let message = "an empty `payload` is the same as none; leave it out, so that the text is the agent's own";
        return Err(Error::at(payload.at, message.to_owned()));
    }
    let body = match (&target, tag) {
        (Some(target), TagName::Result) => {
            let message = "a result has no `target`; write { tag: result }".to_owned();
            return Err(Error::at(target.at, message));
        }
        (Some(target), TagName::Ask) => {
            let message = "an ask has no `target`; write { tag: ask, next: FILE.md }, the state that gets the answer";
            return Err(Error::at(target.at, message.to_owned()));
        }
        (None, TagName::Result) => payload.as_ref().map_or("", |payload| payload.value.trim()),
        (None, TagName::Ask) => question.as_ref().map_or(ANY_TEXT, |question| &question.value),
        (Some(target), _) => &target.value,
        (None, _) => {
            let message = format!("`{tag}` needs a `target`, the file it leads to");
            return Err(Error::at(name.at, message));
        }
    };
    if let Some((key, value)) = attributes.iter().find(|(key, _)| is_misspelt(key)) {
        let message = format!(
            "`{key}` is probably misspelt: a variable may not look so much like {}",
            KEYS.map(|known| format!("`{known}`")).join(", ")
        );
        return Err(Error::at(value.at, message));
    }
    if let Some((_, value)) = attributes.get_key_value("as").filter(|_| tag != TagName::Fork) {
        let message = format!(
            "`as` names the entries of a fork's `each`, and `{tag}` has none; leave it out"
        );
        return Err(Error::at(value.at, message));
    }
    let culprit = |key: &str| attributes.get(key).map(|value| value.at);
    let place = [tag.required_attribute().unwrap_or(""), "return", "next"]
        .into_iter()
        .find_map(culprit)
        .or(target.as_ref().map(|target| target.at))
        .unwrap_or(name.at);
    let places: BTreeMap<String, SourcePlace> =
        attributes.iter().map(|(key, value)| (key.clone(), value.at)).collect();
    let pairs = attributes.into_iter().map(|(key, value)| (key, value.value));
    let body = TagName::body_of(&name.value, body);
    Transition::from_parts(tag, pairs, &body).map_err(|error| {
        let of_attribute = match &error {
            InvalidTransition::UnexpectedAttribute { attribute, .. } => places.get(attribute),
            _ => None,
        };
        Error::at(of_attribute.copied().unwrap_or(place), error.to_string())
    })
}

/// Returns a list of entries as JSON Schema.
pub(super) fn list_shape() -> Value {
    schema::list(shape())
}

/// Returns an entry as JSON Schema. Keys that it does not name are variables.
pub(super) fn shape() -> Value {
    let of_tag = |tag: TagName| {
        let target = (!matches!(tag, TagName::Result | TagName::Ask)).then_some("target");
        let required: Vec<&str> = target.into_iter().chain(tag.required_attribute()).collect();
        let mut then = json!({ "required": required });
        if target.is_none() {
            then["properties"] = json!({ "target": false });
        }
        json!({ "if": { "properties": { "tag": { "const": tag.name() } } }, "then": then })
    };
    let described = |doc: &str, mut shape: Value| {
        shape["description"] = doc.into();
        shape
    };
    let when =
        "The values of the answer's fields for which the transition is taken; only with `output`.";
    json!({
        "type": "object",
        "properties": {
            "tag": described(
                "The tag.",
                schema::one_of(
                    TagName::ALL.iter().map(|tag| tag.name()).chain(TagName::OF_WORKFLOWS),
                ),
            ),
            "target": described("The file that the tag leads to.", schema::text()),
            "return": described("The state that the result returns to.", schema::text()),
            "next": described("The state that follows.", schema::text()),
            "payload": described("The text of a result, if it is fixed.", schema::text()),
            "keep": described("What a reset keeps: the pending returns.", schema::one_of(["stack"])),
            "when": { "type": ["object", "string", "number", "boolean"], "description": when },
        },
        "required": ["tag"],
        "additionalProperties": schema::text(),
        "allOf": TagName::ALL.iter().copied().map(of_tag).collect::<Vec<_>>(),
    })
}

/// The placeholder for a text of the agent's own.
pub(super) const ANY_TEXT: &str = "…";

/// The attributes that a variable's name may not resemble.
const KEYS: [&str; 5] = ["return", "target", "timeout", "each", "next"];

/// Returns whether a variable's name is one typo away from a key that has a meaning.
fn is_misspelt(key: &str) -> bool {
    KEYS.into_iter().any(|known| {
        // Many words differ from a short one in a letter.
        let is_swapped = known.len() == key.len() && known.chars().all(|c| key.contains(c));
        strsim::damerau_levenshtein(key, known) == 1 && (known.len() > 4 || is_swapped)
    })
}

fn tag_names() -> String {
    TagName::ALL.iter().map(|tag| tag.name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::prompt::workflow_map::WorkflowMapOptions;

    fn implied(files: &[(&str, &str)]) -> Vec<ImpliedPolicy> {
        let files: BTreeMap<String, String> =
            files.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect();
        let reach = WorkflowMapOptions { by_text: true, max_states: 9, graphs: None };
        let entry = StateName::parse("START.md").expect("a state");
        ImpliedPolicy::all(&WorkflowMap::of(&entry, &files, reach))
    }

    #[test]
    fn tags_of_text_are_entries_and_are_read_back() {
        let text = "Do it. End with <goto>NEXT.md</goto>, <call return=\"NEXT.md\">SUB.md</call>, \
            <fork next=\"NEXT.md\" each=\"[1]\" as=\"n\">W.md</fork>, <ask next=\"NEXT.md\">ok?</ask>, \
            <goto>NEXT.md</goto>, <reset>START.md</reset> or <result>it</result>";
        let found =
            implied(&[("START.md", text), ("NEXT.md", "x"), ("SUB.md", "x"), ("W.md", "x")]);
        let [policy] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(
            policy.entries,
            [
                "{ tag: goto, target: NEXT.md }",
                "{ tag: call, target: SUB.md, return: NEXT.md }",
                "{ tag: fork, target: W.md, next: NEXT.md, each: any, as: n }",
                "{ tag: ask, next: NEXT.md }",
                "{ tag: reset, target: START.md }",
                "{ tag: result }",
            ]
        );
        let written = policy.written_into(text).expect("it is read");
        assert!(
            written.starts_with("---\nallowed_transitions:\n  - { tag: goto")
                && written.ends_with(text)
        );
        let headed = format!("---\nmodel: haiku\n---\n{text}");
        let written = policy.written_into(&headed).expect("it is read");
        assert!(written.starts_with("---\nmodel: haiku\nallowed_transitions:\n"), "{written}");
        assert!(implied(&[("START.md", &written)]).is_empty(), "it has a policy now");
        let marked = format!("\u{feff}---\r\npermission_mode: plan\r\n---\r\n{text}");
        let written = policy.written_into(&marked).expect("it is read");
        assert!(
            written.starts_with("\u{feff}---\r\npermission_mode: plan\r\nallowed_transitions:\r\n"),
            "{written:?}"
        );
    }

    #[test]
    fn text_that_does_not_tell_all_implies_none() {
        let open = "<goto>{{where}}</goto> or <result>x</result>";
        let own = "---\nallowed_transitions: [{ tag: result }]\n---\n<goto>START.md</goto>";
        for text in [
            "no tag",
            "`<result>x</result>`",
            "`<goto>START.md</goto>` or <result>x</result>",
            "Only if it is good: <goto>START.md</goto>",
            "<ask next=\"START.md\" timeout=\"1s\" timeout_next=\"START.md\">a</ask> or <result>x</result>",
            "<fork next=\"START.md\" cwd=\"a\">START.md</fork> or <result>x</result>",
            open,
            own,
            "---\nmodle: x\n---\n<result>x</result>",
        ] {
            assert!(implied(&[("START.md", text)]).is_empty(), "{text}");
        }
    }
}
