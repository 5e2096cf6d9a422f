//! Tool calls that need approval: asked once, answered by a person, and run at most once, also when raymond is killed.

use serde_json::{Value, json};

use crate::support::{FakeRule, RaymondOutcome, Test, always, when};

/// The words with which a turn goes on after its calls were answered.
const RESUMED: &str = "waited for a person to approve them";

fn touch() -> Value {
    json!({ "command": "touch a", "description": "make it" })
}

/// Returns a rule that calls `touch a`.
fn touching(rule: FakeRule) -> FakeRule {
    rule.asked("Bash", &touch(), &["touch a *"])
}

/// Returns a workflow whose first turn calls a tool, and whose turn after the answer calls it again.
fn workflow() -> Test {
    Test::new()
        .prompt("START.md", "---\npermissions: ask\n---\nstart")
        .rule(touching(when(RESUMED)).reply("<result>after</result>").cost(0.01))
        .rule(touching(when("start")).reply("<result>ok</result>").cost(0.25))
}

/// Returns the calls that have run.
fn ran(test: &Test) -> Vec<String> {
    let lines = std::fs::read_to_string(test.fake().join("ran.jsonl")).unwrap_or_default();
    lines.lines().map(ToOwned::to_owned).collect()
}

/// Returns the numbers of the approvals that a person was asked.
fn asked(test: &Test) -> Vec<u64> {
    let asked = test.events("approval_asked");
    let by_person = asked.iter().filter(|event| event.get("grant").is_none());
    by_person.filter_map(|event| event["number"].as_u64()).collect()
}

fn answer(test: &Test, words: &[&str]) -> RaymondOutcome {
    test.raymond(&[&["answer", "t"], words].concat())
}

#[test]
fn allowed_call_runs_while_its_process_waits() {
    let test = workflow();
    let mut live = test.spawn(&["START.md"]);
    live.wait_stderr("raymond answer t a1 allow, or deny");
    let event = &test.events("approval_asked")[0];
    assert_eq!((&event["agent"], &event["state"]), (&json!("main"), &json!("START.md")));
    let request = &event["request"];
    assert_eq!((&request["tool"], &request["input"]["value"]), (&json!("Bash"), &touch()));
    assert_eq!(request["reason"], "This command requires approval");
    assert_eq!(request["rules"], json!([{ "tool": "Bash", "content": "touch a *" }]));

    answer(&test, &[]).ok().stdout_has("main/a1 asks (approval): may it run Bash: touch a?");
    answer(&test, &[]).ok().stdout_has("answer: raymond answer t a1 allow");
    let status = test.status();
    assert_eq!(status["questions"][0]["approval"]["tool"], "Bash");
    assert_eq!(status["agents"][0]["waits_for"]["kind"], "approval");
    test.raymond(&["tree", "t"]).ok().stdout_has("waits for approval of Bash: a1");
    test.raymond(&["pending"])
        .ok()
        .stdout_has("asks for approval of Bash: touch a")
        .stdout_has("raymond answer t a1 allow");
    answer(&test, &["a1", "alow"]).code(64).stderr_has("use one of allow, allow-always");
    assert!(ran(&test).is_empty());

    answer(&test, &["a1", "allow"]).ok().stdout_has("main/a1 is answered: allowed");
    live.wait().ok().ended("main", "ok");
    assert_eq!(ran(&test).len(), 1);
    let answered = &test.events("approval_answered")[0];
    assert_eq!((&answered["verdict"], &answered["number"]), (&json!("allow"), &json!(1)));
    assert_eq!(test.prompts(), ["start"], "the same turn has gone on");
    answer(&test, &["a1", "allow"]).code(64).stderr_has("waits for an answer");
    test.raymond(&["log", "t"])
        .ok()
        .stdout_has("asks for approval of Bash: touch a (a1)")
        .stdout_has("a1 (Bash) allowed");
}

