//! Tests of evaluators: reading them, and their verdicts on requested transitions.

use super::*;
use crate::prompt::document;

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
        scope: None,
        variables: Variables::new(),
    }
}

fn asked(transition: Transition) -> AcceptedTransition {
    AcceptedTransition { transition, implicit: false, overruled: None }
}

#[test]
fn pattern_and_prompt_evaluators_are_parsed() {
    let pattern = read("{ pattern: 'fail(ed)?', then: { tag: goto, target: A.md } }");
    let expected = Evaluator::Pattern {
        pattern: "fail(ed)?".to_owned(),
        found: Some(Box::new(goto("A.md"))),
        missing: None,
    };
    assert_eq!(pattern, Ok(Some(expected)));
    let file = StateName::parse("CHECK.md").expect("a state");
    let prompt = Evaluator::Prompt { file, model: Some(ModelName::HAIKU) };
    assert_eq!(read("{ prompt: CHECK.md, model: haiku }"), Ok(Some(prompt)));
}

#[test]
fn invalid_evaluator_is_error_with_location_and_hint() {
    let table = [
        ("{ model: haiku }", "5:12: an evaluator has either a `pattern` or a `prompt`"),
        (
            "{ pattern: '(', then: { tag: result } }",
            "5:23: `(` is not a regular expression: unclosed group",
        ),
        (
            "{ pattern: x }",
            "5:23: a pattern needs `then`, the transition to take if it matches, or `else`, if it does not",
        ),
        (
            "{ pattern: x, then: { tag: goto, target: B.md } }",
            "5:32: <goto>B.md</goto> is not among the allowed_transitions of this state, and an evaluator cannot bypass them; list it there",
        ),
        (
            "{ pattern: x, model: opus, then: { tag: result } }",
            "5:33: a pattern has no model; leave it out, or name a `prompt`",
        ),
        (
            "{ prompt: C.md, then: { tag: result } }",
            "5:34: the answer of a prompt says which transition to take; leave out `then` and `else`",
        ),
    ];
    for (block, message) in table {
        assert_eq!(read(block).expect_err(block), message);
    }
}

#[test]
fn pattern_evaluator_overrides_on_match_or_on_no_match() {
    let (yes, no) = (goto("YES.md"), goto("NO.md"));
    let judged = |reply: &str, found, missing| {
        judged_by_pattern(asked(goto("A.md")), reply, "(?i)fail", found, missing).transition
    };
    assert_eq!(judged("it FAILED", Some(&yes), Some(&no)), yes);
    assert_eq!(judged("it works", Some(&yes), Some(&no)), no);
    assert_eq!(judged("it works", Some(&yes), None), goto("A.md"));
    let result = |payload: &str| Transition::Result {
        payload: payload.to_owned(),
        variables: Variables::new(),
        structured: false,
    };
    let end = result("");
    let kept = judged_by_pattern(asked(result("all of it")), "fail", "fail", Some(&end), None);
    assert_eq!((kept.transition, kept.overruled), (result("all of it"), None));
    let same = judged_by_pattern(asked(yes.clone()), "fail", "fail", Some(&yes), None);
    assert_eq!(same.overruled, None, "what was asked for anyway is not overruled");
}

#[test]
fn prompt_evaluator_overrides_only_with_single_tag() {
    let proposal = TransitionProposal {
        transition: goto("A.md"),
        implicit: true,
        output: String::new(),
        evaluator: StateName::parse("CHECK.md").expect("a state"),
        session: raymond_model::session::Session::fresh(raymond_model::id::SessionId::new("s")),
    };
    let (judged, wrong) = judged_by_prompt(&proposal, Ok(asked(goto("B.md"))));
    assert_eq!((judged.transition, wrong), (goto("B.md"), None));
    let overruled = judged.overruled.expect("overruled");
    assert_eq!((overruled.asked, &*overruled.by), (Some(goto("A.md")), "the evaluator CHECK.md"));
    let result = |payload: &str| Transition::Result {
        payload: payload.to_owned(),
        variables: Variables::new(),
        structured: false,
    };
    let ended = TransitionProposal { transition: result("all of it"), ..proposal.clone() };
    let (kept, _) = judged_by_prompt(&ended, Ok(asked(result("…"))));
    assert_eq!(kept.transition, result("all of it"), "what it was shown is no other result");
    let (judged, _) = judged_by_prompt(&ended, Ok(asked(result("a part"))));
    assert_eq!(judged.transition, result("a part"));
    let silent = Err(ProtocolViolation::NoTag { near_misses: Vec::new() });
    let (kept, wrong) = judged_by_prompt(&proposal, silent);
    assert_eq!((kept.transition, kept.implicit, wrong), (goto("A.md"), true, None));
    let several = ProtocolViolation::SeveralTags { tags: Vec::new() };
    let (kept, wrong) = judged_by_prompt(&proposal, Err(several.clone()));
    assert_eq!((kept.overruled, wrong), (None, Some(several)));
}

#[test]
fn pattern_evaluator_with_ask_needs_question() {
    let asks = |then: &str| {
        let yaml = format!(
            "allowed_transitions:\n  - {{ tag: ask, next: A.md }}\nevaluator:\n  pattern: delete\n  then: {{ tag: ask, next: A.md{then} }}\n"
        );
        super::super::frontmatter::parse(&yaml).map(|read| read.evaluator)
    };
    let error = asks("").expect_err("nothing is asked").to_string();
    assert_eq!(error, "5:9: the question is missing; add `question`, which the person reads");
    let Ok(Some(Evaluator::Pattern { found: Some(found), .. })) = asks(", question: Sure?") else {
        panic!("a pattern");
    };
    assert!(matches!(&*found, Transition::Ask { question, .. } if question == "Sure?"));
}
