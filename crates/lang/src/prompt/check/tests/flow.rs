//! Tests of the checks that workflows can end and that needed values are given.

use super::*;

#[test]
fn call_that_never_returns_is_reported() {
    let call = "tag: call, target: A.md, return: END.md";
    let end = ("END.md", "tag: result", "x");
    let found =
        diagnostics(&[("START.md", call, "x"), ("A.md", "tag: goto, target: A.md", "x"), end]);
    assert_eq!(
        found,
        [
            "START.md:3:26: RF301 this call of A.md never comes back: no way from there leads to a result; allow { tag: result } in a state it leads to"
        ]
    );
    let found =
        diagnostics(&[("START.md", call, "x"), ("A.md", "tag: reset, target: END.md", "x"), end]);
    assert_eq!(
        found,
        [
            "START.md:3:26: warning: RF302 this call of A.md never comes back: every way back passes a reset, which drops the pending return; use goto, or a reset with keep=\"stack\", on the way to the result"
        ]
    );
    let through = "tag: function, target: B.md, return: C.md";
    let found = diagnostics(&[
        ("START.md", call, "x"),
        ("A.md", through, "x"),
        ("B.md", "tag: result", "x"),
        ("C.md", "", "anything <result>x</result>"),
        end,
    ]);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn endless_forking_is_reported() {
    let worker = ("W.md", "tag: result", "x");
    let endless = diagnostics(&[
        ("START.md", "tag: fork, target: W.md, next: NEXT.md", "x"),
        ("NEXT.md", "tag: goto, target: START.md", "x"),
        worker,
    ]);
    assert_eq!(
        endless,
        [
            "START.md:3:5: warning: RF303 START.md forks W.md again and again, and no way out of this loop does not fork; allow { tag: result } or a way on in it, or set a budget in raymond.yaml"
        ]
    );
    let breeding = diagnostics(&[
        ("START.md", "tag: goto, target: W.md", "x"),
        ("W.md", "tag: fork, target: W.md, next: END.md", "x"),
        ("END.md", "tag: result", "x"),
    ]);
    assert!(
        breeding.len() == 1 && breeding[0].starts_with("W.md:3:5: warning: RF303"),
        "{breeding:?}"
    );
    for bounded in [
        "tag: fork, target: W.md, next: START.md; tag: result",
        "tag: fork, target: W.md, next: START.md; tag: goto, target: W.md",
    ] {
        let found = diagnostics(&[("START.md", bounded, "x"), worker]);
        assert!(found.is_empty(), "{found:?}");
    }
    let files = [
        ("START.md", &*prompt("tag: fork, target: W.md, next: START.md", "x")),
        ("W.md", "<result>x</result>"),
        ("raymond.yaml", "budget: 2\n"),
    ];
    assert!(checked(&files, None, &[]).is_empty());
}

#[test]
fn agent_that_never_ends_is_reported() {
    let found = diagnostics(&[
        ("START.md", "tag: goto, target: A.md", "x"),
        ("A.md", "tag: goto, target: B.md", "x"),
        ("B.md", "tag: reset, target: A.md", "x"),
    ]);
    assert_eq!(
        found,
        [
            "A.md:3:5: warning: RF304 an agent that comes here never ends: no way leads to a result; allow { tag: result } in a state of this loop, or set a budget in raymond.yaml"
        ]
    );
}

#[test]
fn placeholder_that_nothing_fills_is_reported() {
    let files = [
        (
            "START.md",
            &*prompt(
                "tag: call, target: A.md, return: B.md, kind: x",
                "<call return=\"B.md\" kind=\"x\" size=\"1\">A.md</call> {{input}} {{who}}",
            ),
        ),
        (
            "A.md",
            &*prompt(
                "tag: result",
                "{{kind}} {{size}} {{input}} {{result}} {{ other }} {{other}} <result score=\"3\">x</result>",
            ),
        ),
        ("B.md", &*prompt("tag: result", "{{result}} {{score}} {{kind}}")),
    ];
    let found = checked(&files, None, &["who"]);
    assert_eq!(
        found,
        [
            "A.md:5:29: warning: RF401 nothing fills {{result}}: no call or function comes back to this state; one with `join` has {{results}}",
            "A.md:5:40: warning: RF401 nothing fills {{other}}: no tag that leads here has other=\"…\"; show one in the prompt it comes from, or start the run with --var other=…",
            "B.md:5:22: warning: RF401 nothing fills {{kind}}: no tag that leads here has kind=\"…\"; show one in the prompt it comes from, or start the run with --var kind=…",
        ]
    );
    assert_eq!(checked(&files, None, &[]).len(), 4, "{{who}} is the run's");
}

#[test]
fn called_graph_is_checked_and_may_return_result() {
    let source = folder(&[
        ("START.md", &prompt("tag: call, target: g.yaml, return: END.md", "x")),
        ("END.md", "<result>x</result>"),
        ("g.yaml", "wrong"),
        ("unreached.yaml", "wrong"),
    ]);
    let wrong = |name: &StateName| Diagnostic {
        path: name.to_string(),
        line: 1,
        column: 1,
        code: "WF001",
        severity: Severity::Error,
        message: "wrong".to_owned(),
    };
    let graphs = |_: &dyn WorkflowSource, name: &StateName| FolderGraph {
        graph: None,
        diagnostics: vec![wrong(name)],
    };
    let subject = CheckSubject {
        source: &source,
        entry: None,
        variables: &[],
        consent: &StarterConsent::default(),
        graphs: &graphs,
    };
    let found = check(subject);
    let errors = found.diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
    let texts: Vec<String> = errors.map(ToString::to_string).collect();
    assert_eq!((texts, found.files), (vec!["g.yaml:1:1: WF001 wrong".to_owned()], 3));
}

#[test]
fn answer_placeholder_is_filled_only_in_next_state_of_ask() {
    let ask = "tag: ask, next: NEXT.md, timeout: 1h, timeout_next: LATE.md";
    let found = diagnostics(&[
        ("START.md", ask, "{{answer}}"),
        ("NEXT.md", "tag: result", "{{answer}}"),
        ("LATE.md", "tag: result", "{{answer}}"),
    ]);
    let why = "warning: RF401 nothing fills {{answer}}: no question leads here: <ask next=\"…\">";
    let expected = ["LATE.md:5:1:", "START.md:5:1:"].map(|place| format!("{place} {why}"));
    assert_eq!(found, expected);
    let found = diagnostics(&[("START.md", ask, "x"), ("NEXT.md", "tag: result", "x")]);
    assert_eq!(found[1..], ["START.md:3:59: RF101 LATE.md: there is no such file"]);
}

#[test]
fn budget_of_state_in_which_no_agent_begins_is_reported() {
    let start = "tag: call, target: CALLED.md, return: END.md; tag: function, target: F.md, return: END.md; tag: fork, target: W.md, next: END.md";
    let budget = |entries| prompt(entries, "x").replacen("---\n", "---\nbudget: 0.50\n", 1);
    let files = [
        ("START.md", budget(start)),
        ("CALLED.md", budget("tag: goto, target: LATER.md")),
        ("F.md", budget("tag: reset, target: AFTER.md")),
        ("LATER.md", budget("tag: result")),
        ("AFTER.md", budget("tag: result")),
        ("W.md", budget("tag: result")),
        ("END.md", prompt("tag: result", "{{result}}")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, &**text)).collect();
    let why = "warning: RF307 this budget has no effect, because no agent begins here and no call leads here: give it to the state in which the agent begins or that is called, or fork or call this one";
    let expected = ["AFTER.md:2:9:", "LATER.md:2:9:"].map(|place| format!("{place} {why}"));
    let found = checked(&files, None, &[]);
    let found: Vec<_> = found.into_iter().filter(|line| line.contains("RF307")).collect();
    assert_eq!(found, expected);
}

#[test]
fn tag_of_a_text_is_shown_without_entities() {
    let text = "<ask next=\"END.md\" about='a \"word\" & more'>Which?</ask>";
    let end = ("END.md", "tag: result", "x");
    let found = diagnostics(&[("START.md", "tag: result", text), end]);
    let shown =
        "RF204 the text shows <ask next=\"END.md\" about=\"a \"word\" & more\">…</ask>, which";
    assert!(found.iter().any(|line| line.contains(shown)), "{found:#?}");
}
