//! Replies under policies: accepted, implied and refused ones, with the words of the refusal.

use super::*;

fn tag(tag: TagName, attributes: &[(&str, &str)], body: &str) -> Transition {
    let owned = attributes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Transition::from_parts(tag, owned, body).expect("a transition")
}

fn goto(target: &str) -> Transition {
    tag(TagName::Goto, &[], target)
}

fn reply(tags: &[Transition]) -> ReplyTags {
    ReplyTags { tags: tags.iter().cloned().map(Ok).collect(), ..ReplyTags::default() }
}

#[test]
fn reply_without_exactly_one_tag_is_violation() {
    let open = TransitionPolicy::default();
    assert!(open.judge(reply(&[goto("A.md")])).is_ok());
    assert!(matches!(open.judge(reply(&[])), Err(ProtocolViolation::NoTag { .. })));
    let several = open.judge(reply(&[goto("A.md"), goto("B.md")])).expect_err("two tags");
    assert_eq!(
        several.to_string(),
        "the reply has 2 transition tags, exactly one is needed: <goto>A.md</goto>, <goto>B.md</goto>"
    );
}

#[test]
fn policy_matches_structure_strictly_and_ignores_extra_variables() {
    let call = tag(TagName::Call, &[("return", "S.md")], "R.md");
    let policy = TransitionPolicy {
        allowed: vec![call.clone(), tag(TagName::Fork, &[("next", "N.md"), ("kind", "a")], "W.md")],
        ..TransitionPolicy::default()
    };
    let accepts = |asked: &Transition| policy.judge(reply(std::slice::from_ref(asked))).is_ok();
    assert!(accepts(&call));
    assert!(accepts(&tag(TagName::Call, &[("return", "S.md"), ("extra", "1")], "R.md")));
    assert!(!accepts(&tag(TagName::Call, &[("return", "T.md")], "R.md")));
    assert!(!accepts(&tag(TagName::Function, &[("return", "S.md")], "R.md")));
    assert!(accepts(&tag(
        TagName::Fork,
        &[("next", "N.md"), ("kind", "a"), ("item", "1")],
        "W.md"
    )));
    assert!(!accepts(&tag(TagName::Fork, &[("next", "N.md"), ("kind", "b")], "W.md")));
    assert!(!accepts(&tag(TagName::Fork, &[("next", "N.md")], "W.md")));
}

#[test]
fn sole_allowed_transition_is_implied_without_tag() {
    let policy = TransitionPolicy { allowed: vec![goto("NEXT.md")], ..TransitionPolicy::default() };
    let implied = policy.judge(reply(&[])).expect("implied");
    assert_eq!(
        implied,
        AcceptedTransition { transition: goto("NEXT.md"), implicit: true, overruled: None }
    );
    assert!(!policy.judge(reply(&[goto("NEXT.md")])).expect("said").implicit);
    assert!(policy.judge(reply(&[goto("OTHER.md")])).is_err());
}

#[test]
fn result_is_never_implied() {
    let policy = TransitionPolicy {
        allowed: vec![tag(TagName::Result, &[], "")],
        ..TransitionPolicy::default()
    };
    assert!(matches!(policy.judge(reply(&[])), Err(ProtocolViolation::NoTag { .. })));
    assert!(policy.judge(reply(&[tag(TagName::Result, &[], "anything")])).is_ok());
    let two = TransitionPolicy {
        allowed: vec![goto("A.md"), goto("B.md")],
        ..TransitionPolicy::default()
    };
    assert!(two.judge(reply(&[])).is_err());
}

