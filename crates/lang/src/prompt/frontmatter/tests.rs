//! Tests of reading frontmatter, and of the places of its mistakes.

use super::*;

#[test]
fn flow_and_block_style_policies_are_equal() {
    let flow = "allowed_transitions:\n  - { tag: goto, target: A.md }\n  - { tag: call, target: R.md, return: S.md }\n  - { tag: result }\n";
    let block = "allowed_transitions:\n  - tag: goto\n    target: A.md\n  - tag: call\n    target: R.md\n    return: S.md\n  - tag: result\n";
    let read = parse(flow).expect("valid");
    assert_eq!(Ok(read.clone()), parse(block));
    let shown: Vec<String> = read.policy.allowed.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        ["<goto>A.md</goto>", "<call return=\"S.md\">R.md</call>", "<result>…</result>"]
    );
}

#[test]
fn empty_frontmatter_or_policy_gives_defaults() {
    for yaml in ["", "\n# only a comment\n", "allowed_transitions: []\n", "allowed_transitions:\n"]
    {
        assert_eq!(parse(yaml), Ok(Frontmatter::default()), "{yaml:?}");
    }
    assert_eq!(parse("model: haiku\n").map(|read| read.model), Ok(Some(ModelName::HAIKU)));
}

#[test]
fn transition_variables_are_always_text() {
    let read = parse(
        "allowed_transitions:\n  - { tag: fork, target: W.md, next: N.md, count: 3, yes: no, when: 5 }\n",
    )
    .expect("valid");
    assert_eq!(read.policy.allowed[0].variables()["count"], "3");
    assert_eq!(read.policy.allowed[0].variables()["yes"], "no");
    assert_eq!(
        read.policy.allowed[0].variables()["when"],
        "5",
        "without an output it is a variable"
    );
}

#[test]
fn invalid_frontmatter_is_error_with_location_and_hint() {
    let table = [
        ("\nmodle: opus\n", "2:1: unknown key `modle`; did you mean `model`?"),
        (
            "colour: red\n",
            "1:1: unknown key `colour`; known here: allowed_transitions, output, model, supervision, budget, evaluator, worktree, snapshots, host, force_implicit, forks, max_fan_out, stagger, join, timeout, on_timeout, on_failure, rest, effort, tools, allowed_tools, disallowed_tools, permission_mode, append_system_prompt, system_prompt_file, mcp_config, strict_mcp, settings, setting_sources, agents, add_dirs, plugin_dirs, max_turns, max_thinking_tokens, background, env, fallback_model, startup, on_denied, on_lost_session, permissions, run_command",
        ),
        ("supervision:\n  restrt: x\n", "2:3: unknown key `restrt`; did you mean `restart`?"),
        (
            "model: x y\n",
            "1:8: `x y` cannot be the name of a model; write one word, such as opus, sonnet, haiku or a full name",
        ),
        (
            "allowed_transitions:\n  - { tag: gotu, target: A.md }\n",
            "2:12: unknown tag `gotu`; did you mean `goto`?",
        ),
        (
            "allowed_transitions:\n  - { tag: jump, target: A.md }\n",
            "2:12: unknown tag `jump`; use one of goto, reset, call, function, fork, ask, result",
        ),
        (
            "allowed_transitions:\n  - { target: A.md }\n",
            "2:5: this entry has no `tag`; use one of goto, reset, call, function, fork, ask, result",
        ),
        (
            "allowed_transitions:\n  - { tag: goto }\n",
            "2:12: `goto` needs a `target`, the file it leads to",
        ),
        (
            "allowed_transitions:\n  - { tag: goto, traget: A.md }\n",
            "2:26: unknown key `traget`; did you mean `target`? A variable needs a name that looks less like it",
        ),
        (
            "allowed_transitions:\n  - { tag: result, target: A.md }\n",
            "2:28: a result has no `target`; write { tag: result }",
        ),
        (
            "allowed_transitions:\n  - { tag: goto, target: A.md, retrun: B.md }\n",
            "2:40: unknown key `retrun`; did you mean `return`? A variable needs a name that looks less like it",
        ),
        (
            "allowed_transitions:\n  - { tag: result, wehn: { a: 1 } }\n",
            "2:26: unknown key `wehn`; did you mean `when`?",
        ),
        (
            "budget: 0.00\n",
            "1:9: write an amount above 0, because nothing can be asked without money",
        ),
        ("budget: -1\n", "1:9: write an amount in US dollars, such as 2 or 0.50"),
        ("model: opus\nmodel: haiku\n", "2:1: the key `model` is already on line 1"),
        (
            "allowed_transitions: yes please\n",
            "1:22: an entry is a mapping; write `- { tag: goto, target: FILE.md }`",
        ),
        (
            "allowed_transitions:\n  - { tag: call, target: A.md }\n",
            "2:26: <call> needs the attribute return=\"FILE.md\"",
        ),
        (
            "allowed_transitions:\n  - { tag: goto, target: A.md, next: B.md }\n",
            "2:38: <goto> does not take the attribute `next`",
        ),
    ];
    for (yaml, expected) in table {
        assert_eq!(parse(yaml).expect_err(yaml).to_string(), expected);
    }
}

