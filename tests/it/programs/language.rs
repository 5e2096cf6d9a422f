//! Definitions, verdicts and `for-each` in runs, and the commands about defined programs and old facts.

use super::{program, signal, written};
use crate::support::{always, when};

#[test]
fn role_is_reminded_until_its_answer_has_one_verdict() {
    let test = program(
        "(state s (action (send-prompt :agent a :template work :expect (APPROVE REVISE) :request-id r)
            (await (transcript-response :request-id r)))
          (branch (on (verdict r) REVISE (terminal :result (verdict r)))))",
    )
    .rule(when("work").reply("I would APPROVE it, or REVISE it.").once())
    .rule(when("exactly one of these words").reply("REVISE: it is long."));
    test.run(&["p.lisp"]).ok().ended("main", "REVISE");
    let prompts = test.prompts();
    assert_eq!(prompts.len(), 2, "{prompts:?}");
    assert!(prompts[1].contains("it has APPROVE and REVISE"), "{}", prompts[1]);
}

#[test]
fn request_without_verdict_fails_after_the_reminders() {
    let test = program(
        "(state s (action (send-prompt :agent a :template work :expect (YES NO) :request-id r)
            (await (transcript-response :request-id r :on-error t))))
         (state t (terminal :result none))",
    )
    .rule(always().reply("perhaps"));
    test.run(&["p.lisp"]).ok().ended("main", "none");
    assert_eq!(test.calls().len(), 4, "the prompt and three reminders");
}

#[test]
fn for_each_asks_all_roles_at_once() {
    let test = written(
        "(workflow w (roles (r :each (a b)))
         (state s (for-each who in r
             (send-prompt :agent @who :template \"to ~a\" :args (@who) :request-id look)
             (await (transcript-response :request-id look)))
           (terminal :result (response look))))",
    )
    .rule(when("to a").hold_before("go").reply("1"))
    .rule(when("to b").reply("2"));
    let mut live = test.spawn(&["p.lisp"]);
    live.wait_event("role_responded", 1);
    test.release("go");
    live.wait().ok().ended("main", "## a\n\n1\n\n## b\n\n2");
}

#[test]
fn resumed_run_keeps_the_library_it_started_with() {
    let test = written(
        "(require \"lib.lisp\") (workflow w (state s (wait (signal go)) (terminal :result @said)))",
    )
    .file("lib.lisp", b"(define said before)");
    test.run(&["p.lisp", "--on-wait", "exit"]).code(2);
    let test = test.file("lib.lisp", b"(define said after");
    test.run(&["p.lisp", "--id", "other"]).code(65).stderr_has("lib.lisp:1:1: SX102");
    signal(&test, "go", "", "");
    test.resume(&[]).ok().ended("main", "before");
}

#[test]
fn run_finds_a_defined_program_by_its_name() {
    let test = written("(workflow nightly (state s (terminal :result \"as defined\")))");
    let file = test.flow().join("p.lisp");
    test.raymond(&["workflow", "define", file.to_str().expect("a path")]).ok();
    let test = test.file("p.lisp", b"(workflow nightly (state s (terminal :result other)))");
    test.raymond(&["run", "nightly"]).ok().stdout_has("with result: as defined");
    test.raymond(&["run", "nigtly"]).code(64).stderr_has("there is no such file");
    let test = test.prompt("nightly/START.md", "one");
    let test = test.rule(crate::support::when("one").reply("<result>a path</result>"));
    let outcome = test.raymond(&["run", "nightly", "--id", "path"]);
    outcome.ok().ended("main", "a path");
    outcome.stderr_has(
        "note: nightly is both a path and a defined program, and raymond uses the path",
    );
}

#[test]
fn run_folder_begins_at_a_script() {
    let test = written(
        "(workflow nightly (roles (a)) (state s
          (action (run-folder :agent a :start \"sub/RUN.sh\" :request-id r) (await (transcript-response :request-id r)))
          (terminal :result (response r))))",
    )
    .file("sub/RUN.sh", b"echo '<result>ran</result>'\n");
    test.run(&["p.lisp"]).ok().ended("main", "ran");
}

#[test]
fn defined_program_runs_after_its_files_are_gone() {
    let test = written(
        "(require lib.lisp) (workflow nightly (roles (a)) (state s
          (action (run-folder :agent a :start \"sub/START.md\" :request-id r) (await (transcript-response :request-id r)))
          (terminal :result (response r))))",
    )
    .file("lib.lisp", b"(define unused x)")
    .prompt("sub/START.md", "one")
    .prompt("sub/NEXT.md", "two")
    .rule(crate::support::when("one").reply("<goto>NEXT.md</goto>"))
    .rule(crate::support::when("two").reply("<result>as defined</result>"));
    test.raymond(&["workflow", "define", "p.lisp"]).ok();
    test.raymond(&["run", "nightly", "--id", "own"]).ok().ended("main", "as defined");
    for gone in ["p.lisp", "lib.lisp", "sub/START.md", "sub/NEXT.md"] {
        std::fs::remove_file(test.flow().join(gone)).expect("removed");
    }
    test.raymond(&["run", "nightly", "--id", "kept"]).ok().ended("main", "as defined");
    let kept = test.dir().join("dataspace/definitions");
    std::fs::remove_file(kept.join("nightly.files/sub/NEXT.md")).expect("removed");
    test.raymond(&["run", "nightly", "--id", "again"]).ok().ended("main", "as defined");
    let planted = kept.join("nightly.files/sub/MORE.md");
    std::fs::write(planted, "planted").expect("written");
    test.raymond(&["run", "nightly", "--id", "planted"]).ok().ended("main", "as defined");
    std::fs::write(kept.join("nightly.contents"), "damaged").expect("written");
    std::fs::remove_dir_all(kept.join("nightly.files")).expect("removed");
    test.raymond(&["run", "nightly", "--id", "damaged"])
        .code(74)
        .stderr_has("define the program again");
}

