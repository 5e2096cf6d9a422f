//! Each rule of the check with its place and its severity: in a policy, and in the tags of a text.

use super::rule_table::{Rule, check_rules};

const END: (&str, &str) = ("END.md", "<result>x</result>");

const RULES: &[Rule] = &[
    ("sound folder", &[("START.md", "<goto>END.md</goto>"), END], &[]),
    (
        "frontmatter that is no YAML",
        &[("START.md", "---\nmodel: [opus\n---\n<result>x</result>")],
        &["START.md:2:8 error RF002"],
    ),
    (
        "unknown effort",
        &[("START.md", "---\neffort: hardest\n---\n<result>x</result>")],
        &["START.md:2:9 error RF002"],
    ),
    (
        "unknown model",
        &[("START.md", "---\nmodel: sonet\n---\n<result>x</result>")],
        &["START.md:2:8 warning RF403"],
    ),
    (
        "forms of other tools that mean a value, but not in code, in other words, or beside the placeholder",
        &[
            (
                "START.md",
                "Do {input}, ${run_id} and {other}, `{state}`.\n$ARGUMENTS ${{ inputs.x }} ${{agent_id}} <goto>END.md</goto>",
            ),
            ("END.md", "{{agent_id}} is {agent_id}. <result>x</result>"),
        ],
        &[
            "START.md:1:4 warning RF401",
            "START.md:1:14 warning RF401",
            "START.md:2:1 warning RF401",
            "START.md:2:13 warning RF401",
        ],
    ),
    (
        "prompt that begins with a command",
        &[("START.md", "---\nmodel: opus\n---\n\n/deploy the app. <result>x</result>")],
        &["START.md:5:1 warning RF407"],
    ),
    (
        "prompt that begins with a command whose name is filled in, and one that is filled in itself",
        &[
            ("START.md", "/{{input}} it <goto>B.md</goto>"),
            ("B.md", "{{input}} it <goto>END.md</goto>"),
            END,
        ],
        &["START.md:1:1 warning RF407"],
    ),
    (
        "command that is one, and texts that are none",
        &[
            ("START.md", "---\nrun_command: true\n---\n/review it. <goto>B.md</goto>"),
            ("B.md", "---\nrun_command: false\n---\n/clear <goto>C.md</goto>"),
            ("C.md", "/srv/app/main.rs has a bug. <goto>D.md</goto>"),
            ("D.md", "---\nrun_command: true\n---\n{{input}} <goto>E.md</goto>"),
            ("E.md", "# /clear\n/clear <goto>END.md</goto>"),
            END,
        ],
        &[],
    ),
    (
        "command that has no effect, and a default of the manifest",
        &[
            ("raymond.yaml", "run_command: true\n"),
            ("START.md", "/compact <goto>B.md</goto>"),
            ("B.md", "---\nrun_command: true\n---\nx <goto>END.md</goto>"),
            END,
        ],
        &["B.md:2:14 warning RF407"],
    ),
    (
        "unknown field",
        &[("START.md", "---\nmodle: opus\n---\n<result>x</result>")],
        &["START.md:2:1 error RF002"],
    ),
    (
        "missing target in a policy",
        &[(
            "START.md",
            "---\nallowed_transitions:\n  - { tag: goto, target: GONE.md }\n  - { tag: result }\n---\nGONE.md",
        )],
        &["START.md:3:26 error RF101"],
    ),
    (
        "missing target in a text",
        &[("START.md", "Or\n <goto>GONE.md</goto>")],
        &["START.md:2:2 error RF103"],
    ),
    (
        "missing target in inline code",
        &[("START.md", "As `<goto>GONE.md</goto>`. <result>x</result>")],
        &["START.md:1:5 warning RF103"],
    ),
    (
        "missing next of a question in a policy",
        &[(
            "START.md",
            "---\nallowed_transitions:\n  - { tag: ask, next: GONE.md }\n  - { tag: result }\n---\nx",
        )],
        &["START.md:3:23 error RF101"],
    ),
    (
        "missing timeout_next in a text",
        &[
            ("START.md", "<ask next=\"END.md\" timeout=\"1h\" timeout_next=\"GONE.md\">so?</ask>"),
            END,
        ],
        &["START.md:1:1 error RF103"],
    ),
    (
        "call without return in a policy",
        &[
            ("START.md", "---\nallowed_transitions:\n  - { tag: call, target: END.md }\n---\nx"),
            END,
        ],
        &["START.md:3:26 error RF002"],
    ),
    (
        "call without return in a text",
        &[("START.md", "<goto>END.md</goto> or <call>END.md</call>"), END],
        &["START.md:1:24 error RF106"],
    ),
    (
        "missing return in a policy",
        &[
            (
                "START.md",
                "---\nallowed_transitions:\n  - { tag: function, target: END.md, return: GONE.md }\n  - { tag: result }\n---\nEND.md",
            ),
            END,
        ],
        &["START.md:3:46 error RF101"],
    ),
    (
        "missing return in a text",
        &[("START.md", "<function return=\"GONE.md\">END.md</function>"), END],
        &["START.md:1:1 error RF103"],
    ),
    (
        "fork without next in a policy",
        &[
            ("START.md", "---\nallowed_transitions:\n  - { tag: fork, target: END.md }\n---\nx"),
            END,
        ],
        &["START.md:3:26 error RF002"],
    ),
    (
        "fork without next in a text",
        &[("START.md", "<result>x</result> or <fork>END.md</fork>"), END],
        &["START.md:1:23 error RF106"],
    ),
    (
        "fork without next beside a goto",
        &[("START.md", "<fork>END.md</fork> <goto>END.md</goto>"), END],
        &["START.md:1:1 warning RF106"],
    ),
    (
        "ambiguous target in a policy",
        &[
            (
                "START.md",
                "---\nallowed_transitions:\n  - { tag: goto, target: END }\n  - { tag: result }\n---\nEND",
            ),
            END,
            ("END.sh", "echo '<result>x</result>'\n"),
        ],
        &["START.md:3:26 error RF107"],
    ),
    (
        "ambiguous target in a text",
        &[("START.md", "<goto>END</goto>"), END, ("END.sh", "echo '<result>x</result>'\n")],
        &["START.md:1:1 error RF107"],
    ),
    (
        "ambiguous entry",
        &[("START.md", "<result>x</result>"), ("1_START.md", "<result>x</result>")],
        &["START.md:1:1 error RF006"],
    ),
    ("no entry", &[("FIRST.md", "<result>x</result>")], &["START.md:1:1 error RF001"]),
    (
        "question without next in a policy",
        &[("START.md", "---\nallowed_transitions:\n  - { tag: ask }\n---\nx")],
        &["START.md:3:12 error RF002"],
    ),
    (
        "question without next in a text",
        &[("START.md", "<ask>so?</ask>")],
        &["START.md:1:1 error RF106"],
    ),
    (
        "question without next in code",
        &[("START.md", "`<ask>so?</ask>` <result>x</result>")],
        &["START.md:1:2 warning RF106"],
    ),
    (
        "cd of a question in a policy",
        &[
            (
                "START.md",
                "---\nallowed_transitions:\n  - { tag: ask, next: END.md, cd: x }\n---\nx",
            ),
            END,
        ],
        &["START.md:3:35 error RF002"],
    ),
    (
        "cd of a question in a text",
        &[("START.md", "<ask next=\"END.md\" cd=\"x\">so?</ask> <goto>END.md</goto>"), END],
        &["START.md:1:1 error RF106"],
    ),
    (
        "force_implicit with two entries",
        &[
            (
                "START.md",
                "---\nforce_implicit: true\nallowed_transitions:\n  - { tag: goto, target: END.md }\n  - { tag: result }\n---\nEND.md",
            ),
            END,
        ],
        &["START.md:2:17 error RF002"],
    ),
    (
        "force_implicit with a question",
        &[
            (
                "START.md",
                "---\nforce_implicit: true\nallowed_transitions:\n  - { tag: ask, next: END.md }\n---\nx",
            ),
            END,
        ],
        &["START.md:2:17 error RF002"],
    ),
    (
        "forks with different next in a policy",
        &[
            (
                "START.md",
                "---\nforks: many\nallowed_transitions:\n  - { tag: fork, target: END.md, next: END.md }\n  - { tag: fork, target: END.md, next: LAST.md }\n---\nEND.md",
            ),
            END,
            ("LAST.md", "<result>x</result>"),
        ],
        &["START.md:5:40 warning RF207"],
    ),
    (
        "forks with different next in a text",
        &[
            (
                "START.md",
                "<fork next=\"END.md\">END.md</fork> <fork next=\"LAST.md\">END.md</fork>",
            ),
            END,
            ("LAST.md", "<result>x</result>"),
        ],
        &["START.md:1:35 warning RF207"],
    ),
    (
        "target that the text never mentions",
        &[
            (
                "START.md",
                "---\nallowed_transitions:\n  - { tag: goto, target: END.md }\n  - { tag: result }\n---\nx",
            ),
            END,
        ],
        &["START.md:3:26 warning RF208"],
    ),
    (
        "unreachable state",
        &[("START.md", "<result>x</result>"), END],
        &["END.md:1:1 warning RF110"],
    ),
    (
        "dead end after a policy",
        &[
            (
                "START.md",
                "---\nallowed_transitions:\n  - { tag: goto, target: STOP.md }\n  - { tag: result }\n---\nSTOP.md",
            ),
            ("STOP.md", "Stay here."),
        ],
        &["STOP.md:1:1 warning RF105"],
    ),
    (
        "dead end after a tag",
        &[("START.md", "<goto>STOP.md</goto>"), ("STOP.md", "Stay here.")],
        &["STOP.md:1:1 warning RF105"],
    ),
    (
        "dead end after a script",
        &[
            ("START.md", "<goto>RUN.sh</goto>"),
            ("RUN.sh", "echo '<goto>STOP.md</goto>'\n"),
            ("STOP.md", "Stay here."),
        ],
        &["RUN.sh:1:1 info RF603", "STOP.md:1:1 warning RF105"],
    ),
    (
        "call without a result, by policies",
        &[
            (
                "START.md",
                "---\nallowed_transitions:\n  - { tag: call, target: SUB.md, return: END.md }\n  - { tag: result }\n---\nSUB.md",
            ),
            ("SUB.md", "---\nallowed_transitions:\n  - { tag: goto, target: SUB.md }\n---\nx"),
            END,
        ],
        &["START.md:3:26 error RF301", "SUB.md:3:5 info RF601"],
    ),
    (
        "call without a result, by texts",
        &[
            ("START.md", "<call return=\"END.md\">SUB.md</call>"),
            ("SUB.md", "<goto>SUB.md</goto>"),
            END,
        ],
        &["START.md:1:1 warning RF308"],
    ),
    (
        "implicit transition",
        &[
            ("START.md", "---\nallowed_transitions:\n  - { tag: goto, target: END.md }\n---\nx"),
            END,
        ],
        &["START.md:3:5 info RF601"],
    ),
    (
        "implicit result",
        &[("START.md", "---\nallowed_transitions:\n  - { tag: result, payload: done }\n---\nx")],
        &["START.md:3:5 info RF601"],
    ),
    (
        "script in a policy",
        &[
            (
                "START.md",
                "---\nallowed_transitions:\n  - { tag: goto, target: RUN.sh }\n  - { tag: result }\n---\nRUN.sh",
            ),
            ("RUN.sh", "echo '<result>x</result>'\n"),
        ],
        &["RUN.sh:1:1 info RF603"],
    ),
    (
        "other folder in a policy",
        &[
            (
                "START.md",
                "---\nallowed_transitions:\n  - { tag: goto, target: sub/ }\n  - { tag: result }\n---\nsub/",
            ),
            ("sub/START.md", "<result>x</result>"),
        ],
        &["START.md:3:26 info RF602"],
    ),
    (
        "other folder in a text",
        &[("START.md", "<goto>sub/</goto>"), ("sub/START.md", "<result>x</result>")],
        &["START.md:1:1 info RF602"],
    ),
];

#[test]
fn each_rule_is_found_at_its_place_with_its_severity() {
    check_rules(RULES);
}