#[test]
fn ask_entry_needs_next_and_may_have_timeout() {
    let entries = "allowed_transitions:\n  - { tag: ask, next: A.md }\n  - { tag: ask, next: A.md, timeout: 24h, timeout_next: LATE.md }\n";
    let read = parse(entries).expect("valid");
    let shown: Vec<String> = read.policy.allowed.iter().map(ToString::to_string).collect();
    let late = "<ask next=\"A.md\" timeout=\"24h\" timeout_next=\"LATE.md\">…</ask>";
    assert_eq!(shown, ["<ask next=\"A.md\">…</ask>", late]);
    let wrong = |entry: &str| {
        let yaml = format!("allowed_transitions:\n  - {{ tag: ask, {entry} }}\n");
        parse(&yaml).expect_err(&yaml).to_string()
    };
    assert_eq!(
        wrong("target: A.md"),
        "2:25: an ask has no `target`; write { tag: ask, next: FILE.md }, the state that gets the answer"
    );
    assert_eq!(
        wrong("next: A.md, question: Sure?"),
        "2:39: the question is the agent's own; write { tag: ask, next: FILE.md }"
    );
    assert_eq!(
        wrong("next: A.md, timeout: 2h"),
        "2:23: <ask>: timeout needs timeout_next=\"FILE.md\" beside it, and the other way round"
    );
    assert_eq!(wrong("timeout: 2h"), "2:12: <ask> needs the attribute next=\"FILE.md\"");
}

#[test]
fn invalid_yaml_is_error_with_location() {
    let table = [
        "allowed_transitions:\n  - { tag: goto\n",
        "model: opus\nmodel: haiku\n",
        "allowed_transitions: yes please\n",
        "- a list\n",
        "a: &a [*a]\n",
    ];
    for yaml in table {
        let error = parse(yaml).expect_err(yaml);
        assert!(error.at.line >= 1, "{yaml:?}: {error}");
        assert!(!error.message.is_empty());
    }
}

#[test]
fn all_mistakes_are_found_whatever_their_kind() {
    let yaml = "budget: lots\nsupervision: { max_restart: 3, timeot: 1s }\njoin: al\nmodel: [haiku]\nworktree: maybe\nallowed_transitions: [{ tag: goto, target: A.md, retrun: B.md }, { tag: gotu }]\n";
    let found = examine(yaml).errors;
    let lines: Vec<u64> = found.all().iter().map(|error| error.at.line).collect();
    let mut sorted = lines.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [1, 2, 2, 3, 4, 5, 6, 6], "{found:?}");
    let messages = found.all().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(
        messages.contains("did you mean `max_restarts`?") && messages.contains("`timeout`?"),
        "{messages}"
    );
}

#[test]
fn misplaced_key_has_hint_to_its_place() {
    for (yaml, expected) in [
        ("supervision:\nmax_restarts: 3\n", "2:1: `max_restarts` belongs below `supervision:`"),
        ("on_exhausted: wait\n", "1:1: `on_exhausted` belongs below `supervision:`"),
        ("max_procs: 3\n", "1:1: `max_procs` belongs in raymond.yaml"),
        ("plugins: []\n", "1:1: `plugins` belongs in raymond.yaml"),
        ("prompt: Say hi\n", "1:1: unknown key `prompt`; write the prompt below the second `---`"),
        ("prompt: CHECK.md\n", "1:1: `prompt` belongs below `evaluator:`"),
        ("allowed_transitions: result\n", "1:22: an entry is a mapping; write `- { tag: result }`"),
        (
            "allowed_transitions:\n  - { tag: result }\n  - NEXT.md\n",
            "3:5: an entry is a mapping; write `- { tag: goto, target: FILE.md }`",
        ),
        ("allowed_transitions: { tag: result }\n", "1:22: a list is expected here: put `- `"),
        ("max_restats: 3\n", "1:1: unknown key `max_restats`; did you mean "),
    ] {
        let found = examine(yaml).errors.or_else_first(()).expect_err("a mistake").to_string();
        assert!(found.starts_with(expected), "{found}");
    }
    let error = manifest::parse("join: all\n").expect_err("a mistake").to_string();
    assert!(error.starts_with("1:1: `join` belongs in the frontmatter of a state"), "{error}");
}

#[test]
fn mistake_has_no_mistake_that_follows_from_it() {
    for (yaml, expected) in [
        ("allowed_transitions:\n  - tag: goto\n    target: [x]\n", "3:13: "),
        ("allowed_transitions: [{ tag: goto, target: [x] }]\n", "1:44: "),
        ("supervision: [a]\n", "1:14: "),
    ] {
        let found = examine(yaml).errors;
        let messages: Vec<String> = found.all().iter().map(ToString::to_string).collect();
        assert!(messages.len() == 1 && messages[0].starts_with(expected), "{yaml}: {messages:?}");
    }
    let many = format!("model:\n{}", "  - x\n".repeat(20_000));
    assert_eq!(examine(&many).errors.all().len(), 1);
    let list = format!("allowed_transitions:\n{}", "  - [x]\n".repeat(20_000));
    assert!((50..=101).contains(&examine(&list).errors.all().len()));
}
