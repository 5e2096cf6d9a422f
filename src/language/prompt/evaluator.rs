//! The evaluator of a state: a second look at what its agent asks for, before it is taken.
//!
//! ```yaml
//! evaluator: { pattern: "(?i)tests? fail", then: { tag: goto, target: FIX.md } }
//! ```
//!
//! A pattern is a regular expression that is looked for in the reply: `then` is taken where it is
//! found, `else` where it is not; with only one of them, what was asked for stands otherwise. A result
//! that is taken instead of another transition is the whole reply.
//!
//! ```yaml
//! evaluator: { prompt: CHECK.md, model: haiku }
//! ```
//!
//! A prompt is a file beside the state's. It is asked in a fresh session, by haiku if neither this
//! nor its own head names a model, and finds the reply in `{{output}}` and the tag in
//! `{{transition}}`, besides the values of the state. One tag in its answer that the state allows is
//! taken instead; whatever else it answers keeps what was asked for. It cannot be evaluated itself.
//!
//! Either way a transition has to be one that the state allows: an evaluator is no way around a policy.

use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_yaml::Spanned;

use super::frontmatter::{Entry, EntryPlace, entry};
use crate::domain::evaluation::{Overruled, Proposal};
use crate::domain::id::StateName;
use crate::domain::policy::{Accepted, Policy, Violation};
use crate::domain::settings::Model;
use crate::domain::transition::{Transition, Variables};
use crate::language::manifest;
use crate::language::place::Place;
use crate::language::yaml::{Error, value};

/// Who takes the second look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evaluator {
    /// A regular expression.
    Pattern {
        /// As it is written; it is known to be one.
        pattern: String,
        /// What is taken where it is found.
        found: Option<Transition>,
        /// What is taken where it is not.
        missing: Option<Transition>,
    },
    /// A turn of its own.
    Prompt {
        /// Its prompt.
        file: StateName,
        /// Its model.
        model: Option<Model>,
    },
}

/// The block as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raw {
    pattern: Option<Spanned<String>>,
    then: Option<Spanned<Entry>>,
    #[serde(rename = "else")]
    otherwise: Option<Spanned<Entry>>,
    prompt: Option<Spanned<String>>,
    model: Option<Spanned<String>>,
}

impl Raw {
    /// Where the prompt's file is named.
    pub(super) fn place_of_prompt(&self) -> Option<Place> {
        self.prompt.as_ref().map(|prompt| prompt.referenced.into())
    }

    /// Where `then` and `else` stand, those that are there.
    pub(super) fn places_of_entries(&self) -> Vec<EntryPlace> {
        [&self.then, &self.otherwise].into_iter().flatten().map(EntryPlace::of).collect()
    }

    /// What it means, under the state's policy. `place` is where the block stands.
    ///
    /// # Errors
    /// [`Error`] with the place of what makes no sense.
    pub(super) fn read(
        self,
        policy: &Policy,
        place: serde_yaml::Location,
    ) -> Result<Evaluator, Error> {
        match (self.pattern, self.prompt) {
            (Some(pattern), None) => {
                if let Some(model) = self.model {
                    let message = "a pattern has no model; leave it out, or name a `prompt`";
                    return Err(Error::at(model.referenced, message.to_owned()));
                }
                compile(&pattern.value).map_err(|why| Error::at(pattern.referenced, why))?;
                let found = self.then.map(|entry| allowed(entry, policy)).transpose()?;
                let missing = self.otherwise.map(|entry| allowed(entry, policy)).transpose()?;
                if found.is_none() && missing.is_none() {
                    let message = "a pattern needs `then`, the transition that is taken where it is found, or `else`, where it is not";
                    return Err(Error::at(pattern.referenced, message.to_owned()));
                }
                Ok(Evaluator::Pattern { pattern: pattern.value, found, missing })
            }
            (None, Some(prompt)) => {
                if let Some(stray) = self.then.or(self.otherwise) {
                    let message = "a prompt's answer says itself what is taken instead; leave `then` and `else` out";
                    return Err(Error::at(stray.referenced, message.to_owned()));
                }
                let file = value(Some(prompt), |name| {
                    StateName::parse(name).map_err(|error| error.to_string())
                })?;
                let model = value(self.model, manifest::model)?;
                let missing = || Error::at(place, "an evaluator needs a prompt".to_owned());
                Ok(Evaluator::Prompt { file: file.ok_or_else(missing)?, model })
            }
            _ => {
                let message = "an evaluator has either a `pattern` or a `prompt`";
                Err(Error::at(place, message.to_owned()))
            }
        }
    }
}

