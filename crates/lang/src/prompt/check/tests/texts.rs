//! Tests of what is found in the texts of prompts, beside their policies.

use super::*;

/// Returns the problems of prompts that are given whole.
fn found_in(files: &[(&str, &str)]) -> Vec<String> {
    checked(files, Some("START.md"), &[])
}

const END: (&str, &str) = ("END.md", "<result>x</result>");

#[test]
fn tag_to_missing_state_is_error_but_warning_in_code() {
    let quoted = [
        "Write `<goto>GONE.md</goto>`.\n<result>x</result>",
        "```\n<goto>GONE.md</goto>\n```\n<result>x</result>",
        "<!-- <goto>GONE.md</goto> --> <result>x</result>",
    ];
    for text in quoted {
        let found = found_in(&[("START.md", text)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("warning: RF103 the text shows <goto>GONE.md</goto>"),
            "{found:?}"
        );
    }
    for (tag, state) in [
        ("<goto>GONE.md</goto>", "GONE.md"),
        ("<reset>GONE.md</reset>", "GONE.md"),
        ("<call return=\"GONE.md\">END.md</call>", "GONE.md"),
        ("<function return=\"END.md\">GONE.md</function>", "GONE.md"),
        ("<fork next=\"GONE.md\">END.md</fork>", "GONE.md"),
        ("<ask next=\"GONE.md\">really?</ask>", "GONE.md"),
        ("<ask next=\"END.md\" timeout=\"1h\" timeout_next=\"LATE.md\">really?</ask>", "LATE.md"),
    ] {
        let found = found_in(&[("START.md", &format!("a\nor {tag}")), END]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("START.md:2:4: RF103 the text shows <"), "{found:?}");
        assert!(found[0].contains(&format!("{state}: there is no such file")), "{found:?}");
    }
    let with_policy = prompt_with("tag: goto, target: END.md", "END.md, or <goto>GONE.md</goto>");
    let found = found_in(&[("START.md", &with_policy), END]);
    assert!(found.len() == 1 && found[0].starts_with("START.md:5:12: RF103 "), "{found:?}");
}

#[test]
fn tag_without_required_attribute_is_error_around_state() {
    for tag in ["<call>END.md</call>", "<function>END.md</function>", "<fork>END.md</fork>"] {
        let found = found_in(&[("START.md", tag), END]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with(
                "START.md:1:1: RF106 the text shows a tag that is refused in a reply: <"
            ),
            "{found:?}"
        );
    }
    for prose in [
        "`<call>END.md</call>` <result>x</result>",
        "<call>somebody</call> <result>x</result>",
        "<fork>END.md</fork> <goto>END.md</goto>",
    ] {
        let found = found_in(&[("START.md", prose), END]);
        assert!(found.len() == 1 && found[0].contains(": warning: RF106 "), "{prose}: {found:?}");
    }
}

#[test]
fn forks_with_different_next_states_in_one_text_have_warning() {
    let text = "<fork next=\"A.md\">END.md</fork>\n<fork next=\"END.md\">END.md</fork>";
    let a = ("A.md", "<result>x</result>");
    let found = found_in(&[("START.md", text), a, END]);
    assert_eq!(
        found,
        [
            "START.md:2:1: warning: RF207 the text shows forks that lead this agent to A.md and to END.md; one reply leads it to one state, so give them the same next=\"…\""
        ]
    );
    let entries = "tag: fork, target: END.md, next: A.md; tag: fork, target: END.md, next: END.md";
    let alternatives = prompt_with(entries, text);
    assert!(found_in(&[("START.md", &alternatives), a, END]).is_empty());
    let many = alternatives.replace("---\nallowed", "---\nforks: many\nallowed");
    let found = found_in(&[("START.md", &many), a, END]);
    let codes: Vec<&str> = found.iter().map(|line| &line[..line.len().min(29)]).collect();
    assert_eq!(
        codes,
        ["START.md:5:40: warning: RF207", "START.md:8:1: warning: RF207 "],
        "{found:?}"
    );
}

#[test]
fn target_of_policy_that_text_never_mentions_is_warned_of() {
    let entries = "tag: goto, target: A.md; tag: goto, target: END.md; tag: result";
    let text = |text: &str| {
        let start = prompt_with(entries, text);
        found_in(&[("START.md", &start), ("A.md", "<result>x</result>"), END])
    };
    assert_eq!(
        text("<goto>A.md</goto>"),
        [
            "START.md:4:26: warning: RF208 the text never mentions END.md, so agents do not know when to go there; say when to write <goto>END.md</goto>, or leave the entry out"
        ]
    );
    assert!(text("Go to A, or to END.").is_empty());
    assert!(text("<goto>{{where}}</goto>").iter().all(|line| !line.contains("RF208")));
    let single = prompt_with("tag: goto, target: END.md", "Do it.");
    assert!(found_in(&[("START.md", &single), END]).is_empty(), "the only way needs no mention");
}

#[test]
fn reachable_prompt_without_transition_has_warning() {
    let found = found_in(&[("START.md", "<goto>NEXT.md</goto>"), ("NEXT.md", "Stop.")]);
    assert!(found.len() == 1 && found[0].starts_with("NEXT.md:1:1: warning: RF105 "), "{found:?}");
    let found = found_in(&[("START.md", "Read NEXT.md. <result>x</result>"), ("NEXT.md", "Text.")]);
    assert!(found.is_empty(), "what is only mentioned may be no state: {found:?}");
}

#[test]
fn call_whose_texts_show_no_result_is_warned_of() {
    let start = ("START.md", "<call return=\"END.md\">A.md</call>");
    let loops = ("A.md", "<goto>B.md</goto>");
    let found = found_in(&[start, loops, ("B.md", "<goto>A.md</goto>"), END]);
    assert_eq!(
        found,
        [
            "START.md:1:1: warning: RF308 this call of A.md comes to no result: no text or policy from there on has a <result>; show one in a state that it leads to"
        ]
    );
    for last in
        ["<result>x</result>", "<goto>{{where}}</goto>", "Then result.", "<goto>END.md</goto>"]
    {
        let found = found_in(&[start, loops, ("B.md", last), END]);
        assert!(found.iter().all(|line| !line.contains("RF308")), "{last}: {found:?}");
    }
}

#[test]
fn only_entry_of_policy_is_noted() {
    let files = [
        ("START.md", prompt("tag: goto, target: END.md, kind: a", "x")),
        ("END.md", END.1.to_owned()),
    ];
    let source: BTreeMap<String, String> =
        files.into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
    let found = check(CheckSubject {
        source: &source,
        entry: None,
        variables: &[],
        consent: &StarterConsent::default(),
        graphs: &|_, _| FolderGraph::default(),
    });
    let found: Vec<String> = found.diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "START.md:3:5: info: RF601 this is the only way, so a reply without a tag takes it: <goto kind=\"a\">END.md</goto>"
        ]
    );
}

#[test]
fn texts_that_explain_tags_in_code_have_no_errors() {
    let explained = "# Tags\n\n| tag | |\n|---|---|\n| `<goto>FILE.md</goto>` | goes |\n| `<call return=\"NEXT.md\">SUB.md</call>` | calls |\n\n```text\n<fork next=\"A.md\">W.md</fork>\n<reset>GONE.md</reset>\n<call>END.md</call>\n```\n\nUse <goto> or <call>, and end with <result>…</result>.\n\n    <goto>OTHER.md</goto>\n";
    let found = found_in(&[("START.md", explained), END]);
    assert!(
        !found.is_empty() && found.iter().all(|line| line.contains(": warning: ")),
        "{found:#?}"
    );
}