#[test]
fn denied_call_does_not_run_and_the_agent_learns_why() {
    let test = workflow();
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("approval_asked", 1);
    answer(&test, &["a1", "allow", "--reason", "x"]).code(64).stderr_has("--reason goes with");
    answer(&test, &["a1", "deny", "--reason", "not here"]).ok().stdout_has("denied: not here");
    live.wait().ok().ended("main", "ok").stderr_has("1 tool was refused");
    assert!(ran(&test).is_empty());
    let stream = std::fs::read_to_string(test.run_dir().join("steps/main-1-0.jsonl"));
    assert!(stream.expect("a stream").contains(r#""message":"not here""#));
}

#[test]
fn rule_given_with_an_answer_lets_later_calls_of_the_state_run_unasked() {
    let test = Test::new()
        .prompt("START.md", "---\npermissions: ask\n---\nstart")
        .prompt("NEXT.md", "---\npermissions: ask\n---\nnext")
        .rule(touching(touching(when("start").once())).reply("<reset>START.md</reset>"))
        .rule(touching(when("start")).reply("<goto>NEXT.md</goto>"))
        .rule(touching(when("next")).reply("<result>ok</result>"));
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("approval_asked", 1);
    test.raymond(&["rules", "t"]).ok().stderr_has("no rule was given in t");
    answer(&test, &["a1=allow-always"])
        .ok()
        .stdout_has("allowed, and from now on Bash(touch a *) in START.md");
    live.wait_event("approval_asked", 2);
    assert_eq!(ran(&test).len(), 3, "two calls of the first turn and one of the second");
    assert_eq!(test.events("approval_asked")[1]["state"], "NEXT.md");
    let calls = test.calls();
    assert!(!calls[0].has("Bash(touch a *)") && calls[1].has("Bash(touch a *)"));
    test.raymond(&["rules", "t"]).ok().stdout_has("Bash(touch a *)").stdout_has("START.md");
    let rules = test.raymond(&["rules", "t", "--json"]).ok().json();
    assert_eq!(
        rules["rules"],
        json!([{ "rule": "Bash(touch a *)", "tool": "Bash", "content": "touch a *",
            "state": "START.md", "approval": "a1", "by": null }])
    );
    answer(&test, &["a2", "allow"]).ok();
    live.wait().ok().ended("main", "ok");
    assert_eq!((asked(&test), ran(&test).len()), (vec![1, 2], 4));
    let written = ["flow/.claude/settings.local.json", "home/.claude/settings.json"];
    assert!(
        written.iter().all(|path| !test.root().join(path).exists()),
        "only the run keeps rules"
    );
}

#[test]
fn parked_turn_has_no_process_and_goes_on_after_the_answer() {
    let test = workflow();
    let parked = test.run(&["START.md", "--approval-hold", "1ms"]);
    parked.code(2).stderr_has("main/a1 asks (approval)");
    test.assert_no_survivors();
    let suspended = &test.events("turn_suspended")[0];
    assert_eq!(suspended["calls"].as_array().map(Vec::len), Some(1));
    assert_eq!(test.status()["agents"][0]["waits_for"]["kind"], "approval");

    answer(&test, &["a1", "allow"]).ok().stdout_has("resume: raymond resume t");
    answer(&test, &["a1", "deny"]).code(64).stderr_has("has been answered already: allowed");
    test.resume(&[]).ok().ended("main", "after");
    let calls = test.calls();
    assert_eq!(calls.len(), 2);
    calls[1].assert_resumes(&calls[0]);
    let told = "- Bash: touch a: allowed; it has not run: make the same call again";
    assert!(calls[1].prompt.contains(told), "{}", calls[1].prompt);
    assert_eq!((asked(&test), ran(&test).len()), (vec![1], 1), "the same call is not asked again");
    assert_eq!(test.events("approval_asked")[1]["grant"], 1);
    assert_eq!(test.status()["refused_tools"], Value::Null, "it was not refused");
}

#[test]
fn answer_to_parked_turn_lets_only_the_same_call_run_once() {
    let test = workflow();
    test.run(&["START.md", "--approval-hold", "1ms"]).code(2);
    answer(&test, &["a1", "allow"]).ok();
    test.script(&[touching(touching(when(RESUMED)))
        .asked("Bash", &json!({ "command": "touch b" }), &[])
        .reply("<result>after</result>")]);
    let mut live = test.spawn_resumed(&["--approval-hold", "1h"]);
    live.wait_event("approval_asked", 3);
    assert_eq!(ran(&test).len(), 1);
    answer(&test, &["a3", "deny"]).ok();
    live.wait_event("approval_asked", 4);
    assert_eq!(test.events("approval_asked")[3]["request"]["rules"], Value::Null);
    answer(&test, &["a4", "allow-always"]).code(64).stderr_has("offers no rule");
    answer(&test, &["a4", "allow"]).ok();
    live.wait().ok().ended("main", "after");
    assert_eq!((asked(&test), ran(&test).len()), (vec![1, 3, 4], 2));
}

#[test]
fn denied_call_of_parked_turn_is_reported() {
    let test = workflow().rule(always().reply("<result>none</result>"));
    test.run(&["START.md", "--approval-hold", "1ms"]).code(2);
    answer(&test, &["a1=deny: use b"]).ok();
    test.script(&[when("denied: use b").reply("<result>without</result>")]);
    test.resume(&[]).ok().ended("main", "without");
    assert!(ran(&test).is_empty());
}

#[test]
fn call_is_asked_once_if_raymond_is_killed_while_it_waits() {
    let test = workflow();
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("approval_asked", 1);
    live.kill9();
    let mut resumed = test.spawn_resumed(&[]);
    resumed.wait_event("turn_suspended", 1);
    assert_eq!(asked(&test), [1]);
    resumed.wait().code(2).stderr_has("main/a1 asks (approval)");
    answer(&test, &["a1", "allow"]).ok();
    test.resume(&[]).ok().ended("main", "after");
    assert_eq!((asked(&test), ran(&test).len()), (vec![1], 1));
}

#[test]
fn call_runs_once_if_raymond_is_killed_around_the_answer() {
    for (point, turns) in [("approval.before:1", 2), ("approval.told:1", 1)] {
        let test = workflow().env("RAYMOND_FAILPOINT", point);
        let mut live = test.spawn(&["START.md"]);
        live.wait_event("approval_asked", 1);
        answer(&test, &["a1", "allow"]).ok();
        assert!(live.wait().killed(), "{point}");
        let test = test.env("RAYMOND_FAILPOINT", "none:1");
        test.resume(&[]).ok();
        assert_eq!((asked(&test), ran(&test).len()), (vec![1], 1), "{point}");
        assert_eq!(test.calls().len(), turns, "{point}");
        test.assert_no_survivors();
    }
}

#[test]
fn call_that_may_have_run_is_asked_again_and_reported_to_the_agent() {
    let test = workflow();
    test.script(&[
        touching(when("start").once()).hold_asked("never").reply("<result>ok</result>"),
        touching(when("not known whether they have run")).reply("<result>again</result>"),
    ]);
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("approval_asked", 1);
    answer(&test, &["a1", "allow"]).ok();
    live.wait_for("the call runs", |test| !ran(test).is_empty());
    let claude = test.call_log()[0]["pid"].as_i64().expect("a process");
    crate::support::kill(i32::try_from(claude).expect("an id"), rustix::process::Signal::KILL);
    live.wait_event("approval_asked", 2);
    assert_eq!(asked(&test), [1, 2], "the answer is not used a second time");
    answer(&test, &["a2", "deny"]).ok();
    live.wait().ok().ended("main", "again");
    assert_eq!(ran(&test).len(), 1);
}

#[test]
fn stopped_run_keeps_the_question() {
    let test = workflow();
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("approval_asked", 1);
    test.raymond(&["stop", "t", "--wait"]).ok();
    live.wait().code_in(&[2, 75, 130]);
    assert_eq!(test.events("turn_suspended").len(), 1);
    answer(&test, &["a1", "allow"]).ok();
    test.resume(&[]).ok().ended("main", "after");
    assert_eq!((asked(&test), ran(&test).len()), (vec![1], 1));
}

#[test]
fn permissions_come_from_flag_manifest_or_state_and_refuse_by_default() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(touching(when("start")).reply("<result>ok</result>"));
    test.run(&["START.md"]).ok().ended("main", "ok");
    assert!(ran(&test).is_empty() && test.events("approval_asked").is_empty());
    assert!(!test.calls()[0].has("--permission-prompt-tool"));

    let flow = |head: &str| {
        Test::new()
            .prompt("START.md", &format!("{head}start"))
            .rule(touching(when("start")).reply("<result>ok</result>"))
    };
    let parked = ["START.md", "--approval-hold", "1ms"];
    flow("").run(&[&parked[..], &["--permissions", "ask"]].concat()).code(2);
    flow("").file("raymond.yaml", b"permissions: ask\n").run(&parked).code(2);
    let refuses = flow("---\npermissions: refuse\n---\n");
    refuses.run(&[&parked[..], &["--permissions", "ask"]].concat()).ok();
    flow("---\npermissions: allow\n---\n").run(&parked).code(65).stderr_has("refuse, ask");
}

#[test]
fn edit_is_shown_as_a_diff_and_its_file_is_the_rule() {
    let test = Test::new().prompt("START.md", "---\npermissions: ask\n---\nstart").rule(
        when("start")
            .asked(
                "Edit",
                &json!({ "file_path": "/w/a", "old_string": "x", "new_string": "y" }),
                &[],
            )
            .asked("Write", &json!({ "file_path": "/w/a", "content": "z" }), &[])
            .reply("<result>ok</result>"),
    );
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("approval_asked", 1);
    answer(&test, &[]).ok().stdout_has("- x\n").stdout_has("+ y\n");
    let request = &test.events("approval_asked")[0]["request"];
    assert_eq!(request["edits"], json!([{ "file": "/w/a", "old": "x", "new": "y" }]));
    answer(&test, &["a1", "allow-always-in-run"]).ok().stdout_has("Edit(//w/a) in the whole run");
    live.wait().ok().ended("main", "ok");
    assert_eq!((asked(&test), ran(&test).len()), (vec![1], 2));
}

#[test]
fn event_command_is_run_for_an_approval() {
    let test = workflow();
    let out = test.root().join("told");
    let command = format!("sh -c 'echo $RAYMOND_EVENT $RAYMOND_MESSAGE >> {}'", out.display());
    let parked = test.run(&["START.md", "--approval-hold", "1ms", "--on-event", &command]);
    parked.code(2);
    let told = std::fs::read_to_string(&out).unwrap_or_default();
    assert!(
        told.contains("approval main of run t asks for approval of Bash: touch a; answer: raymond answer t a1 allow"),
        "{told}"
    );
}

/// A plug-in that allows calls of Bash, and has no say on others.
const ALLOWS: &str = r#"echo '{"type":"hello","version":2,"consult":["approval"]}'
while read -r line; do
    case $line in
        *'"type":"consult"'*) ;;
        *'"type":"finish"'*) exit 0 ;;
        *) continue ;;
    esac
    id=${line#*'"id":'}
    case $line in
        *'"tool":"Bash"'*) verdict='"allow","span":"state"' ;;
        *) verdict='"proceed"' ;;
    esac
    echo "{\"type\":\"verdict\",\"id\":${id%%,*},\"verdict\":$verdict}"