/// A transition that the state allows.
fn allowed(written: Spanned<Entry>, policy: &Policy) -> Result<Transition, Error> {
    let place = written.referenced;
    let transition = entry(written)?;
    if policy.allows(&transition) {
        return Ok(transition);
    }
    let message = format!(
        "{transition} is not among the allowed_transitions of this state, and an evaluator is no way around them; list it there"
    );
    Err(Error::at(place, message))
}

fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern).size_limit(1 << 20).build().map_err(|error| {
        let text = error.to_string();
        let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        format!("`{pattern}` is not a regular expression: {why}")
    })
}

/// What a pattern makes of a transition that a reply asks for.
#[must_use]
pub fn judged_by_pattern(
    accepted: Accepted,
    reply: &str,
    pattern: &str,
    (found, missing): (Option<&Transition>, Option<&Transition>),
) -> Accepted {
    let is_found = compile(pattern).is_ok_and(|regex| regex.is_match(reply));
    let (instead, reason) = if is_found {
        (found, format!("found `{pattern}`"))
    } else {
        (missing, format!("found no `{pattern}`"))
    };
    match instead {
        Some(instead) if is_meant(instead, &accepted.transition) => accepted,
        Some(Transition::Result { variables, .. }) => {
            let (payload, variables) = (reply.trim().to_owned(), variables.clone());
            let whole = Transition::Result { payload, variables };
            overruled(accepted, whole, "the evaluator", reason)
        }
        Some(instead) => overruled(accepted, instead.clone(), "the evaluator", reason),
        None => accepted,
    }
}

/// Whether what was asked for is what an entry means already, as in a policy: then it stands, with its
/// payload and its variables.
fn is_meant(entry: &Transition, asked: &Transition) -> bool {
    Policy { allowed: vec![entry.clone()] }.allows(asked)
}

/// The placeholders of an evaluator's prompt, besides those of the state: what it is to judge.
pub const SHOWN: [&str; 2] = ["output", "transition"];

/// Their values.
#[must_use]
pub fn values(proposal: &Proposal) -> Variables {
    let values = [proposal.output.clone(), proposal.transition.to_string()];
    SHOWN.map(str::to_owned).into_iter().zip(values).collect()
}

/// What an evaluator's answer makes of a proposal; the second says what is wrong with an answer that
/// tries to override and cannot.
#[must_use]
pub fn judged_by_prompt(
    proposal: &Proposal,
    answer: Result<Accepted, Violation>,
) -> (Accepted, Option<Violation>) {
    let asked = Accepted {
        transition: proposal.transition.clone(),
        implicit: proposal.implicit,
        overruled: None,
    };
    match answer {
        Ok(answer) if !answer.implicit && !quotes(&answer.transition, &asked.transition) => {
            let by = format!("the evaluator {}", proposal.evaluator);
            (overruled(asked, answer.transition, &by, String::new()), None)
        }
        Ok(_) | Err(Violation::NoTag { .. }) => (asked, None),
        Err(violation) => (asked, Some(violation)),
    }
}

/// Whether an answer only repeats the tag it was shown, in which a result's text is left out.
fn quotes(answer: &Transition, asked: &Transition) -> bool {
    let is_left_out = matches!(answer, Transition::Result { payload, .. } if payload == "…");
    is_left_out && answer.to_string() == asked.to_string()
}

