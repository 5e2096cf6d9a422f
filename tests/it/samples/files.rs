//! The files of the samples: the names in their policies, replies and placeholders exist, and a run can take
//! only the intended transitions.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::{SAMPLES, SampleWorkflow, names, read};

const TAGS: [&str; 6] = ["goto", "reset", "function", "call", "fork", "result"];

/// The placeholders that raymond fills.
const KNOWN: [&str; 6] = ["input", "result", "results", "workflow_id", "agent_id", "state"];

/// The one reply that is wrong on purpose, so that the tour can show a reminder: sample, state, index.
const FORGETS_ITS_TAG: (&str, &str, usize) = ("tour", "RATE.md", 0);

#[test]
fn every_policy_names_existing_states_and_its_return_or_next() {
    for sample in SAMPLES {
        let states = sample.states();
        for state in &states {
            let policy = sample.policy(state);
            assert!(!policy.is_empty(), "{}/{state} cannot remind without a policy", sample.name);
            for entry in policy {
                let place = format!("{}/{state}: {entry:?}", sample.name);
                assert!(TAGS.contains(&entry.tag.as_str()), "{place}");
                assert_eq!(entry.target.is_none(), entry.tag == "result", "{place}");
                let returns = ["call", "function"].contains(&entry.tag.as_str());
                assert_eq!(entry.r#return.is_some(), returns, "{place}");
                assert_eq!(entry.next.is_some(), entry.tag == "fork", "{place}");
                for name in [&entry.target, &entry.r#return, &entry.next].into_iter().flatten() {
                    assert!(states.contains(name), "{place}: there is no {name}");
                }
            }
        }
    }
}

#[test]
fn every_state_has_replies_with_just_one_tag() {
    for sample in SAMPLES {
        let replies = sample.replies();
        let answered: BTreeSet<String> = replies.keys().cloned().collect();
        assert_eq!(answered, sample.states(), "{}: the states with replies", sample.name);
        for (state, texts) in &replies {
            let policy = sample.policy(state);
            let implicit = policy.len() == 1 && policy[0].tag != "result";
            let has_output = sample.frontmatter(state).output.is_some();
            for (index, text) in texts.iter().enumerate() {
                let forgets = (sample.name, state.as_str(), index) == FORGETS_ITS_TAG;
                let has_no_tag = forgets || has_output;
                let allowed = if has_no_tag { 0..=0 } else { usize::from(!implicit)..=1 };
                let found = opened_and_closed(text);
                assert!(allowed.contains(&found), "{}/{state}, reply {index}", sample.name);
            }
        }
    }
}

#[test]
fn every_placeholder_has_a_source_that_fills_it() {
    for sample in SAMPLES {
        let mut texts: Vec<String> = sample.replies().into_values().flatten().collect();
        let written = sample.steps.join("\n");
        texts.extend(sample.states().iter().map(|state| read(&sample.path().join(state))));
        for name in texts.iter().flat_map(|text| placeholders(text)) {
            let known = KNOWN.contains(&name.split('.').next().unwrap_or(name))
                || written.contains(&format!(" {name}=\""))
                || written.contains(&format!(" as=\"{name}\""));
            assert!(known, "{}: nothing fills {{{{{name}}}}}", sample.name);
        }
    }
}

impl SampleWorkflow {
    fn states(&self) -> BTreeSet<String> {
        let mut files = names(&self.path());
        assert!(files.remove("replies.yaml"), "{} has no replies.yaml", self.name);
        files.retain(|name| !name.ends_with(".schema.json") && name != "tests");
        files
    }

    fn policy(&self, state: &str) -> Vec<AllowedTransition> {
        self.frontmatter(state).allowed_transitions
    }

    fn frontmatter(&self, state: &str) -> SampleFrontmatter {
        let text = read(&self.path().join(state));
        let yaml = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
        let (yaml, _) = yaml.unwrap_or_else(|| panic!("{}/{state}: no frontmatter", self.name));
        let front: SampleFrontmatter = serde_yaml::from_str(yaml).expect("frontmatter is YAML");
        let model = front.model.as_deref().unwrap_or("opus");
        assert!(["opus", "sonnet", "haiku"].contains(&model), "{state}: {model}");
        front
    }

    fn replies(&self) -> BTreeMap<String, Vec<String>> {
        let yaml = read(&self.path().join("replies.yaml"));
        let replies: BTreeMap<String, Vec<Value>> =
            serde_yaml::from_str(&yaml).expect("replies.yaml has a list of replies a state");
        let text = |reply: &Value| reply.as_str().or(reply["reply"].as_str()).map(str::to_owned);
        let texts = |list: Vec<Value>| list.iter().map(|r| text(r).expect("a reply")).collect();
        replies.into_iter().map(|(state, list)| (state, texts(list))).collect()
    }
}

#[derive(Deserialize)]
struct SampleFrontmatter {
    model: Option<String>,
    output: Option<String>,
    #[serde(default)]
    allowed_transitions: Vec<AllowedTransition>,
}

#[derive(Debug, Deserialize)]
struct AllowedTransition {
    tag: String,
    target: Option<String>,
    r#return: Option<String>,
    next: Option<String>,
}

/// Returns the number of complete tags in a text; the inside of a tag is skipped.
fn opened_and_closed(text: &str) -> usize {
    let mut rest = text;
    let mut found = 0;
    while let Some((_, after)) = rest.split_once('<') {
        rest = after;
        let opened = TAGS.iter().find(|tag| {
            let next = after.strip_prefix(**tag).and_then(|rest| rest.chars().next());
            next.is_some_and(|next| next == '>' || next.is_whitespace())
        });
        let closed = opened.and_then(|tag| after.split_once(&format!("</{tag}>")));
        if let Some((_, after)) = closed {
            rest = after;
            found += 1;
        }
    }
    found
}

fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    let names = text.split("{{").skip(1);
    names.filter_map(|rest| rest.split_once("}}")).map(|(name, _)| name.trim())
}
