//! The pieces of a tag that make a transition, and those that do not.

use super::*;

fn make(tag: TagName, attributes: &[(&str, &str)], body: &str) -> Result<Transition, String> {
    let owned = attributes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Transition::from_parts(tag, owned, body).map_err(|error| error.to_string())
}

#[test]
fn attributes_without_reserved_name_become_variables() {
    let fork =
        make(TagName::Fork, &[("item", "a b"), ("next", "N.md")], " W.md\n").expect("a fork");
    assert_eq!(fork.to_string(), "<fork next=\"N.md\" item=\"a b\">W.md</fork>");
    assert_eq!(fork.variables().len(), 1);
    let call = make(TagName::Call, &[("return", "R.md")], "C.md").expect("a call");
    assert_eq!(call.continuation().map(StateName::as_str), Some("R.md"));
}

#[test]
fn result_payload_preserves_whitespace() {
    let result = make(TagName::Result, &[], "  two\nlines ").expect("a result");
    assert_eq!(
        result,
        Transition::Result {
            payload: "  two\nlines ".into(),
            variables: Variables::new(),
            structured: false
        }
    );
}

#[test]
fn invalid_attribute_or_target_is_error_naming_it() {
    let message = |tag, attributes: &[(&str, &str)], body| {
        make(tag, attributes, body).expect_err("not a transition")
    };
    assert_eq!(
        message(TagName::Call, &[], "C.md"),
        "<call> needs the attribute return=\"FILE.md\""
    );
    assert_eq!(
        message(TagName::Goto, &[("next", "N.md")], "C.md"),
        "<goto> does not take the attribute `next`"
    );
    assert_eq!(
        message(TagName::Ask, &[("next", "N.md"), ("cd", "x")], "why?"),
        "<ask> does not take the attribute `cd`; only a <fork> takes a directory, cwd=\"DIR\", for the agent that it starts: to hand on a path, use another name, such as path=\"DIR\""
    );
    for tag in TagName::ALL.iter().filter(|tag| **tag != TagName::Fork) {
        for attribute in ["cd", "cwd"] {
            let needed = tag.required_attribute().map(|name| (name, "N.md"));
            let attributes: Vec<_> = needed.into_iter().chain([(attribute, "sub")]).collect();
            let refused = message(*tag, &attributes, "C.md");
            assert!(
                refused.contains(&format!("does not take the attribute `{attribute}`")),
                "{refused}"
            );
        }
    }
    let both = message(TagName::Fork, &[("next", "N.md"), ("cd", "a"), ("cwd", "b")], "C.md");
    assert!(both.contains("another name"), "{both}");
    let moved = make(TagName::Fork, &[("next", "N.md"), ("cd", "./a")], "C.md").expect("a fork");
    assert_eq!(moved.to_string(), "<fork next=\"N.md\" cwd=\"a\">C.md</fork>");
    assert_eq!(
        message(TagName::Goto, &[("a", "1"), ("a", "2")], "C.md"),
        "<goto> has the attribute `a` twice"
    );
    assert!(
        message(TagName::Goto, &[], "a\\x.md").contains("`a\\x.md` is not a file of the workflow")
    );
    assert!(message(TagName::Fork, &[("next", "a/b")], "C.md").contains("`/`"));
}

#[test]
fn transition_round_trips_through_tagged_json() {
    let call = make(TagName::Call, &[("return", "R.md"), ("x", "1")], "C.md").expect("a call");
    let json = serde_json::to_string(&call).expect("JSON");
    assert_eq!(json, r#"{"tag":"call","target":"C.md","return":"R.md","variables":{"x":"1"}}"#);
    assert_eq!(serde_json::from_str::<Transition>(&json).expect("reads back"), call);
}

#[test]
fn tag_with_too_many_attributes_is_invalid() {
    let of = |count: usize| {
        let names: Vec<String> = (0..count).map(|number| format!("a{number}")).collect();
        let attributes: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
        make(TagName::Goto, &attributes, "A.md")
    };
    assert!(of(MAX_ATTRIBUTES).is_ok());
    let error = of(MAX_ATTRIBUTES + 1).expect_err("too many");
    assert!(error.starts_with("<goto> has more than 256 attributes"), "{error}");
}

#[test]
fn long_tag_is_shown_without_its_middle() {
    let variables = Variables::from([("list".to_owned(), "ü".repeat(1_000))]);
    let long = Transition::Goto {
        target: StateName::parse("NEXT.md").expect("a state"),
        scope: None,
        variables,
    };
    let shown = long.in_short();
    assert!(shown.len() < 320 && shown.starts_with("<goto list=\"ü"), "{shown}");
    assert!(shown.contains(" … ") && shown.ends_with("\">NEXT.md</goto>"), "{shown}");
}

#[test]
fn reset_may_keep_the_pending_returns_and_nothing_else() {
    let reset = make(TagName::Reset, &[("keep", "stack"), ("x", "1")], "A.md").expect("a reset");
    assert!(matches!(reset, Transition::Reset { keeps_stack: true, .. }));
    assert_eq!(reset.to_string(), "<reset keep=\"stack\" x=\"1\">A.md</reset>");
    let why = make(TagName::Reset, &[("keep", "all")], "A.md").expect_err("not a transition");
    assert_eq!(why, "<reset> keeps only the pending returns: keep=\"stack\"");
}
