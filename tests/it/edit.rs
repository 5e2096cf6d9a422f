//! `raymond edit`: a person edits the prompt that is due of an agent, and the agent is asked that.

use crate::support::{Test, always, held, when};

/// Returns a run that is paused before its second step.
fn before_next(workflow: Test) -> Test {
    let mut run = workflow.spawn(&["START.md"]);
    run.wait_calls(1);
    workflow.raymond(&["stop", "t"]).ok();
    workflow.release("go");
    run.wait().code(130);
    workflow
}

/// An editor that replaces a word of the prompt.
const REPLACES: &str = "sed -i s/next/another/";

#[test]
fn edited_prompt_replaces_the_pending_prompt() {
    let test = before_next(held()).env("EDITOR", REPLACES);
    test.raymond(&["edit", "t", "main"])
        .ok()
        .stdout_has("main is asked:\n\nanother\n")
        .stdout_has("raymond resume t");
    test.resume(&[]).ok().ended("main", "ok");
    assert_eq!(test.prompts(), ["start", "another"]);
    test.raymond(&["log", "t"]).ok().stdout_has("someone edits its prompt: another");
    let left = std::fs::read_dir(test.run_dir()).expect("a folder").flatten();
    assert!(left.into_iter().all(|file| !file.file_name().to_string_lossy().starts_with("edit-")));
}

#[test]
fn prompt_is_edited_once_the_running_turn_is_over() {
    let test = held().env("VISUAL", REPLACES).env("EDITOR", "false");
    let mut run = test.spawn(&["START.md", "--on-wait", "stay"]);
    run.wait_calls(1);
    let edited = test.start(&["edit", "t", "main"]);
    run.wait_event("command_received", 1);
    test.release("go");
    assert_eq!(edited.wait().ok().stdout, "main is asked:\n\nanother\n\nmain continues\n");
    run.wait().ok().ended("main", "ok");
    assert_eq!(test.prompts(), ["start", "another"]);
}

#[test]
fn edited_prompt_is_asked_again_if_its_turn_fails_and_only_in_its_step() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").hold_before("go").reply("<goto>NEXT.md</goto>"))
        .rule(when("another").once().exit(1))
        .rule(when("another").reply("<goto>NEXT.md</goto>"))
        .rule(always().reply("<result>ok</result>"));
    let test = before_next(test).env("EDITOR", REPLACES);
    test.raymond(&["edit", "t", "main"]).ok();
    test.resume(&[]).ok();
    assert_eq!(test.prompts(), ["start", "another", "another", "next"]);
}

#[test]
fn edited_prompt_is_asked_again_by_a_retry_and_shown_as_a_prompt() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").hold_before("go").reply("<goto>NEXT.md</goto>"))
        .rule(when("another").times(2).exit(1))
        .rule(always().reply("<result>ok</result>"));
    let mut run = test.spawn(&["START.md", "--max-restarts", "1"]);
    run.wait_calls(1);
    test.raymond(&["stop", "t"]).ok();
    test.release("go");
    run.wait().code(130);
    let test = test.env("EDITOR", REPLACES);
    test.raymond(&["edit", "t", "main"]).ok();
    test.resume(&[]).code(1).failed("main");
    test.raymond(&["retry", "t"]).ok().ended("main", "ok");
    assert_eq!(test.prompts(), ["start", "another", "another", "another"]);
    test.raymond(&["show", "t", "main"]).ok().stdout_has("another").stdout_lacks("reminder");
}

#[test]
fn hold_that_comes_during_an_edit_outlives_it_and_a_second_edit_is_refused() {
    let (raymond, test) = (env!("CARGO_BIN_EXE_raymond"), before_next(held()));
    let place = test.root().display().to_string();
    let meanwhile = format!(
        "{raymond} hold t main; {raymond} edit t main 2>{place}/second || echo $? >{place}/code; sed -i s/next/another/"
    );
    let test = test.env("EDITOR", &meanwhile);
    test.raymond(&["edit", "t", "main"])
        .ok()
        .stdout_has("main is asked:\n\nanother\n\nmain stays held: raymond release t main\n");
    let written = |name: &str| std::fs::read_to_string(test.root().join(name)).expect(name);
    assert_eq!(written("code"), "64\n");
    assert!(
        written("second").contains("the prompt of main is being edited"),
        "{}",
        written("second")
    );
    test.resume(&[]).code(2).stderr_has("main is held");
    test.raymond(&["release", "t", "main"]).ok();
    test.resume(&[]).ok().ended("main", "ok");
    assert_eq!(test.prompts(), ["start", "another"]);
}

