//! Whole folders with one mistake each, or none: everything that is found in them, with places and severities.
//!
//! Their states have numbers and names without endings, and their policies stand in block style.

use super::rule_table::{Rule, check_rules};

const LAST: (&str, &str) = ("LAST.md", "All is said. <result>ready</result>");

const FOLDERS: &[Rule] = &[
    ("valid_simple", &[("1_START.md", "Go on: <goto>LAST</goto>"), LAST], &[]),
    (
        "missing_entry",
        &[("FIRST_STEP.md", "<result>ready</result>")],
        &["START.md:1:1 error RF001"],
    ),
    (
        "ambiguous_entry",
        &[("START.md", "<goto>LAST</goto>"), ("1_START.md", "<goto>LAST</goto>"), LAST],
        &["START.md:1:1 error RF006"],
    ),
    (
        "ambiguous_entry of a prompt and a script",
        &[("START.sh", "echo '<goto>LAST</goto>'"), ("1_START.md", "<goto>LAST</goto>"), LAST],
        &["1_START.md:1:1 error RF006"],
    ),
    (
        "missing_target",
        &[("1_START.md", "Then go to\n<goto>NOT_HERE</goto>")],
        &["1_START.md:2:1 error RF103"],
    ),
    (
        "missing_target as an attribute",
        &[("1_START.md", "Then\n<goto target=\"NOT_HERE\">\n")],
        &["1_START.md:2:1 warning RF104"],
    ),
    (
        "state as an attribute",
        &[("1_START.md", "Then\n<goto target=\"LAST\">\n"), LAST],
        &["1_START.md:2:1 error RF104"],
    ),
    (
        "missing_return_absent",
        &[("1_START.md", "<call>HELP</call>"), ("HELP.md", "<result>ready</result>")],
        &["1_START.md:1:1 error RF106"],
    ),
    (
        "missing_return_bad_target",
        &[
            ("1_START.md", "<call return=\"LOST\">HELP</call>"),
            ("HELP.md", "<result>ready</result>"),
        ],
        &["1_START.md:1:1 error RF103"],
    ),
    (
        "missing_fork_next",
        &[
            ("1_START.md", "<fork>LEFT</fork>\n<fork>RIGHT</fork>"),
            ("LEFT.md", "<result>ready</result>"),
            ("RIGHT.md", "<result>ready</result>"),
        ],
        &["1_START.md:1:1 error RF106", "1_START.md:2:1 error RF106"],
    ),
    (
        "ambiguous_resolution",
        &[
            ("1_START.md", "<goto>WAIT</goto>"),
            ("WAIT.md", "<result>ready</result>"),
            ("WAIT.sh", "echo '<result>ready</result>'\n"),
        ],
        &["1_START.md:1:1 error RF107"],
    ),
    (
        "fork_next_mismatch",
        &[
            ("1_START.md", "<fork next=\"ONE\">LAST</fork>\n<fork next=\"TWO\">LAST</fork>"),
            ("ONE.md", "<result>ready</result>"),
            ("TWO.md", "<result>ready</result>"),
            LAST,
        ],
        &["1_START.md:2:1 warning RF207"],
    ),
    (
        "unused_allowed_transition",
        &[
            (
                "1_START.md",
                "---\nallowed_transitions:\n  - tag: goto\n    target: LAST\n  - tag: goto\n    target: AGAIN\n---\nAGAIN is all that this text speaks of.",
            ),
            ("AGAIN.md", "<result>ready</result>"),
            LAST,
        ],
        &["1_START.md:4:13 warning RF208"],
    ),
    (
        "single_transition_no_warn",
        &[
            (
                "1_START.md",
                "---\nallowed_transitions:\n  - tag: goto\n    target: LAST\n---\nNo word of the only way.",
            ),
            LAST,
        ],
        &["1_START.md:3:5 info RF601"],
    ),
    (
        "implicit_transition",
        &[
            (
                "1_START.md",
                "---\nallowed_transitions:\n  - tag: goto\n    target: LAST\n---\n<goto>LAST</goto>",
            ),
            LAST,
        ],
        &["1_START.md:3:5 info RF601"],
    ),
    (
        "script_state",
        &[("1_START.md", "<goto>BUILD</goto>"), ("BUILD.sh", "echo '<result>ready</result>'\n")],
        &["BUILD.sh:1:1 info RF603"],
    ),
    (
        "script that the folder begins with",
        &[("1_START.sh", "echo '<goto>LAST.md</goto>'\n"), LAST],
        &["1_START.sh:1:1 info RF603"],
    ),
    (
        "unreachable_state",
        &[("1_START.md", "<goto>LAST</goto>"), LAST, ("ASIDE.md", "<result>ready</result>")],
        &["ASIDE.md:1:1 warning RF110"],
    ),
    (
        "dead_end_state",
        &[("1_START.md", "<goto>HALT</goto>"), ("HALT.md", "There is no way on from here.")],
        &["HALT.md:1:1 warning RF105"],
    ),
    (
        "call_without_result",
        &[
            ("1_START.md", "<call return=\"LAST\">PING</call>"),
            ("PING.md", "<goto>PONG</goto>"),
            ("PONG.md", "<goto>PING</goto>"),
            LAST,
        ],
        &["1_START.md:1:1 warning RF308"],
    ),
    (
        "bad_frontmatter",
        &[("1_START.md", "---\nmodel: {open\n---\nWrite.\n<result>ready</result>")],
        &["1_START.md:2:8 error RF002"],
    ),
    (
        "invalid_model",
        &[("1_START.md", "---\nmodel: gtp5\n---\n<result></result>")],
        &["1_START.md:2:8 warning RF403"],
    ),
    (
        "invalid_effort",
        &[("1_START.md", "---\neffort: utmost\n---\n<result></result>")],
        &["1_START.md:2:9 error RF002"],
    ),
    (
        "force_implicit_bad_ask",
        &[
            (
                "1_START.md",
                "---\nallowed_transitions:\n  - tag: ask\n    next: LAST\nforce_implicit: true\n---\n<ask next=\"LAST\">May I?</ask>",
            ),
            LAST,
        ],
        &["1_START.md:5:17 error RF002"],
    ),
    (
        "force_implicit_bad_bare_result",
        &[(
            "1_START.md",
            "---\nallowed_transitions:\n  - tag: result\nforce_implicit: true\n---\n<result>what you like</result>",
        )],
        &["1_START.md:4:17 error RF002"],
    ),
    (
        "force_implicit_bad_multi",
        &[
            (
                "1_START.md",
                "---\nallowed_transitions:\n  - tag: goto\n    target: ONE\n  - tag: goto\n    target: LAST\nforce_implicit: true\n---\n<goto>ONE</goto> or <goto>LAST</goto>",
            ),
            ("ONE.md", "<result></result>"),
            LAST,
        ],
        &["1_START.md:7:17 error RF002"],
    ),
    (
        "force_implicit_ok",
        &[
            (
                "1_START.md",
                "---\nallowed_transitions:\n  - tag: goto\n    target: LAST\nforce_implicit: true\n---\nExplain what <goto>SOMEWHERE</goto> and <gotto>LAST.md</gotto> mean; neither is taken.",
            ),
            LAST,
        ],
        &["1_START.md:3:5 info RF601"],
    ),
    (
        "unknown_field",
        &[
            (
                "1_START.md",
                "---\nallowed_transitions:\n  - { tag: goto, target: LAST }\nforce_implict: true\n---\n<goto>LAST</goto>",
            ),
            LAST,
        ],
        &["1_START.md:4:1 error RF002"],
    ),
    (
        "mixed_errors_warnings",
        &[("1_START.md", "<goto>NOT_HERE</goto>"), ("ASIDE.md", "<result>ready</result>")],
        &["1_START.md:1:1 error RF103", "ASIDE.md:1:1 warning RF110"],
    ),
];

#[test]
fn each_folder_has_just_its_own_mistakes() {
    check_rules(FOLDERS);
}
