//! A look ahead: the states that policies can lead to, before any of them is paid for.
//!
//! What is found wrong is no reason not to run, because a workflow may write a state's file before it
//! enters it; but it is worth a warning at the start instead of a failure at night.

use std::collections::BTreeSet;

use super::document;
use super::evaluator::Evaluator;
use crate::domain::id::StateName;
use crate::language::source::Source;
use crate::language::template;

/// How many states are looked at, at the most.
const FAR_ENOUGH: usize = 1000;

/// What is wrong with the states that can be reached from `entry` by policies, a text each.
#[must_use]
pub fn survey(entry: &StateName, source: &dyn Source) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut seen = BTreeSet::from([entry.clone()]);
    let mut to_look_at = vec![entry.clone()];
    while let Some(state) = to_look_at.pop() {
        if !state.is_prompt() {
            continue;
        }
        let Ok(text) = source.read(&state) else { continue };
        let document = match document::parse(&text) {
            Ok(document) => document,
            Err(error) if state == *entry => {
                return vec![format!("{}:{error}", source.path(&state))];
            }
            Err(error) => {
                warnings.push(format!("{}:{error}", source.path(&state)));
                continue;
            }
        };
        let allowed = &document.frontmatter.policy.allowed;
        let evaluator = match &document.frontmatter.evaluator {
            Some(Evaluator::Prompt { file, .. }) => Some(file),
            _ => None,
        };
        if let Some(file) = evaluator {
            warnings.extend(blind(file, source));
        }
        let named = allowed
            .iter()
            .flat_map(|entry| [entry.target(), entry.continuation()])
            .flatten()
            .chain(evaluator);
        for next in named {
            if seen.len() < FAR_ENOUGH && seen.insert(next.clone()) {
                match source.check(next) {
                    Ok(()) => to_look_at.push(next.clone()),
                    Err(error) => {
                        warnings.push(format!("{} names {next}, but {error}", source.path(&state)));
                    }
                }
            }
        }
    }
    warnings.sort();
    warnings
}

/// That an evaluator is never shown what it is to judge, if so.
fn blind(file: &StateName, source: &dyn Source) -> Option<String> {
    let text = source.read(file).ok()?;
    let unfilled = template::fill(&text, |_| None).unknown;
    let shown = unfilled.iter().any(|(name, _)| matches!(&**name, "output" | "transition"));
    let path = source.path(file);
    (!shown).then(|| {
        format!(
            "{path}: an evaluator sees only its prompt; show it {{{{output}}}}, the reply it judges"
        )
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn mistakes_far_ahead_are_seen() {
        let goto = |target: &str| {
            format!("---\nallowed_transitions:\n  - {{ tag: goto, target: {target} }}\n---\nx")
        };
        let files: BTreeMap<String, String> = [
            ("START.md", goto("NEXT.md")),
            ("NEXT.md", "---\nallowed_transitions:\n  - { tag: call, target: SUB.md, return: STRAT.md }\n---\nx".into()),
            ("SUB.md", "---\nmodle: x\n---\nx".into()),
            ("UNREACHED.md", "---\nmodle: x\n---\nx".into()),
        ]
        .map(|(name, text)| (name.to_owned(), text))
        .into();
        assert_eq!(
            survey(&StateName::parse("START.md").expect("a state"), &files),
            [
                "NEXT.md names STRAT.md, but STRAT.md: there is no such file in the workflow; did you mean START.md?",
                "SUB.md:2:1: unknown key `modle`; did you mean `model`?",
            ]
        );
    }

    #[test]
    fn circles_end_and_a_sound_workflow_has_no_warnings() {
        let goto = |target: &str| {
            format!("---\nallowed_transitions:\n  - {{ tag: goto, target: {target} }}\n---\nx")
        };
        let files: BTreeMap<String, String> =
            [("A.md".to_owned(), goto("B.md")), ("B.md".to_owned(), goto("A.md"))].into();
        assert!(survey(&StateName::parse("A.md").expect("a state"), &files).is_empty());
    }

    #[test]
    fn an_evaluator_that_is_shown_nothing_is_seen() {
        let warnings = |check: &str| {
            let files: BTreeMap<String, String> =
                [("A.md", "---\nevaluator: { prompt: CHECK.md }\n---\nx"), ("CHECK.md", check)]
                    .map(|(name, text)| (name.to_owned(), text.to_owned()))
                    .into();
            survey(&StateName::parse("A.md").expect("a state"), &files)
        };
        assert!(warnings("is {{ output }} good?").is_empty());
        assert!(warnings("may it {{transition}}?").is_empty());
        let blind =
            "CHECK.md: an evaluator sees only its prompt; show it {{output}}, the reply it judges";
        assert_eq!(warnings("is it good?"), [blind]);
    }
}
