//! Tests of folders with mistakes, and of the messages: a table for each subject.

mod fan_out;
mod flow;
mod folders;
mod implied;
mod names;
mod outputs;
mod programs;
mod rule_table;
mod rules;
mod scopes;
mod scripts;
mod texts;

use std::collections::BTreeMap;

use super::*;
use crate::prompt::workflow_map::FolderGraph;
use raymond_model::privilege::StarterConsent;

fn folder(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect()
}

fn checked(files: &[(&str, &str)], entry: Option<&str>, variables: &[&str]) -> Vec<String> {
    let source = folder(files);
    let entry = entry.map(|name| StateName::parse(name).expect("a state"));
    let variables: Vec<String> = variables.iter().map(|&name| name.to_owned()).collect();
    let graphs = |_: &dyn WorkflowSource, _: &StateName| FolderGraph::default();
    let subject = CheckSubject {
        source: &source,
        entry: entry.as_ref(),
        variables: &variables,
        consent: &StarterConsent::default(),
        graphs: &graphs,
    };
    let found = check(subject).diagnostics;
    let problems = found.iter().filter(|diagnostic| diagnostic.severity != Severity::Info);
    problems.map(ToString::to_string).collect()
}

/// Returns a prompt with a policy, an entry a line, whose text names all targets at its end.
fn prompt(entries: &str, text: &str) -> String {
    prompt_with(entries, &format!("{text}\n{entries}"))
}

fn prompt_with(entries: &str, text: &str) -> String {
    let entries: Vec<String> =
        entries.split("; ").map(|entry| format!("  - {{ {entry} }}\n")).collect();
    let entries = entries.concat();
    format!("---\nallowed_transitions:\n{entries}---\n{text}\n")
}

/// Returns the problems of prompts, given as name, entries and text.
fn diagnostics(prompts: &[(&str, &str, &str)]) -> Vec<String> {
    let texts: Vec<String> = prompts
        .iter()
        .map(|(_, entries, text)| match *entries {
            "" => (*text).to_owned(),
            entries => prompt(entries, text),
        })
        .collect();
    let files: Vec<(&str, &str)> =
        prompts.iter().zip(&texts).map(|((name, ..), text)| (*name, text.as_str())).collect();
    checked(&files, None, &[])
}

