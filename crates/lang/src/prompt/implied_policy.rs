//! The policy that the tags in a prompt's text imply, for a state that has none.
//!
//! A state without a policy may go anywhere, and a reply that cannot be used ends its agent. With a policy the agent is
//! reminded.

use super::document;
use super::workflow_map::{FolderPrompt, WorkflowMap};
use raymond_model::id::{ScopePath, StateName};
use raymond_model::transition::Transition;

/// A state without a policy, and the policy that its text implies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImpliedPolicy {
    pub state: StateName,
    /// The entries of `allowed_transitions`, in the order of the tags.
    pub entries: Vec<String>,
}

impl ImpliedPolicy {
    /// Returns the policies of all states that have none and whose text shows only whole tags. A policy that would
    /// refuse one of these tags is not implied, nor is a single way on: it would be taken without its tag.
    pub fn all(map: &WorkflowMap) -> Vec<Self> {
        let of = |(state, prompt): (&StateName, &FolderPrompt)| {
            let implied = Self { state: state.clone(), entries: entries(prompt)? };
            let policy = document::examine(&implied.written_into("x")?).document.frontmatter.policy;
            let mut shown = prompt.shown.iter().filter_map(|tag| tag.transition.as_ref().ok());
            (policy.implied().is_none() && shown.all(|transition| policy.allows(transition)))
                .then_some(implied)
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
        let with_policy = "---\nallowed_transitions: [{ tag: result }]\n---\n<goto>START.md</goto>";
        for text in [
            "no tag",
            "`<result>x</result>`",
            "`<goto>START.md</goto>` or <result>x</result>",
            "Only if it is good: <goto>START.md</goto>",
            "<ask next=\"START.md\" timeout=\"1s\" timeout_next=\"START.md\">a</ask> or <result>x</result>",
            "<fork next=\"START.md\" cwd=\"a\">START.md</fork> or <result>x</result>",
            open,
            with_policy,
            "---\nmodle: x\n---\n<result>x</result>",
        ] {
            assert!(implied(&[("START.md", text)]).is_empty(), "{text}");
        }
    }
}
