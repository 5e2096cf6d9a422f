//! Commands of `for-each`: they run side by side, and each keeps what a kill means for it.

use super::{logged, written};
use crate::support::Test;

/// Returns a program with these bodies for `a`, `b` and `c`, and the state `bad`.
fn bodies(body: &str) -> Test {
    written(&format!(
        "(workflow w (state s (for-each n in (a b c) {body}) (terminal :result done))
          (state bad (terminal :result bad)))"
    ))
}

/// Returns the lines of the log that the commands write, sorted.
fn lines(test: &Test) -> Vec<String> {
    let content = std::fs::read_to_string(test.flow().join("log")).unwrap_or_default();
    let mut lines: Vec<String> = content.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Returns a command that waits until these files are there.
fn awaits(files: &str) -> String {
    format!("for f in {files}; do while [ ! -e $f ]; do sleep 0.02; done; done")
}

#[test]
fn commands_meet_each_other() {
    let run = format!(
        "(run :command \"touch $1; {}; echo met $1\" :args (@n) :timeout 120 :as x) (log \"~a\" @x)",
        awaits("a b c")
    );
    let test = bodies(&run);
    test.run(&["p.lisp"]).ok().ended("main", "done");
    let mut met = logged(&test);
    met.sort();
    assert_eq!(met, ["met a", "met b", "met c"]);
    test.raymond(&["log", "t"])
        .ok()
        .stdout_has(&format!("p.lisp#s: runs `touch $1; {}", awaits("a")[..8].to_owned()));
    test.assert_no_survivors();
}

#[test]
fn body_continues_while_the_command_of_another_runs() {
    // The first body ends only after the second one has been answered and has run two commands.
    let test = written(&format!(
        "(workflow w (roles (r))
          (state s
            (for-each n in (a b)
              (branch
                (on (equals @n a) (action (run :command \"{}\" :timeout 120)))
                (otherwise
                  (action
                    (run :command true)
                    (send-prompt :agent r :template hello :request-id q)
                    (await (transcript-response :request-id q))
                    (run :command \"echo $1 > there\" :args ((response q)))))))
            (terminal :result (response q/b))))",
        awaits("there")
    ))
    .rule(crate::support::when("hello").reply("hi"));
    test.run(&["p.lisp"]).ok().ended("main", "hi");
}

#[test]
fn failure_of_a_command_leaves_for_each_and_ends_the_others() {
    let never = awaits("never");
    let run = format!(
        "(run :command \"if [ $1 = b ]; then {}; exit 3; fi; touch begun-$1; {never}\" :args (@n) :as x :on-error bad)",
        awaits("begun-a begun-c")
    );
    let test = bodies(&run);
    test.run(&["p.lisp"]).ok().ended("main", "bad");
    test.assert_no_survivors();
}

#[test]
fn command_that_has_ended_is_not_repeated_and_none_is_lost_after_a_kill() {
    // The first one has ended, though that is not recorded in the journal; the others are in the middle.
    let ended = format!("{}; echo a >> log", awaits("begun-b begun-c"));
    let held = format!("echo $1 >> log; touch begun-$1; {}; touch done-$1", awaits("go"));
    let body = format!(
        "(branch
           (on (equals @n a) (action (run :command \"{ended}\" :as x)))
           (on (equals @n b) (action (run :command \"{held}\" :args (@n) :idempotent true)))
           (otherwise (action (run :command \"{held}\" :args (@n) :unless \"test -e done-c\"))))"
    );
    let test = bodies(&body).env("RAYMOND_FAILPOINT", "operation.after:1");
    let killed = test.run(&["p.lisp"]);
    killed.assert(killed.killed(), "it is killed");
    assert_eq!(lines(&test), ["a", "b", "c"]);
    std::fs::write(test.flow().join("go"), "").expect("written");
    let test = test.env("RAYMOND_FAILPOINT", "none:1");
    test.resume(&[]).ok().ended("main", "done");
    assert_eq!(lines(&test), ["a", "b", "b", "c"], "`b` may be repeated, and `c` was done");
    test.assert_no_survivors();
}

#[test]
fn unknown_outcome_of_a_command_fails_only_its_body() {
    let held = format!("echo $1 >> log; touch begun-$1; {}", awaits("go"));
    let body = format!(
        "(branch
           (on (equals @n a) (action (run :command \"echo a >> log\") (log \"a has ended\")))
           (on (equals @n b) (action (run :command \"{held}\" :args (@n) :as x :on-error bad)))
           (otherwise (action (run :command \"{held}\" :args (@n) :idempotent true))))"
    );
    let test = bodies(&body);
    let mut live = test.spawn(&["p.lisp"]);
    live.wait_for("three commands have begun, and one has ended", |test| {
        let started = ["begun-b", "begun-c"].iter().all(|file| test.flow().join(file).exists());
        started && !test.events("program_logged").is_empty()
    });
    live.kill9();
    std::fs::write(test.flow().join("go"), "").expect("written");
    test.resume(&[]).ok().ended("main", "bad");
    let started = lines(&test);
    assert!(started.iter().filter(|line| *line == "a").count() == 1, "{started:?}");
    assert!(started.iter().filter(|line| *line == "b").count() == 1, "{started:?}");
    let told = logged(&test);
    assert!(told[0] == "a has ended" && told[1].contains("WF502"), "{told:?}");
    test.assert_no_survivors();
}

#[test]
fn each_command_is_done_once_however_often_raymond_is_killed() {
    let run = |name: &str| {
        format!(
            "(run :command \"echo $1{name} >> log\" :args (@n) :unless \"grep -qx $1{name} log\" :as x)"
        )
    };
    let test = bodies(&format!("{} {}", run("1"), run("2")));
    let points = ["operation.after", "operation.before", "append.after", "effect.before"];
    let mut deaths = 0;
    let mut test = test.env("RAYMOND_FAILPOINT", "operation.before:1");
    let mut last = test.run(&["p.lisp"]);
    while last.killed() {
        deaths += 1;
        assert!(deaths < 60, "it comes to no end");
        let (point, count) = (points[deaths % points.len()], 1 + deaths / points.len());
        let next = if deaths < 16 { format!("{point}:{count}") } else { "none:1".to_owned() };
        test = test.env("RAYMOND_FAILPOINT", next);
        last = test.resume(&[]);
    }
    last.ok().ended("main", "done");
    assert!(deaths >= 6, "{deaths}");
    assert_eq!(lines(&test), ["a1", "a2", "b1", "b2", "c1", "c2"]);
}

#[test]
fn run_stopped_while_commands_run_resumes_them() {
    let run = format!(
        "(run :command \"echo $1 >> log; touch begun-$1; {}\" :args (@n) :idempotent true)",
        awaits("go")
    );
    let test = bodies(&run);
    let mut live = test.spawn(&["p.lisp"]);
    for name in ["a", "b", "c"] {
        live.wait_file(&test.flow().join(format!("begun-{name}")));
    }
    live.interrupt_until_it_ends().code(130);
    test.assert_no_survivors();
    std::fs::write(test.flow().join("go"), "").expect("written");
    test.resume(&[]).ok().ended("main", "done");
    assert_eq!(lines(&test), ["a", "a", "b", "b", "c", "c"]);
}

#[test]
fn person_is_asked_after_the_commands_of_other_bodies() {
    let body = "(branch
       (on (equals @n b) (action (user-input :prompt \"go?\" :as answer)))
       (otherwise (action (run :command \"echo $1 >> log\" :args (@n)))))";
    let test = bodies(body);
    test.run(&["p.lisp"]).code(2);
    let done = lines(&test);
    assert!(done.contains(&"a".to_owned()), "{done:?}");
    test.raymond(&["answer", "t", "answer/b=yes"]);
    test.resume(&[]).ok().ended("main", "done");
    assert_eq!(lines(&test), ["a", "c"]);
}