fn overruled(asked: Accepted, instead: Transition, by: &str, reason: String) -> Accepted {
    if asked.transition == instead {
        return asked;
    }
    let overruled = Overruled { asked: Some(asked.transition), by: by.to_owned(), reason };
    Accepted { transition: instead, implicit: false, overruled: Some(Box::new(overruled)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::prompt::document;

    fn read(block: &str) -> Result<Option<Evaluator>, String> {
        let text = format!(
            "---\nallowed_transitions:\n  - {{ tag: goto, target: A.md }}\n  - {{ tag: result }}\nevaluator: {block}\n---\nDo it.\n"
        );
        let parsed = document::parse(&text).map_err(|error| error.to_string())?;
        Ok(parsed.frontmatter.evaluator)
    }

    fn goto(target: &str) -> Transition {
        Transition::Goto {
            target: StateName::parse(target).expect("a state"),
            variables: Variables::new(),
        }
    }

    fn asked(transition: Transition) -> Accepted {
        Accepted { transition, implicit: false, overruled: None }
    }

    #[test]
    fn both_kinds_are_read() {
        let pattern = read("{ pattern: 'fail(ed)?', then: { tag: goto, target: A.md } }");
        let expected = Evaluator::Pattern {
            pattern: "fail(ed)?".to_owned(),
            found: Some(goto("A.md")),
            missing: None,
        };
        assert_eq!(pattern, Ok(Some(expected)));
        let file = StateName::parse("CHECK.md").expect("a state");
        let prompt = Evaluator::Prompt { file, model: Some(Model::Haiku) };
        assert_eq!(read("{ prompt: CHECK.md, model: haiku }"), Ok(Some(prompt)));
    }

    #[test]
    fn each_mistake_has_a_place_and_a_hint() {
        let table = [
            ("{ model: haiku }", "5:12: an evaluator has either a `pattern` or a `prompt`"),
            (
                "{ pattern: '(', then: { tag: result } }",
                "5:23: `(` is not a regular expression: unclosed group",
            ),
            (
                "{ pattern: x }",
                "5:23: a pattern needs `then`, the transition that is taken where it is found, or `else`, where it is not",
            ),
            (
                "{ pattern: x, then: { tag: goto, target: B.md } }",
                "5:32: <goto>B.md</goto> is not among the allowed_transitions of this state, and an evaluator is no way around them; list it there",
            ),
            (
                "{ pattern: x, model: opus, then: { tag: result } }",
                "5:33: a pattern has no model; leave it out, or name a `prompt`",
            ),
            (
                "{ prompt: C.md, then: { tag: result } }",
                "5:34: a prompt's answer says itself what is taken instead; leave `then` and `else` out",
            ),
        ];
        for (block, message) in table {
            assert_eq!(read(block).expect_err(block), message);
        }
    }

    #[test]
    fn a_pattern_overrides_where_it_is_found_or_where_it_is_not() {
        let (yes, no) = (goto("YES.md"), goto("NO.md"));
        let judged = |reply: &str, found, missing| {
            judged_by_pattern(asked(goto("A.md")), reply, "(?i)fail", (found, missing)).transition
        };
        assert_eq!(judged("it FAILED", Some(&yes), Some(&no)), yes);
        assert_eq!(judged("it works", Some(&yes), Some(&no)), no);
        assert_eq!(judged("it works", Some(&yes), None), goto("A.md"));
        let result = |payload: &str| Transition::Result {
            payload: payload.to_owned(),
            variables: Variables::new(),
        };
        let end = result("");
        let kept =
            judged_by_pattern(asked(result("all of it")), "fail", "fail", (Some(&end), None));
        assert_eq!((kept.transition, kept.overruled), (result("all of it"), None));
        let same = judged_by_pattern(asked(yes.clone()), "fail", "fail", (Some(&yes), None));
        assert_eq!(same.overruled, None, "what was asked for anyway is not overruled");
    }

    #[test]
    fn an_answer_overrides_with_one_tag_and_keeps_with_anything_else() {
        let proposal = Proposal {
            transition: goto("A.md"),
            implicit: true,
            output: String::new(),
            evaluator: StateName::parse("CHECK.md").expect("a state"),
            session: crate::domain::session::Session::fresh(crate::domain::id::SessionId::new("s")),
        };
        let (judged, wrong) = judged_by_prompt(&proposal, Ok(asked(goto("B.md"))));
        assert_eq!((judged.transition, wrong), (goto("B.md"), None));
        let overruled = judged.overruled.expect("overruled");
        assert_eq!(
            (overruled.asked, &*overruled.by),
            (Some(goto("A.md")), "the evaluator CHECK.md")
        );
        let result = |payload: &str| Transition::Result {
            payload: payload.to_owned(),
            variables: Variables::new(),
        };
        let ended = Proposal { transition: result("all of it"), ..proposal.clone() };
        let (kept, _) = judged_by_prompt(&ended, Ok(asked(result("…"))));
        assert_eq!(kept.transition, result("all of it"), "what it was shown is no other result");
        let (judged, _) = judged_by_prompt(&ended, Ok(asked(result("a part"))));
        assert_eq!(judged.transition, result("a part"));
        let silent = Err(Violation::NoTag { near_misses: Vec::new() });
        let (kept, wrong) = judged_by_prompt(&proposal, silent);
        assert_eq!((kept.transition, kept.implicit, wrong), (goto("A.md"), true, None));
        let several = Violation::SeveralTags { tags: Vec::new() };
        let (kept, wrong) = judged_by_prompt(&proposal, Err(several.clone()));
        assert_eq!((kept.overruled, wrong), (None, Some(several)));
    }
}