done
"#;

#[test]
fn plug_in_answers_and_leaves_the_rest_to_a_person() {
    let test = Test::new().prompt("START.md", "---\npermissions: ask\n---\nstart").rule(
        touching(when("start"))
            .asked("WebFetch", &json!({ "url": "http://a" }), &[])
            .reply("<result>ok</result>"),
    );
    let plugin = test.root().join("allows.sh");
    std::fs::write(&plugin, ALLOWS).expect("the plug-in is written");
    let mut live = test.spawn(&["START.md", "--plugin", &format!("sh {}", plugin.display())]);
    live.wait_event("approval_asked", 2);
    let answered = &test.events("approval_answered")[0];
    assert_eq!((&answered["by"], &answered["verdict"]), (&json!("allows"), &json!("allow_always")));
    answer(&test, &["a2", "deny"]).ok();
    live.wait().ok().ended("main", "ok");
    assert_eq!(ran(&test).len(), 1);
    test.raymond(&["rules", "t"]).ok().stdout_has("Bash(touch a *)").stdout_has("allows");
}

#[test]
fn terminal_asks_the_person_who_runs_it() {
    let test = workflow();
    let mut screen = test.on_screen(&["run", "START.md", "--id", "t"], (24, 100));
    screen.wait_for(&["asks (approval): may it run Bash: touch a?"]);
    screen.keys("alow\r").wait_for(&["use one of allow, allow-always"]);
    assert!(ran(&test).is_empty());
    screen.keys("allow\r").wait_for(&["Agent main terminated with result: ok"]);
    assert_eq!(screen.wait_for_exit(), Some(0));
    assert_eq!((asked(&test), ran(&test).len()), (vec![1], 1));
    assert_eq!(test.events("approval_answered")[0]["verdict"], "allow");
}

