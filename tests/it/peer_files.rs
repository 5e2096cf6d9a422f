//! Files that were written for `ray`, another runtime of prompt folders, mean the same here, or raymond says that they
//! do not.

use crate::support::Test;

const SCRIPTED: [&str; 2] = ["--agent", "scripted"];

/// Returns a folder of files, most of them texts.
fn folder(files: &[(&str, &str)]) -> Test {
    files.iter().fold(Test::new(), |test, (name, text)| test.file(name, text.as_bytes()))
}

fn run(test: &Test, first: &str, further: &[&str]) -> crate::support::RaymondOutcome {
    test.run(&[&[first][..], &SCRIPTED[..], further].concat())
}

#[test]
fn script_has_result_and_input_under_the_names_of_the_peer() {
    let choice = "#!/bin/sh\ncase \"$RAYMOND_RESULT\" in\n  NO) echo \"<ask next='LAST.sh'>ok?</ask>\" ;;\n  *) echo '<goto>START.sh</goto>' ;;\nesac\n";
    let test = folder(&[
        ("START.sh", "echo \"<call return='CHOICE.sh' word='$RAYMOND_INPUT'>JUDGE.md</call>\"\n"),
        ("JUDGE.md", "<result>{{word}}</result>"),
        ("CHOICE.sh", choice),
        ("LAST.sh", "echo \"<result>$RAYMOND_INPUT ${RAYMOND_RESULT:-none}</result>\"\n"),
        ("replies.yaml", "JUDGE.md: [\"<result>NO</result>\"]\n"),
    ])
    .env("RAYMOND_RESULT", "of the caller");
    let outcome = run(&test, "START.sh", &["--input", "i", "--answer", "LAST.sh=yes"]);
    outcome.ok().ended("main", "yes none");
    assert_eq!(test.events("step_finished")[0]["transition"]["variables"]["word"], "i");
}

#[test]
fn tag_of_script_may_take_several_lines_and_texts_to_print_stand_anywhere() {
    let script = "echo '<print>early</print>'\necho log\ncat <<T\n<ask next=\"B.md\">\nwhat?\n</ask>\nT\necho '<print>late</print>'\n";
    let test = folder(&[
        ("START.sh", script),
        ("B.md", "{{answer}} <result>x</result>"),
        ("replies.yaml", "B.md: [\"<result>{{answer}}</result>\"]\n"),
    ]);
    let outcome = run(&test, "START.sh", &["--answer", "B.md=red"]);
    outcome.ok().ended("main", "red").says("early").says("late");
}

#[test]
fn fork_tags_of_a_script_are_one_step() {
    let fork =
        |item: &str| format!("echo '<fork next=\"NEXT.sh\" item=\"{item}\">WORK.sh</fork>'\n");
    let two = fork("a") + "echo 'one has begun'\n" + &fork("b");
    let apart = fork("a") + "echo '<fork next=\"WORK.sh\">WORK.sh</fork>'\n";
    let test = folder(&[
        ("START.sh", two.as_str()),
        ("NEXT.sh", "echo '<result>all</result>'\n"),
        ("WORK.sh", "echo \"<result>$RAYMOND_VAR_item</result>\"\n"),
    ]);
    let outcome = run(&test, "START.sh", &[]);
    outcome.ok().ended("main", "all").ended("main.1", "a").ended("main.2", "b");
    let other = folder(&[
        ("START.sh", apart.as_str()),
        ("NEXT.sh", "echo '<result>all</result>'\n"),
        ("WORK.sh", "echo '<result>x</result>'\n"),
    ]);
    let outcome = run(&other, "START.sh", &[]);
    assert!(outcome.code(1).failed("main").contains("START.sh"));
    let lost = folder(&[
        ("START.sh", "echo '<fork>WORK.sh</fork>'\necho '<goto>NEXT.sh</goto>'\n"),
        ("NEXT.sh", "echo '<result>all</result>'\n"),
        ("WORK.sh", "echo '<result>x</result>'\n"),
    ]);
    let outcome = run(&lost, "START.sh", &[]);
    assert!(outcome.code(1).failed("main").contains("<fork> needs the attribute next"));
}

#[test]
fn directory_is_taken_by_a_fork_alone() {
    let test = folder(&[
        ("START.md", "say <function return=\"B.md\" cwd=\"sub\">C.sh</function>"),
        ("B.md", "{{result}} <result>x</result>"),
        ("C.sh", "echo \"<result>$PWD</result>\"\n"),
        ("replies.yaml", "START.md: ['<function return=\"B.md\" cwd=\"sub\">C.sh</function>']\n"),
    ]);
    let why = "<function> does not take the attribute `cwd`; only a <fork> takes a directory";
    test.raymond(&["check", "."]).code(65).says(why);
    let outcome = run(&test, "START.md", &["--no-check"]);
    assert!(outcome.code(1).failed("main").contains(why), "{}", outcome.stdout);
    let moved = folder(&[
        ("START.sh", "mkdir -p sub\necho '<fork next=\"NEXT.sh\" cd=\"sub\">WORK.sh</fork>'\n"),
        ("NEXT.sh", "echo '<result>x</result>'\n"),
        ("WORK.sh", "echo \"<result>${PWD##*/}</result>\"\n"),
    ]);
    run(&moved, "START.sh", &[]).ok().ended("main.1", "sub");
}

#[test]
fn check_warns_of_input_where_only_an_answer_or_a_result_comes() {
    let said = |files: &[(&str, &str)]| {
        let outcome = folder(files).raymond(&["check", "."]);
        outcome.stdout.lines().filter(|line| line.contains("RF406")).count()
    };
    let ask = ("START.md", "{{input}} <ask next=\"B.md\">ok?</ask>");
    let end = |text: &'static str| ("B.md", text);
    assert_eq!(said(&[ask, end("{{input}} <result>x</result>")]), 1);
    assert_eq!(said(&[ask, end("{{answer}} to {{input}} <result>x</result>")]), 0);
    let given = ("START.md", "<ask next=\"B.md\" input=\"again\">ok?</ask>");
    assert_eq!(said(&[given, end("{{input}} <result>x</result>")]), 0);
    let both = ("START.md", "<ask next=\"B.md\">ok?</ask> or <goto>B.md</goto>");
    assert_eq!(said(&[both, end("{{input}} <result>x</result>")]), 0);
    let call = ("START.md", "<call return=\"B.md\">C.md</call>");
    let called = ("C.md", "{{input}} <result>x</result>");
    assert_eq!(said(&[call, called, end("{{input}} <result>x</result>")]), 1);
}

#[test]
fn manifest_of_the_peer_gives_the_budget_and_is_not_a_graph() {
    let manifest = "id: smoke\nname: Smoke\ndefault_budget: 0.10\ninput: { mode: required }\n";
    let start = "---\nallowed_transitions: [{ tag: goto, target: START.md }, { tag: result }]\n---\n<goto>START.md</goto>\n";
    let replies = "START.md: [{ reply: \"<goto>START.md</goto>\", cost: 0.2, repeat: true }]\n";
    let files = [("START.md", start), ("workflow.yaml", manifest), ("replies.yaml", replies)];
    let test = folder(&files);
    test.raymond(&["check", "."]).ok().says("RF604").says("`input` has no effect here");
    run(&test, ".", &[]).code(75);
    let alone = folder(&files[1..]);
    alone.raymond(&["check", "."]).code(65).says("a manifest of ray, not a graph");
    run(&alone, ".", &[]).code(65).says("a manifest of ray, not a graph");
}