#[test]
fn edit_that_a_stopped_run_would_refuse_is_taken_back_and_its_text_kept() {
    let releases =
        format!("{} release t main; sed -i s/next/another/", env!("CARGO_BIN_EXE_raymond"));
    let test = before_next(held()).env("EDITOR", &releases);
    let edited = test.raymond(&["edit", "t", "main"]);
    edited.code(64).stderr_has("main continued in the meantime").stderr_has("the text is kept");
    test.resume(&[]).ok().ended("main", "ok");
    assert_eq!(test.prompts(), ["start", "next"]);
}

#[test]
fn run_that_was_killed_before_its_first_turn_takes_its_orders_first() {
    let test = held().env("RAYMOND_FAILPOINT", "effect.before:1");
    assert!(test.run(&["START.md"]).killed());
    let test = test.env("RAYMOND_FAILPOINT", "none:1").env("EDITOR", "sed -i s/start/another/");
    test.raymond(&["edit", "t", "main"]).ok().stdout_has("main is asked:\n\nanother\n");
    test.raymond(&["hold", "t", "main"]).ok();
    test.resume(&[]).code(2).stderr_has("main is held");
    assert_eq!(test.prompts(), [""; 0]);
    test.raymond(&["release", "t", "main"]).ok();
    test.release("go");
    test.resume(&[]).ok().ended("main", "ok");
    assert_eq!(test.prompts()[0], "another");
}

#[test]
fn nothing_changes_without_an_edit() {
    let mut test = before_next(held());
    for (editor, code, told) in [
        ("true", 0, "nothing was changed"),
        ("truncate -s 0", 0, "nothing was changed"),
        ("false", 64, "the editor `false` ended with exit status: 1"),
        ("no-such-editor", 64, "the editor `no-such-editor` was not found; set VISUAL or EDITOR"),
        ("", 64, "no terminal for an editor"),
    ] {
        test = test.env("EDITOR", editor);
        let edited = test.raymond(&["edit", "t", "main"]);
        edited.code(code);
        let said = format!("{}{}", edited.stdout, edited.stderr);
        assert!(said.contains(told), "{editor}: {said}");
        assert!(!said.contains("is kept"), "{editor}: {said}");
    }
    test = test.env("EDITOR", "sh -c 'echo mine > \"$1\"; exit 1' sh");
    test.raymond(&["edit", "t", "main"]).code(64).stderr_has("the text is kept in");
    let files = std::fs::read_dir(test.run_dir()).expect("a folder").flatten();
    let kept = files.filter(|file| file.file_name().to_string_lossy().starts_with("edit-"));
    let kept: Vec<_> = kept.map(|file| std::fs::read_to_string(file.path())).collect();
    assert!(matches!(&kept[..], [Ok(own)] if own == "mine\n"), "{kept:?}");
    test.resume(&[]).ok().ended("main", "ok");
    assert_eq!(test.prompts(), ["start", "next"]);
}

#[test]
fn edit_of_an_agent_that_was_released_meanwhile_is_refused() {
    let test = before_next(held()).env("EDITOR", REPLACES);
    test.raymond(&["edit", "t", "main"]).ok();
    let again = test.raymond(&["edit", "t", "main"]);
    again.code(64).stderr_has("edited for it before waits for `raymond resume t`");
    test.resume(&[]).ok().ended("main", "ok");

    let releases =
        format!("{} release t main; sed -i s/next/another/", env!("CARGO_BIN_EXE_raymond"));
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").hold_before("go").reply("<goto>NEXT.md</goto>"))
        .rule(when("next").hold_before("later").reply("<result>ok</result>"))
        .env("EDITOR", &releases);
    let mut run = test.spawn(&["START.md", "--on-wait", "stay"]);
    run.wait_calls(1);
    let edited = test.start(&["edit", "t", "main"]);
    run.wait_event("command_received", 1);
    test.release("go");
    edited
        .wait()
        .code(64)
        .stderr_has("main continued in the meantime")
        .stderr_has("the text is kept");
    test.release("later");
    run.wait().ok().ended("main", "ok");
    assert_eq!(test.prompts(), ["start", "next"]);
}

#[test]
fn agent_without_a_prompt_that_is_due_says_why() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "they said {{answer}}")
        .rule(when("start").reply(r#"<ask next="NEXT.md">Shall I?</ask>"#))
        .env("EDITOR", REPLACES);
    test.run(&["START.md"]).code(2);
    let edited = test.raymond(&["edit", "t", "main"]);
    edited.code(64).stderr_has("main has no pending prompt").stderr_has("raymond answer");
    test.raymond(&["edit", "t", "main.7"]).code(64).stderr_has("main.7");
    test.raymond(&["answer", "t", "NEXT.md=yes"]).ok();
}