#[test]
fn many_agents_wait_for_approval_without_a_process() {
    let given = std::env::var("RAYMOND_TEST_APPROVALS").ok();
    let agents: usize = given.and_then(|agents| agents.parse().ok()).unwrap_or(60);
    let items: Vec<String> = (1..=agents).map(|item| item.to_string()).collect();
    let fork = format!(r#"<fork next="END.md" each='{}' as="item">W.md</fork>"#, json!(items));
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("W.md", "---\npermissions: ask\n---\nwork on {{item}}")
        .prompt("END.md", "---\njoin: all\n---\nend {{results}}")
        .rule(when("start").reply(&fork))
        .rule(touching(when(RESUMED)).reply("<result>made</result>"))
        .rule(touching(when("work")).reply("<result>early</result>"))
        .rule(always().reply("<result>ok</result>"));
    test.run(&["START.md", "--approval-hold", "1ms", "--stagger", "0s"]).code(2);
    test.assert_no_survivors();
    assert_eq!((asked(&test).len(), ran(&test).len()), (agents, 0));
    let numbers = (1..=agents).map(|number| format!("a{number}=allow"));
    let answers: Vec<String> = numbers.collect();
    answer(&test, &answers.iter().map(String::as_str).collect::<Vec<_>>()).ok();
    test.resume(&["--stagger", "0s"]).ok().ended("main", "ok");
    assert_eq!((asked(&test).len(), ran(&test).len()), (agents, agents), "each call runs once");
}

#[test]
fn forks_with_a_budget_ask_all_at_once() {
    let head = "---\nstagger: 0s\nallowed_transitions:\n  - { tag: fork, target: W.md, next: END.md, each: '[1,2,3,4]', as: n }\n---\nstart";
    let test = Test::new()
        .prompt("START.md", head)
        .prompt("W.md", "---\npermissions: ask\n---\nwork {{n}}")
        .prompt("END.md", "---\njoin: all\n---\nend")
        .rule(touching(when("work")).reply("<result>ok</result>").cost(0.25))
        .rule(when("end").reply("<result>done</result>"))
        .rule(when("start").reply("<fork next=\"END.md\" each=\"[1,2,3,4]\" as=\"n\">W.md</fork>"));
    let mut live = test.spawn(&["START.md", "--budget", "5", "--max-procs", "8"]);
    live.wait_event("approval_asked", 4);
    for call in ["a1", "a2", "a3", "a4"] {
        answer(&test, &[call, "allow"]).ok();
    }
    live.wait().ok();
}

#[test]
fn rule_of_starter_holds_in_states_that_do_not_list_it() {
    let rule = "Bash(touch a *)";
    let flags: [&[&str]; 4] = [
        &["--allow-tool", rule],
        &["--allowedTools", rule],
        &["--allow-tools=Bash(touch a *)"],
        &["--", "--allowedTools", rule],
    ];
    for route in flags {
        let test = workflow();
        test.run(&[&["START.md"], route].concat()).ok().ended("main", "ok");
        assert_eq!((ran(&test).len(), test.events("approval_asked").len()), (1, 0), "{route:?}");
    }
    for head in ["permission_mode: plan\npermissions: ask", "permissions: ask"] {
        let test = workflow().prompt("START.md", &format!("---\n{head}\n---\nstart"));
        let unlisted = if head.contains("plan") { rule } else { "WebFetch" };
        let mut live = test.spawn(&["START.md", "--allow-tool", unlisted]);
        live.wait_event("approval_asked", 1);
        answer(&test, &["a1", "allow"]).ok();
        live.wait().ok();
    }
}

#[test]
fn rule_without_effect_is_reported_at_the_start() {
    let test = workflow().prompt("START.md", "---\ntools: [Read]\n---\nstart");
    for (rule, hint) in [("Bash(ls:*)", "no state may use `Bash`"), ("Bsh", "did you mean `Bash`?")]
    {
        let said = test.raymond(&["run", "START.md", "--dry-run", "--allow-tool", rule]);
        said.ok();
        assert!(format!("{said:?}").contains(hint), "{said:?}");
    }
}

#[test]
fn wider_rule_of_an_answer_is_shared_by_agents_that_run_already() {
    let head = "---\nstagger: 0s\nallowed_transitions:\n  - { tag: fork, target: W.md, next: END.md, each: '[1,2,3,4]', as: n }\n---\nstart";
    let test = Test::new()
        .prompt("START.md", head)
        .prompt("W.md", "---\npermissions: ask\n---\nwork {{n}}")
        .prompt("END.md", "---\njoin: all\n---\nend")
        .rule(touching(when("work")).reply("<result>ok</result>"))
        .rule(when("end").reply("<result>done</result>"))
        .rule(when("start").reply("<fork next=\"END.md\" each=\"[1,2,3,4]\" as=\"n\">W.md</fork>"));
    let mut live = test.spawn(&["START.md", "--max-procs", "8"]);
    live.wait_event("approval_asked", 4);
    answer(&test, &["a2", "allow", "--rule", "Bash(tuoch:*)"])
        .code(64)
        .stderr_has("`Bash(tuoch:*)` does not cover this call, Bash: touch a");
    answer(&test, &["a2", "allow", "--rule", "Bash(touch:*)"]).ok();
    live.wait().ok();
    assert_eq!((test.events("approval_answered").len(), ran(&test).len()), (4, 4));
}