#[test]
fn facts_are_pruned_by_label_age_and_run() {
    let test = written("(workflow w (state s (terminal)))");
    for (label, key) in [("x", "1"), ("x", "r"), ("y", "r"), ("z", "")] {
        signal(&test, label, key, "");
    }
    test.raymond(&["facts", "--prune"]).code(64).stderr_has("say which facts");
    test.raymond(&["facts", "--prune", "--older-than", "1h"]).ok().stdout_has("0 facts are");
    test.raymond(&["facts", "r", "--prune", "--label", "x"]).ok().stdout_has("1 fact is retracted");
    assert_eq!(super::holds(&test), ["x 1=", "y r=", "z ="]);
    test.raymond(&["facts", "--prune", "--label", "x", "--older-than", "0s"]).ok();
    test.raymond(&["facts", "r", "--prune"]).ok();
    assert_eq!(super::holds(&test), ["z ="]);
}

#[test]
fn signal_tells_what_it_replaces_and_that_nobody_looks_at_it() {
    let test = written("(workflow w (state s (wait (signal gate/passed))))");
    signal(&test, "job", "", "first");
    test.raymond(&["signal", "job", "--value", "second"])
        .ok()
        .stdout_has("it replaces `first`, which no program had taken")
        .stderr_has(
            "nobody waits for job: no unfinished run and no defined program looks at any fact",
        );
    test.run(&["p.lisp", "--on-wait", "exit"]).code(2);
    test.raymond(&["signal", "gate/pased"]).ok().stderr_has("did you mean gate/passed?");
    let known = test.raymond(&["signal", "gate/passed"]).ok().stderr.clone();
    assert!(!known.contains("looks at"), "{known}");
}

#[test]
fn signal_with_unread_key_has_hint_to_the_read_key() {
    let test = written("(workflow w (state s (wait (signal gate/passed :key @label))))");
    test.raymond(&["run", "p.lisp", "--label", "feature-42", "--on-wait", "exit"]).code(2);
    let hint = "no unfinished run looks at the fact gate/passed of the key feature-24 now; did you mean --key feature-42?";
    test.raymond(&["signal", "gate/passed", "--key", "feature-24"]).ok().stderr_has(hint);
    let json = test.raymond(&["signal", "gate/passed", "--key", "feature-24", "--json"]);
    assert_eq!(json.ok().stderr_lacks(hint).json()["hint"], hint);
    test.raymond(&["signal", "gate/passed"])
        .ok()
        .stderr_has("of the empty key now; did you mean --key feature-42?");
    let known = test.raymond(&["signal", "gate/passed", "--key", "feature-42", "--json"]);
    assert_eq!(known.ok().json()["hint"], serde_json::Value::Null);
}

#[test]
fn schema_of_a_single_prompt_counts_for_its_answer_alone() {
    let schema = r#"{"type":"object","required":["items"],"properties":{"items":{"type":"array","items":{"type":"string"}}}}"#;
    let test = written(
        "(workflow w (roles (a)) (state s
          (action (send-prompt :agent a :template list :output \"items.json\" :request-id one)
            (await (transcript-response :request-id one))
            (send-prompt :agent a :template \"choose ~a of ~a\" :args ((response one :field \"items[-1]\") (response one :field items.0)) :request-id two)
            (await (transcript-response :request-id two)))
          (terminal :result (response two))))",
    )
    .file("items.json", schema.as_bytes())
    .rule(when("list").reply(r#"{"items":["first","last"]}"#))
    .rule(when("choose last of first").reply("last it is"));
    test.raymond(&["check", "p.lisp"]).ok();
    test.run(&["p.lisp"]).ok().ended("main", "last it is");
    let calls = test.calls();
    assert!(calls[0].has("--json-schema") && !calls[1].has("--json-schema"), "{calls:?}");
    let wrong = written(
        "(workflow w (roles (a)) (state s (action (send-prompt :agent a :template list :output \"items.json\" :request-id one)
          (await (transcript-response :request-id one))) (terminal :result (response one :field \"item[0]\"))))",
    )
    .file("items.json", schema.as_bytes());
    wrong
        .raymond(&["check", "p.lisp"])
        .code(65)
        .stdout_has("SX221")
        .stdout_has("did you mean `items`?");
}
