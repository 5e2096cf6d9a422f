//! `for-each`: bodies that run side by side.

use serde_json::json;

use super::{Play, program, state};
use raymond_model::activity::{Activity, ActivityResult, BodyCommand};

const ASK: &str = "(send-prompt :agent @who :template \"to ~a\" :args (@who)) (await (transcript-response :request-id look))";

/// Returns the outcomes of the commands that are not held.
pub(super) fn outcomes(play: &mut Play, all: &[BodyCommand]) -> ActivityResult {
    let ended = all.iter().filter(|body| !play.held.contains(&body.command.command));
    let ended: Vec<&BodyCommand> = ended.collect();
    let outcomes = ended.into_iter().map(|body| {
        play.done.push(format!("run {}", body.command.command));
        (body.id, play.outputs.pop_front().expect("an output"))
    });
    ActivityResult::Commands(outcomes.collect())
}

/// Plays a program whose commands are all held, and end with their own texts.
fn held(text: &str, commands: &[&str]) -> Play {
    let mut play = Play::before(text);
    play.held = commands.iter().map(|&command| command.to_owned()).collect();
    play.go();
    play
}

/// Lets a held command end.
fn ends(play: &mut Play, command: &str, code: i64) {
    play.held.remove(command);
    play.outputs.push_back(Ok(json!({"exit_code": code, "stdout": command, "stderr": ""})));
    play.go();
}

/// Returns the commands that run, each with its identity.
fn running(play: &Play) -> Vec<String> {
    let Some(Activity::Commands(all)) = &play.execution().position.activity else {
        panic!("{:?}", play.execution().position)
    };
    let text = |body: &BodyCommand| {
        format!("{}.{} {}", body.id.step, body.id.number, body.command.command)
    };
    all.iter().map(text).collect()
}

#[test]
fn commands_of_bodies_run_at_once_and_keep_their_identity() {
    let text = state(
        "(for-each n in (a b c) (run :command \"make\" :args (@n) :as x) (log \"~a ~a\" @n @x) (run :command \"test\" :as y))",
    );
    let mut play = Play::before(&text.replace("\"make\"", "@n"));
    play.held = ["a", "b", "c", "test"].map(str::to_owned).into();
    play.go();
    let first = running(&play);
    assert_eq!(first, ["1.1 a", "1.2 b", "1.3 c"].map(|name| name.replace("1.", &first[0][..2])));
    ends(&mut play, "b", 0);
    assert_eq!(play.shown, ["b b"], "it does not wait for the others");
    let then = running(&play);
    assert_eq!((&then[0], &then[2]), (&first[0], &first[2]), "they run on");
    assert!(then[1].ends_with(".1 test") && !then.contains(&first[1]), "{then:?}");
    for command in ["c", "a"] {
        ends(&mut play, command, 0);
    }
    assert_eq!(play.shown, ["b b", "c c", "a a"]);
    for _ in 0..3 {
        play.outputs.push_back(Ok(json!({"exit_code": 0, "stdout": "", "stderr": ""})));
    }
    ends(&mut play, "test", 0);
    assert_eq!(play.completed_in(), "s");
}

