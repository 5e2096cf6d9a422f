//! Programs that ask a person: answers of all kinds, timeouts, kills, and several questions side by side.

use super::{ask, route, written};
use crate::support::{Test, always};

/// A program that asks for a release, and then for a text.
const ASKS: &str = "(workflow w
  (state s
    (action (user-input :prompt \"Release ~a?\" :args (@label) :options (yes no) :as release))
    (branch (on (equals @release no) (terminal :result kept)))
    (action (user-input :prompt \"Which name?\" :as name))
    (terminal :result @name)))";

fn asks() -> Test {
    written(ASKS)
}

#[test]
fn question_of_program_is_answered_by_command() {
    let test = asks();
    test.run(&["p.lisp"]).code(2).stderr_has("Release t?");
    test.raymond(&["answer", "t"]).ok().stdout_has("raymond answer t release=yes");
    test.raymond(&["status", "t"]).ok().stdout_has("Release t?");
    test.raymond(&["answer", "t", "release=maybe"]).code(64).stderr_has("use one of yes, no");
    test.raymond(&["answer", "t", "release=1"]).ok();
    let shown = test.raymond(&["status", "t"]);
    shown.ok().stdout_has("main/release is answered: 1\nto continue: raymond resume t\n");
    test.resume(&[]).code(2).stderr_has("Which name?");
    test.raymond(&["list"]).ok().stdout_lacks("raymond resume");
    test.raymond(&["answer", "t", "name=v 1"]).ok();
    for list in ["list", "recover"] {
        let listed = test.raymond(&[list]);
        listed.ok().stdout_has("an answer has come; resume it: raymond resume t");
    }
    let tree = test.raymond(&["tree", "t"]);
    tree.ok().stdout_has("main/name is answered: v 1\nto continue: raymond resume t\n");
    test.raymond(&["recover", "--all"]).ok().stdout_has("completed");
    test.raymond(&["resume", "t"]).ok().ended("main", "v 1");
    let states =
        ["s waiting (user-input :as release)", "s waiting (user-input :as name)", "s completed"];
    assert_eq!(route(&test, "main"), states);
}

#[test]
fn answers_given_ahead_of_time_count() {
    let test = asks();
    test.run(&["p.lisp", "--answer", "release=no"]).ok().ended("main", "kept");
    let test = asks().file("answers.yaml", b"release: yes\nname: v2\n");
    let file = test.flow().join("answers.yaml");
    let file = file.to_str().expect("a path");
    test.run(&["p.lisp", "--answers", file]).ok().ended("main", "v2");
    let test = asks();
    for (given, why) in [
        ("relase=no", "did you mean release?"),
        ("release=maybe", "use one of yes, no"),
        ("other=1", "it asks for release, name"),
    ] {
        test.run(&["p.lisp", "--answer", given]).code(64).stderr_has(why);
    }
}

#[test]
fn question_that_nobody_answers_in_time_leads_to_its_state() {
    let asks = |timeout: &str| {
        written(&format!(
            "(workflow w (state s (action (user-input :prompt \"Well?\" :timeout \"20ms\" {timeout} :as x)) (terminal :result @x))
              (state late (terminal :result nobody)))"
        ))
    };
    let test = asks(":on-timeout late");
    test.run(&["p.lisp", "--on-wait", "stay"]).ok().ended("main", "nobody");
    let test = asks("");
    let ended = test.run(&["p.lisp", "--on-wait", "stay"]);
    assert!(ended.code(1).failed("main").contains("nobody answered x in time"));
}

#[test]
fn program_killed_at_its_question_keeps_it_and_the_answer() {
    for point in ["append.before", "sync.after", "effect.before", "inbox.before"] {
        for count in 1..=6 {
            let context = format!("{point}:{count}");
            let test = asks().env("RAYMOND_FAILPOINT", &context);
            let mut last = test.run(&["p.lisp"]);
            let mut answered = 0;
            let test = test.env("RAYMOND_FAILPOINT", "none:1");
            while last.status.code() != Some(0) {
                last.assert(last.killed() || last.status.code() == Some(2), &context);
                if last.status.code() == Some(2) {
                    let name = ["release=yes", "name=it"][answered];
                    test.raymond(&["answer", "t", name]).ok();
                    answered += 1;
                }
                last =
                    if test.run_dir().exists() { test.resume(&[]) } else { test.run(&["p.lisp"]) };
            }
            last.ended("main", "it");
            assert_eq!(test.events("question_answered").len(), 2, "{context}");
        }
    }
}

#[test]
fn roles_go_on_while_a_person_is_asked() {
    let send = "(action (send-prompt :agent a :template work :request-id r))";
    let test = written(&format!(
        "(workflow w (roles (a)) (state s {send}
          (action (user-input :prompt \"Well?\" :as x))
          (await (transcript-response :request-id r))
          (action (log x)) {} (terminal :result (response r2))))",
        ask("a", "more", "r2")
    ))
    .rule(always().reply("done"));
    test.run(&["p.lisp"]).code(2);
    assert_eq!(test.prompts(), ["work"]);
    test.raymond(&["answer", "t", "x=go"]).ok();
    test.resume(&[]).ok().ended("main", "done");
}

#[test]
fn each_element_asks_a_separate_question() {
    let test = written(
        "(workflow w (state s
          (for-each topic in (one two)
            (user-input :prompt \"~a?\" :args (@topic) :as choice)
            (log \"~a ~a\" @topic @choice))
          (terminal :result @choice/two)))",
    );
    test.run(&["p.lisp"]).code(2).stderr_has("one?");
    test.raymond(&["answer", "t", "choice/one=a"]).ok();
    test.resume(&[]).code(2).stderr_has("two?");
    test.raymond(&["answer", "t", "choice/two=b"]).ok();
    test.resume(&[]).ok().ended("main", "b");
    assert_eq!(super::logged(&test), ["one a", "two b"]);
}

#[test]
fn question_and_awaited_signal_are_notified() {
    let test = written(
        "(workflow w (state s (action (user-input :prompt \"Well?\" :as x))
          (wait (signal go :key @workflow-id)) (terminal :result @x)))",
    );
    let keeper = test.root().join("told");
    let hook = format!("sh -c 'echo \"$RAYMOND_EVENT $RAYMOND_MESSAGE\" >> {}'", keeper.display());
    test.run(&["p.lisp", "--answer", "x=1", "--on-wait", "exit", "--on-event", &hook]).code(2);
    let told = std::fs::read_to_string(&keeper).expect("told");
    let first = told.lines().next().unwrap_or_default();
    assert_eq!(
        first,
        "signal main of run t waits for (signal go :key t); when it is so, assert it: raymond signal go --key t"
    );
    let test = written("(workflow w (state s (action (user-input :prompt \"Well?\" :as x))))");
    let keeper = test.root().join("told");
    let hook = format!("sh -c 'echo \"$RAYMOND_EVENT $RAYMOND_MESSAGE\" >> {}'", keeper.display());
    test.run(&["p.lisp", "--on-event", &hook]).code(2);
    let told = std::fs::read_to_string(&keeper).expect("told");
    let first = told.lines().next().unwrap_or_default();
    assert_eq!(first, "question main of run t asks x: Well?; answer: raymond answer t main/x=TEXT");
}
