//! Tests of forks and joins: their names, their bounds, and the agents they wait for.

use super::*;

/// Returns the problems of a folder of prompts, each with further keys, entries and a text, and a manifest.
fn diagnostics(prompts: &[(&str, &str, &str, &str)], manifest: &str) -> Vec<String> {
    let texts: Vec<(&str, String)> = prompts
        .iter()
        .map(|(name, keys, entries, text)| {
            let head = format!("---\n{}\n", keys.replace("; ", "\n"));
            let head = if keys.is_empty() { "---\n" } else { &head };
            (*name, prompt(entries, text).replacen("---\n", head, 1))
        })
        .collect();
    let files = texts.iter().map(|(name, text)| (*name, text.as_str()));
    let manifest = (!manifest.is_empty()).then_some(("raymond.yaml", manifest));
    checked(&files.chain(manifest).collect::<Vec<_>>(), None, &[])
}

const WORKER: (&str, &str, &str, &str) = ("W.md", "", "tag: result", "x");
const FORK: &str = "tag: fork, target: W.md, next: END.md";

#[test]
fn unbounded_recursive_fork_is_reported() {
    let breeding = |entries, manifest| {
        let prompts = [
            ("START.md", "", "tag: fork, target: W.md, next: END.md, each: any", "x"),
            ("W.md", "", entries, "x"),
            ("END.md", "", "tag: result", "x"),
        ];
        diagnostics(&prompts, manifest)
    };
    let again = "tag: result; tag: fork, target: W.md, next: END.md, each: items.txt";
    assert_eq!(
        breeding(again, ""),
        [
            "W.md:4:5: warning: RF305 agents that are forked here in W.md may come to W.md and fork again, so their number keeps growing; let them come to a result without forking, or set a budget in raymond.yaml"
        ]
    );
    let through = breeding("tag: result; tag: goto, target: START.md", "");
    assert!(through[0].starts_with("START.md:3:5: warning: RF305 "), "{through:?}");
    assert!(breeding(again, "budget: 2\n").is_empty());
    assert!(breeding("tag: result", "").is_empty());
}

#[test]
fn fork_options_that_contradict_policy_are_reported() {
    let start = |keys, entries, text, manifest| {
        let end = ("END.md", "", "tag: result", "x");
        diagnostics(&[("START.md", keys, entries, text), WORKER, end], manifest)
    };
    let both = "tag: fork, target: W.md, next: END.md; tag: goto, target: W.md";
    assert!(start("forks: many", both, "x", "").is_empty());
    let none = "tag: goto, target: W.md; tag: goto, target: END.md";
    assert_eq!(
        start("max_fan_out: 3; forks: many", none, "x", ""),
        [
            "START.md:3:8: warning: RF205 this says how agents are forked here, and the policy allows no fork; list one, such as { tag: fork, target: WORKER.md, next: NEXT.md }, or leave it out"
        ]
    );
    let listed = "tag: fork, target: W.md, next: END.md, each: '[1, 2, 3]'";
    assert!(start("max_fan_out: 3", listed, "x", "max_fan_out: 2\n").is_empty());
    let found = start("max_fan_out: 2", listed, "x", "");
    let why = "its list has 3 entries, and one reply may fork 2 agents at the most; raise max_fan_out in the frontmatter or in raymond.yaml";
    assert_eq!(found, [format!("START.md:4:5: RF206 {why}")]);
    assert_eq!(start("", listed, "x", "max_fan_out: 2\n").len(), 1);
    let any = "tag: fork, target: W.md, next: END.md, each: any";
    let shown = r#"<fork next="END.md" each="[1, 2, 3]">W.md</fork>"#;
    let found = start("max_fan_out: 2", any, shown, "");
    assert_eq!(found, [format!("START.md:6:1: warning: RF206 the text shows a fork: {why}")]);
    let wrong = start("", "tag: fork, target: W.md, next: END.md, each: '[1, 2'", "x", "");
    assert!(
        wrong[0].starts_with(
            "START.md:3:5: RF206 the list in the tag is not valid JSON: 1:5: it ends too early"
        ),
        "{wrong:?}"
    );
    let empty = start("", "tag: fork, target: W.md, next: END.md, each: '[ ]'", "x", "");
    assert!(empty[0].starts_with("START.md:3:5: warning: RF206 the list of this fork is empty"));
}

#[test]
fn join_without_enough_forks_is_reported() {
    let end = |keys, entries| {
        diagnostics(
            &[("START.md", "", entries, "x"), WORKER, ("END.md", keys, "tag: result", "x")],
            "",
        )
    };
    let nobody = "END.md:2:7: warning: RF306 this join waits for no agent: no way that leads here comes from a fork, by the same agent and since its last join; fork with next=\"…\" on the way here, or leave the join out";
    assert_eq!(end("join: all", "tag: goto, target: W.md; tag: goto, target: END.md"), [nobody]);
    assert!(end("join: all", FORK).is_empty());
    let three = "tag: fork, target: W.md, next: END.md, each: '[1, 2, 3]'";
    assert!(end("join: 3", three).is_empty());
    assert_eq!(
        end("join: 4", three),
        [
            "END.md:2:7: warning: RF306 this join waits for 4 agents, and no more than 3 are ever forked; fork more of them, or write join: all"
        ]
    );
    for uncertain in [
        "tag: fork, target: W.md, next: END.md, each: items.json",
        "tag: fork, target: W.md, next: START.md; tag: goto, target: END.md",
        "tag: fork, target: W.md, next: END.md; tag: fork, target: W.md, next: END.md, kind: a",
    ] {
        let found = end("join: 4", uncertain);
        assert!(!found.iter().any(|line| line.contains("RF306")), "{uncertain}: {found:?}");
    }
}