#[test]
fn bodies_ask_wait_and_time_out_while_a_command_of_another_runs() {
    let text = state(
        "(for-each n in (slow quick)
           (branch
             (on (equals @n slow) (action (run :command build)))
             (otherwise
               (action (send-prompt :agent a :template hello :request-id r))
               (await (transcript-response :request-id r))
               (action (assert done :key @n))
               (wait (signal go) :timeout \"1s\" :on-timeout s))))
         (terminal :result over)",
    );
    let mut play = held(&text, &["build"]);
    assert_eq!(play.asked, ["a: hello"]);
    assert_eq!(
        play.awaiting(),
        "(and (run :command \"build\") (transcript-response :request-id r/quick))"
    );
    assert!(!play.waits_for_outside());
    play.answers("a", "hi");
    assert_eq!(play.done, ["assert done quick "]);
    assert_eq!(play.due_in(), Some(1000));
    play.fact("go", "", "");
    assert_eq!(play.awaiting(), "(run :command \"build\")");
    ends(&mut play, "build", 0);
    assert_eq!(play.ended(), "over");
}

#[test]
fn failure_of_a_body_command_does_not_fail_other_bodies() {
    let text = program(&[
        "(state s (for-each n in (a b c) (run :command @n :as x :on-error bad)) (terminal))",
        "(state bad (terminal :result @x/b))",
    ]);
    let mut play = held(&text, &["a", "b", "c"]);
    ends(&mut play, "a", 0);
    assert_eq!(running(&play).len(), 2);
    ends(&mut play, "b", 1);
    assert_eq!(play.ended(), "b", "it does not wait for the last one");

    let mut play = held(&state("(for-each n in (a b) (run :command @n))"), &["a", "b"]);
    play.held.remove("b");
    play.outputs.push_back(Err("it was not there".to_owned()));
    play.go();
    assert!(play.ended().ends_with(": it was not there"), "{}", play.ended());
}

#[test]
fn commands_of_nested_bodies_run_at_once() {
    let text = state(
        "(for-each n in (a b) (for-each m in (x y) (run :command @m :as out)) (run :command @n)) (terminal :result done)",
    );
    let mut play = held(&text, &["a", "b", "x", "y"]);
    let shown = |play: &Play| -> Vec<String> {
        running(play)
            .iter()
            .map(|name| name.split_once(' ').expect("a text").1.to_owned())
            .collect()
    };
    assert_eq!(shown(&play), ["x", "y", "x", "y"]);
    play.outputs.push_back(Ok(json!({"exit_code": 0})));
    ends(&mut play, "x", 0);
    assert_eq!(shown(&play), ["y", "y"]);
    play.outputs.push_back(Ok(json!({"exit_code": 0})));
    ends(&mut play, "y", 0);
    assert_eq!(shown(&play), ["a", "b"]);
    ends(&mut play, "b", 0);
    ends(&mut play, "a", 0);
    assert_eq!(play.ended(), "done");
}

#[test]
fn question_waits_for_the_commands_of_other_bodies() {
    let text = state(
        "(for-each n in (a b)
           (branch
             (on (equals @n a) (action (user-input :prompt \"go?\" :as answer)))
             (otherwise (action (run :command build)))))",
    );
    let play = held(&text.replace("in (a b)", "in (b a)"), &["build"]);
    assert_eq!(play.awaiting(), "(and (run :command \"build\") (user-input :as answer/a))");
}

#[test]
fn bodies_run_side_by_side_and_join() {
    let text = state(&format!(
        "(for-each who in (a b) {ASK} (action (log \"~a said ~a\" @who (response look))))
         (terminal :result (response look))"
    ));
    let mut play = Play::of(&text);
    assert_eq!(play.asked, ["a: to a", "b: to b"]);
    assert_eq!(
        play.awaiting(),
        "(and (transcript-response :request-id look/a) (transcript-response :request-id look/b))"
    );
    play.answers("b", "fine");
    assert_eq!(play.shown, ["b said fine"], "it does not wait for the other");
    assert_eq!(play.awaiting(), "(transcript-response :request-id look/a)");
    assert_eq!(play.answers("a", "good").ended(), "## a\n\ngood\n\n## b\n\nfine");
}

#[test]
fn each_body_loops_waits_and_takes_facts_by_itself() {
    let text = state(
        "(for-each who in (a b)
           (loop
             (wait (signal job :key @who :consume true :as job))
             (branch (on (matches @job stop) (break)))
             (action (log \"~a ~a\" @who @job) (assert done :key @who)))
           (wait (signal go) :timeout \"1s\" :on-timeout s))
         (terminal :result over)",
    );
    let mut play = Play::of(&text);
    assert!(play.waits_for_outside() && play.due_in().is_none());
    play.fact("job", "b", "1").fact("job", "b", "2").fact("job", "a", "3");
    assert_eq!(play.shown, ["b 1", "b 2", "a 3"]);
    play.fact("job", "b", "stop");
    assert_eq!(play.due_in(), Some(1000));
    assert!(play.awaiting().contains("(signal job :key a)"), "{}", play.awaiting());
    play.fact("go", "", "").fact("job", "a", "stop");
    assert_eq!(play.ended(), "over");
    assert_eq!(play.done.iter().filter(|entry| entry.starts_with("take")).count(), 5);
}

#[test]
fn goto_out_of_a_body_leaves_for_each() {
    let text = program(&[
        "(state s (for-each who in (a b) (for-each x in (1 2) (wait (signal go :key @who))) (goto t)))",
        "(state t (wait (signal end)))",
    ]);
    let mut play = Play::of(&text);
    assert_eq!(play.execution().position.parallel.len(), 2);
    assert_eq!(play.fact("go", "b", "").awaiting(), "(signal end)");
    assert!(play.execution().position.parallel.is_empty());
    assert_eq!(play.fact("end", "", "").completed_in(), "t");
}

#[test]
fn failure_in_a_body_fails_the_program_at_its_place() {
    let mut play = Play::of(&state(&format!("\n(for-each who in (a b)\n{ASK})")));
    let error = play.fails("a", "no").ended().to_owned();
    assert!(error.starts_with("p.lisp:4:") && error.contains("look/a failed"), "{error}");
}

#[test]
fn body_with_an_activity_resumes_where_it_was() {
    let text = state(
        "(for-each who in (a b) (assert one :key @who) (assert two :key @who) (wait (signal go)))",
    );
    let mut play = Play::of(&text);
    assert_eq!(play.done, ["assert one a ", "assert two a ", "assert one b ", "assert two b "]);
    assert_eq!(play.fact("go", "", "").completed_in(), "s");
}