#[test]
fn ask_is_never_implied_and_must_match_allowed_timeout() {
    let ask = |late: &[(&str, &str)], text: &str| {
        tag(TagName::Ask, &[&[("next", "N.md")], late].concat(), text)
    };
    let late = |hours, state| [("timeout", hours), ("timeout_next", state)];
    let policy = TransitionPolicy {
        allowed: vec![ask(&late("1h", "L.md"), "…")],
        ..TransitionPolicy::default()
    };
    assert!(policy.judge(reply(&[])).is_err(), "nobody knows what would be asked");
    assert!(policy.allows(&ask(&late("60m", "L.md"), "Which?")));
    assert!(!policy.allows(&ask(&late("2h", "L.md"), "Which?")));
    assert!(!policy.allows(&ask(&[], "Which?")));
    assert!(!policy.allows(&ask(&late("1h", "OTHER.md"), "Which?")));
    let without =
        TransitionPolicy { allowed: vec![ask(&[], "…")], ..TransitionPolicy::default() };
    assert!(without.allows(&ask(&[], "Which?")));
    assert!(!without.allows(&ask(&late("1h", "OTHER.md"), "Which?")));
}

#[test]
fn reply_with_too_many_fork_tags_is_violation() {
    let many = TransitionPolicy { many_forks: true, ..TransitionPolicy::default() };
    let forks = vec![tag(TagName::Fork, &[("next", "N.md")], "W.md"); 2];
    assert!(many.judge(reply(&forks)).is_ok());
    let cut = ReplyTags { cut: true, ..reply(&forks) };
    assert_eq!(
        many.judge(cut.clone()).expect_err("cut").to_string(),
        "the reply has too many transition tags, and only 2 of them were read; fork fewer in one reply, or all with one tag and a list of them, such as each=\"items.json\""
    );
    let several = TransitionPolicy::default().judge(cut).expect_err("cut");
    assert!(matches!(several, ProtocolViolation::SeveralTags { .. }));
}

#[test]
fn near_miss_tags_are_named_in_violation() {
    let near_misses = vec!["an unclosed <goto>".into()];
    let reading = ReplyTags { near_misses, ..ReplyTags::default() };
    let violation = TransitionPolicy::default().judge(reading).expect_err("no tag");
    assert_eq!(violation.to_string(), "the reply has no transition tag; found an unclosed <goto>");
}

#[test]
fn fixed_text_of_result_is_the_only_allowed_text_and_implied() {
    let result = |payload: &str| Transition::Result {
        payload: payload.to_owned(),
        variables: Variables::new(),
        structured: false,
    };
    let tags =
        |transition: Transition| ReplyTags { tags: vec![Ok(transition)], ..ReplyTags::default() };
    let policy = TransitionPolicy {
        allowed: vec![result("YES"), result("NO")],
        ..TransitionPolicy::default()
    };
    assert!(policy.judge(tags(result(" NO\n"))).is_ok());
    let refused = policy.judge(tags(result("maybe"))).expect_err("refused").to_string();
    assert_eq!(refused, "<result>maybe</result> is not an allowed transition of this state");
    let done = Transition::from_parts(TagName::Result, [("value".into(), "done".into())], "");
    let policy =
        TransitionPolicy { allowed: vec![done.expect("fits")], ..TransitionPolicy::default() };
    let refused = policy.judge(tags(result("hi"))).expect_err("refused").to_string();
    assert!(
        refused.ends_with("state, which allows <result value=\"done\">…</result>"),
        "{refused}"
    );
    assert!(policy.judge(ReplyTags::default()).is_err());
    let only = TransitionPolicy { allowed: vec![result("DONE")], ..TransitionPolicy::default() };
    let taken = only.judge(ReplyTags::default()).expect("taken");
    assert_eq!((taken.transition, taken.implicit), (result("DONE"), true));
}

#[test]
fn forced_transition_is_taken_whatever_tags_the_reply_has() {
    let next = Transition::from_parts(TagName::Goto, [], "NEXT.md").expect("a goto");
    let policy = TransitionPolicy {
        allowed: vec![next.clone()],
        force_implicit: true,
        ..TransitionPolicy::default()
    };
    let other = Transition::from_parts(TagName::Reset, [], "OTHER.md");
    let reading = ReplyTags { tags: vec![other.clone(), other], ..ReplyTags::default() };
    let taken = policy.judge(reading).expect("taken");
    assert_eq!((taken.transition, taken.implicit), (next, true));
}