#[test]
fn valid_folder_has_no_diagnostics() {
    let found = diagnostics(&[
        ("START.md", "tag: goto, target: WORK.md", "{{input}} {{agent_id}}"),
        (
            "WORK.md",
            "tag: fork, target: W.md, next: WORK.md; tag: call, target: S.md, return: END.md",
            "<fork next=\"WORK.md\" item=\"x\">W.md</fork>",
        ),
        ("W.md", "tag: result", "{{item}}"),
        ("S.md", "tag: result", "x"),
        ("END.md", "tag: result", "{{result}}"),
        ("README.md", "", "---\nnot: ours\n---\nx"),
    ]);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn missing_target_file_is_reported() {
    let found = diagnostics(&[
        (
            "START.md",
            "tag: goto, target: WROK.md; tag: call, target: WORK.md, return: GONE.md; tag: goto, target: notes.txt",
            "x",
        ),
        ("WORK.md", "", "<goto>AWAY.md</goto> or <result>x</result>"),
        ("notes.txt", "", "x"),
    ]);
    assert_eq!(
        found,
        [
            "START.md:3:3: RF201 this policy allows nothing: each of its entries names a missing file",
            "START.md:3:26: RF101 WROK.md: there is no such file; did you mean WORK.md?",
            "START.md:4:43: RF101 GONE.md: there is no such file",
            "START.md:5:26: RF101 notes.txt: that is not a state: a state is a prompt, NAME.md, a graph, NAME.yaml, a program, NAME.lisp or NAME.duet, or a script, such as NAME.sh or any file that can be executed",
            "WORK.md:1:1: RF103 the text shows <goto>AWAY.md</goto>, but AWAY.md: there is no such file",
        ]
    );
}

#[test]
fn missing_or_invalid_entry_is_error() {
    let table: [(&[(&str, &str)], &str); 4] = [
        (
            &[("BEGIN.md", "x"), ("other.yaml", "x")],
            "START.md:1:1: RF001 a workflow begins with START.md, START.sh, workflow.yaml or workflow.lisp, and none is in this folder; make one, or name its first file as `entry` in raymond.yaml",
        ),
        (
            &[("start.md", "x")],
            "START.md:1:1: RF001 a workflow begins with START.md, START.sh, workflow.yaml or workflow.lisp, and none is in this folder; there is start.md: rename it, or name its first file as `entry` in raymond.yaml",
        ),
        (
            &[("raymond.yaml", "name: x\nentry: GONE.md\n")],
            "raymond.yaml:2:8: RF003 its `entry` is GONE.md, but there is no such file",
        ),
        (
            &[("raymond.yaml", "entry: x.txt\n"), ("x.txt", "x")],
            "raymond.yaml:1:8: RF003 its `entry` is x.txt, but that is not a state: a state is a prompt, NAME.md, a graph, NAME.yaml, a program, NAME.lisp or NAME.duet, or a script, such as NAME.sh or any file that can be executed",
        ),
    ];
    for (files, expected) in table {
        assert_eq!(checked(files, None, &[]), [expected]);
    }
    assert!(checked(&[("workflow.yaml", "x")], None, &[]).is_empty());
}

#[test]
fn errors_of_all_files_are_reported_at_once() {
    let found = checked(
        &[
            (
                "START.md",
                "---\nallowed_transitions:\n  - { tag: gotu, target: A.md }\n  - { tag: call, target: A.md }\nmodel: gpt\n---\nGo to A.md.",
            ),
            ("A.md", "---\nmodle: x\n---\nx"),
            ("OTHER.md", "---\nmodel: opus\n"),
            ("raymond.yaml", "model: gpt\nbudget: much\n"),
            ("replies.yaml", "START.md: [x]\nSTRAT.md: [x]\nA.md#x: [x]\n"),
        ],
        None,
        &[],
    );
    assert_eq!(
        found,
        [
            "A.md:2:1: RF002 unknown key `modle`; did you mean `model`?",
            "OTHER.md:1:1: RF002 the frontmatter that begins here is not closed; end it with a line `---`",
            "START.md:3:12: RF002 unknown tag `gotu`; did you mean `goto`?",
            "START.md:4:26: RF002 <call> needs the attribute return=\"FILE.md\"",
            "START.md:5:8: warning: RF403 `gpt` is not a known model alias; raymond passes it to Claude Code unchanged",
            "raymond.yaml:1:8: warning: RF403 `gpt` is not a known model alias; raymond passes it to Claude Code unchanged",
            "raymond.yaml:2:9: RF003 write an amount in US dollars, such as 2 or 0.50",
            "replies.yaml:2:1: warning: RF005 unknown prompt STRAT.md; did you mean START.md?",
            "replies.yaml:3:1: warning: RF005 unknown state A.md#x; did you mean A.md?",
        ]
    );
    let script = checked(
        &[("START.md", "<result>x</result>"), ("replies.yaml", "START.md: 1\n")],
        None,
        &[],
    );
    assert!(script[0].starts_with("replies.yaml:1:11: RF004 "), "{script:?}");
}

#[test]
fn state_without_policy_leads_to_files_named_in_text() {
    let found = diagnostics(&[
        ("START.md", "", "Go to NEXT.md, or <goto>LAST.md</goto>."),
        ("NEXT.md", "tag: result", "{{unknown}}. See ASIDE.md."),
        ("LAST.md", "tag: result", "x"),
        ("ASIDE.md", "", "x"),
    ]);
    assert_eq!(
        found,
        [
            "ASIDE.md:1:1: warning: RF110 nothing leads to this state from START.md; name it in a policy, or move it elsewhere if it is not a state"
        ]
    );
}

#[test]
fn only_entry_file_and_reachable_files_are_checked() {
    let files = [
        ("A.md", "<goto>B.md</goto>"),
        ("B.md", "---\nx: 1\n---\nx"),
        ("C.md", "---\ny: 1\n---\nx"),
    ];
    let found = checked(&files, Some("A.md"), &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("B.md:2:1: RF002 "), "{found:?}");
}

#[test]
fn policy_that_contradicts_itself_or_text_is_reported() {
    let found = diagnostics(&[
        (
            "START.md",
            "tag: goto, target: END.md; tag: goto, target: END.md, kind: a; tag: result; tag: result",
            "Or <reset>END.md</reset>, or <call>END.md</call>, or <goto x=\"{{y}}\">END.md</goto>.",
        ),
        ("END.md", "tag: goto, target: GONE.md; tag: goto, target: AWAY.md", "x"),
    ]);
    let codes: Vec<&str> =
        found.iter().map(|line| line.split(" RF").next().expect("a place")).collect();
    assert_eq!(
        codes,
        [
            "END.md:3:3:",
            "END.md:3:26:",
            "END.md:4:26:",
            "START.md:4:5: warning:",
            "START.md:6:5: warning:",
            "START.md:8:4: warning:",
            "START.md:8:30:",
            "START.md:8:63: warning:",
        ],
        "{found:#?}"
    );
    assert!(
        found[0].ends_with(
            "RF201 this policy allows nothing: each of its entries names a missing file"
        )
    );
    assert!(found[3].ends_with(
        "RF202 another entry already allows <goto kind=\"a\">END.md</goto>; remove this one"
    ));
    assert!(found[5].ends_with("RF204 the text shows <reset>END.md</reset>, which the policy above does not allow; a reply with it is refused"));
    assert!(
        found[6].contains("RF106 the text shows a tag that is refused in a reply: <call> needs")
    );
    let empty = checked(&[("START.md", "---\nallowed_transitions: []\n---\nx")], None, &[]);
    assert!(empty[0].starts_with("START.md:2:22: warning: RF203 "), "{empty:?}");
}

#[test]
fn invalid_evaluator_prompt_is_reported() {
    let with =
        |file: &str| format!("---\nevaluator: {{ prompt: {file} }}\n---\n<result>x</result>");
    let table = [
        ("GONE.md", "START.md:2:22: RF102 GONE.md: there is no such file"),
        ("x.txt", "START.md:2:22: RF102 x.txt: an evaluator is asked by a prompt, NAME.md"),
        (
            "BLIND.md",
            "BLIND.md:1:1: warning: RF402 an evaluator sees only its prompt; show it {{output}}, the reply it judges",
        ),
    ];
    for (file, expected) in table {
        let files = [("START.md", &*with(file)), ("x.txt", "x"), ("BLIND.md", "is it good?")];
        assert_eq!(checked(&files, Some("START.md"), &[]), [expected]);
    }
    let files = [("START.md", &*with("CHECK.md")), ("CHECK.md", "{{output}} {{input}} {{more}}")];
    let found = checked(&files, None, &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("CHECK.md:1:22: warning: RF401 nothing fills {{more}}"),
        "{found:?}"
    );
}

#[test]
fn misspelt_tag_is_error_around_state_and_warning_around_other_text() {
    let found = diagnostics(&[
        (
            "START.md",
            "tag: goto, target: NEXT.md }\n  - { tag: result",
            "<gotto>NEXT.md</gotto>\n<goto>NEXT.md<goto>\n<gotto>GONE.md</gotto>",
        ),
        ("NEXT.md", "", "<reslt>x</reslt> or <result>x</result>"),
    ]);
    assert_eq!(
        found,
        [
            "NEXT.md:1:1: warning: RF104 the text shows <reslt>, which is not a tag; did you mean <result>?",
            "START.md:6:1: RF104 the text shows <gotto>, which is not a tag; did you mean <goto>?",
            "START.md:7:1: RF104 the text shows a <goto> without its </goto>",
            "START.md:8:1: warning: RF104 the text shows <gotto>, which is not a tag; did you mean <goto>?",
        ]
    );
    let output = "---\noutput: { type: object }\n---\n<gotto>NEXT.md</gotto>";
    let found = checked(&[("START.md", output), ("NEXT.md", "x")], Some("START.md"), &[]);
    assert!(found.iter().all(|line| !line.contains("RF104")), "{found:?}");
}

#[test]
fn first_prompt_without_tag_or_policy_is_warned_of() {
    let warning = "START.md:1:1: warning: RF105 the text shows no tag and has no policy, so agents do not know how to end; show them a tag, such as <result>…</result>, or list `allowed_transitions`";
    for text in ["x", "{{input}}", "Go to NEXT.md."] {
        let files = [("START.md", text), ("NEXT.md", "x")];
        assert_eq!(checked(&files, Some("START.md"), &[]), [warning], "{text}");
    }
    for text in ["<goto>{{where}}</goto>", "{{rules}}", "---\nallowed_transitions: []\n---\nx"] {
        let found = checked(&[("START.md", text)], None, &["where", "rules"]);
        assert!(found.iter().all(|line| !line.contains("RF105")), "{found:?}");
    }
}

#[test]
fn diagnostic_codes_are_unique_and_sorted() {
    assert!(crate::prompt::codes::CODES.is_sorted_by(|a, b| a.0 < b.0));
}

#[test]
fn invalid_or_privileged_options_are_reported_with_location() {
    let found = checked(
        &[
            (
                "START.md",
                "---\neffort: hgh\ntools: Read, Grep\nallowed_tools: ['Bash(x)']\nsettings: gone.json\n---\n<result>x</result>",
            ),
            ("raymond.yaml", "env: { PATH: /x }\nsettings: here.json\nmax_turns: 0\n"),
            ("here.json", "{}"),
        ],
        None,
        &[],
    );
    assert_eq!(
        found,
        [
            "START.md:2:9: RF002 unknown value `hgh` of `effort`; did you mean `high`?",
            "START.md:3:8: RF002 `tools` is a list; write [Read, Grep]",
            "START.md:4:17: warning: RF404 `allowed_tools`: `Bash(x)` would run unasked, which the run was not started with; allow it with --allow-tool 'Bash(x)'",
            "START.md:5:11: RF002 gone.json: there is no such file in the workflow",
            "START.md:5:11: warning: RF404 `settings`: it may allow more; allow it with --trust",
            "raymond.yaml:1:8: warning: RF404 `env`: `PATH` can change which program runs or what it talks to; pass the starter's own with `env: [PATH]`, or allow it with --trust",
            "raymond.yaml:3:12: RF003 `max_turns` is a whole number from 1 to 4294967295",
        ]
    );
    let found = checked(
        &[("START.md", "---\nallowed_tools: ['Bash(x)', TodoWrite]\n---\n<result>x</result>")],
        None,
        &[],
    );
    assert_eq!(
        found,
        [
            "START.md:2:17: warning: RF404 `allowed_tools`: `Bash(x)` would run unasked, which the run was not started with; allow it with --allow-tool 'Bash(x)'"
        ]
    );
}
