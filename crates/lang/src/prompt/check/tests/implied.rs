//! Unreadable tags beside a single way on, and placeholders in the entries of policies.

use super::{checked, diagnostics};

#[test]
fn unreadable_tag_beside_implied_transition_is_a_warning() {
    for tag in [
        "<goto target=\"NEXT.md\">",
        "<gotto>NEXT.md</gotto>",
        "<goto>NEXT.md<goto>",
        "<goto x>NEXT.md</goto>",
    ] {
        let single = diagnostics(&[
            ("START.md", "tag: goto, target: NEXT.md", &format!("{tag} NEXT.md")),
            ("NEXT.md", "tag: result", "<result>x</result>"),
        ]);
        let found: Vec<&String> = single.iter().filter(|line| line.contains("RF104")).collect();
        assert!(
            found.iter().all(|line| line.contains("warning: RF104")
                && line.ends_with("takes the only way, <goto>NEXT.md</goto>")),
            "{tag}: {single:?}"
        );
        for more in [" }\n  - { tag: result", " }\n  - { tag: goto, target: START.md"] {
            let entries = format!("tag: goto, target: NEXT.md{more}");
            let several = diagnostics(&[
                ("START.md", &entries, &format!("{tag} NEXT.md START.md")),
                ("NEXT.md", "tag: result", "<result>x</result>"),
            ]);
            let is_error = |line: &String| line.contains(" RF104") && !line.contains("warning");
            assert_eq!(several.iter().any(is_error), !found.is_empty(), "{tag}: {several:?}");
        }
    }
}

#[test]
fn placeholder_of_policy_that_nothing_fills_is_warned_of() {
    let next = |variables: &str| format!("tag: goto, target: NEXT.md{variables}");
    let found = |variables: &str| {
        diagnostics(&[
            ("START.md", &next(variables), "x"),
            ("NEXT.md", "tag: result", "<result>{{v}}</result>"),
        ])
    };
    let filled = found(", v: \"{{input}} {{agent_id}}\"");
    assert!(filled.is_empty(), "{filled:?}");
    let unknown = found(", v: \"{{gone}}\"");
    assert_eq!(unknown.len(), 1, "{unknown:?}");
    assert!(unknown[0].starts_with("START.md:3:5: warning: RF401 nothing fills {{gone}}"));
    let fork = "tag: fork, target: W.md, next: NEXT.md, each: any, cwd: \"{{item}}\"";
    let list = [
        ("START.md", format!("---\nallowed_transitions:\n  - {{ {fork} }}\n---\nx")),
        ("W.md", "<result>{{item}}</result>".to_owned()),
        ("NEXT.md", "---\njoin: all\n---\n<result>x</result>".to_owned()),
    ];
    let list: Vec<(&str, &str)> = list.iter().map(|(name, text)| (*name, text.as_str())).collect();
    assert!(checked(&list, None, &[]).iter().all(|line| !line.contains("RF401")));
}