#[test]
fn missing_join_fallback_state_is_reported() {
    let keys = "join: all; timeout: 1h; on_timeout: LATE.md; on_failure: TORN.md";
    let start = ("START.md", "", FORK, "x");
    let end = ("END.md", keys, "tag: result", "{{results}} {{results_file}}");
    assert_eq!(
        diagnostics(
            &[start, WORKER, end, ("LATE.md", "", "tag: result", "{{results}} {{result}}")],
            ""
        ),
        [
            "END.md:5:13: RF101 TORN.md: there is no such file",
            "LATE.md:5:13: warning: RF401 nothing fills {{result}}: no call or function comes back to this state; one with `join` has {{results}}",
        ]
    );
    let only = ("END.md", "join: all; on_failure: LATE.md", "tag: goto, target: GONE.md", "x");
    let found = diagnostics(&[start, WORKER, only, ("LATE.md", "", "tag: result", "x")], "");
    assert!(found[0].contains("RF201") && found.len() == 2, "{found:?}");
}

#[test]
fn placeholder_not_filled_by_fork_list_is_reported() {
    let worker = |each: &str, text| {
        let fork = format!("tag: fork, target: W.md, next: END.md, each: {each}, as: file");
        let start = ("START.md", "", &*fork, "x");
        diagnostics(
            &[start, ("W.md", "", "tag: result", text), ("END.md", "", "tag: result", "x")],
            "",
        )
    };
    assert!(worker("items.json", "{{file}} {{of_an_object}}").is_empty());
    assert!(worker("'[{\"size\": 1}, \"b\"]'", "{{file}} {{size}}").is_empty());
    let found = worker("'[{\"size\": 1}, \"b\"]'", "{{file}} {{item}}");
    assert!(found.len() == 1 && found[0].contains("nothing fills {{item}}"), "{found:?}");
    let without = diagnostics(&[("START.md", "", "tag: result", "{{results}}")], "");
    assert_eq!(
        without,
        [
            "START.md:5:1: warning: RF401 nothing fills {{results}}: only a state with `join` is given what came of the agents it has waited for"
        ]
    );
}

#[test]
fn scripted_reply_may_fork_several_agents() {
    let fork = r#"<fork next="END.md">W.md</fork>"#;
    let replies = format!("START.md: ['{fork} {fork}']\nW.md: [x]\nEND.md: [x]\n");
    let files = [
        ("START.md", &*prompt(FORK, "x").replacen("---\n", "---\nforks: many\n", 1)),
        ("W.md", "<result>x</result>"),
        ("END.md", "---\njoin: all\n---\n<result>x</result>"),
        ("replies.yaml", &*replies),
    ];
    assert_eq!(checked(&files, None, &[]), Vec::<String>::new());
}

#[test]
fn variables_of_forked_agent_are_known_in_all_its_states() {
    let worker = |each: &str, text| {
        let fork =
            format!("tag: fork, target: W.md, next: END.md, each: {each}, as: file, kind: k");
        let call = "tag: call, target: SUB.md, return: BACK.md; tag: reset, target: LAST.md";
        let ask = "tag: ask, next: LAST.md, timeout: 1h, timeout_next: LATE.md; tag: result";
        diagnostics(
            &[
                ("START.md", "", &fork, "x"),
                ("W.md", "", call, "{{file}}"),
                ("SUB.md", "", ask, "{{file}} {{kind}}"),
                (
                    "BACK.md",
                    "",
                    "tag: fork, target: OTHER.md, next: LAST.md",
                    "{{file}} {{result}}",
                ),
                ("LAST.md", "", "tag: result", text),
                ("LATE.md", "", "tag: result", "{{file}}"),
                ("OTHER.md", "", "tag: result", "x"),
                ("END.md", "", "tag: result", "x"),
            ],
            "",
        )
    };
    assert_eq!(worker("'[{\"size\": 1}]'", "{{file}} {{kind}} {{size}}"), [""; 0]);
    assert_eq!(worker("items.json", "{{of_an_object}}"), [""; 0]);
    let found = worker("'[{\"size\": 1, \"result\": 2}]'", "{{size}} {{nothing}} {{result}}");
    assert!(found.len() == 2 && found[0].contains("{{nothing}}"), "{found:#?}");
    assert!(found[1].contains("nothing fills {{result}}"), "{found:#?}");
}

#[test]
fn forked_agent_and_parent_do_not_know_variables_of_each_other() {
    let start = "tag: fork, target: W.md, next: END.md, kind: k";
    let found = diagnostics(
        &[
            ("START.md", "", start, "{{input}}"),
            ("W.md", "", "tag: goto, target: SELF.md", "{{kind}} {{input}}"),
            ("SELF.md", "", "tag: fork, target: SUB.md, next: LAST.md", "{{kind}}"),
            ("SUB.md", "", "tag: result", "{{kind}}"),
            ("LAST.md", "", "tag: result", "x"),
            ("END.md", "", "tag: result", "{{input}} {{kind}}"),
        ],
        "",
    );
    let why = "no tag that leads here has kind=\"…\"; show one in the prompt it comes from, or start the run with --var kind=…";
    assert_eq!(
        found,
        [
            format!("END.md:5:11: warning: RF401 nothing fills {{{{kind}}}}: {why}"),
            format!("SUB.md:5:1: warning: RF401 nothing fills {{{{kind}}}}: {why}"),
            "W.md:5:10: warning: RF401 nothing fills {{input}}: only the first agent has it, which begins in START.md; hand it on in the <fork> of the agent that comes here: input=\"…\"".to_owned(),
        ]
    );
}
