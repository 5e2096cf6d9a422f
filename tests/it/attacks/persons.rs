//! Commands of a person, from inside each kind of process that an agent can run or start.
//!
//! Each process clears its environment and tries all commands, also on the run `ask1`, which waits for a person.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::support::{FakeCall, RunningRaymond, Test, wait_until, when};

/// The commands of a person.
const COMMANDS: [&str; 28] = [
    "answer ask1 DONE.md=stolen",
    "stop ask1",
    "stop ask1 --agent main",
    "tell ask1 main hello",
    "hold ask1 main",
    "release ask1 main",
    "edit ask1 main",
    "attach ask1 main",
    "resume ask1",
    "run ask1",
    "run ask1 --answer DONE.md=stolen",
    "start ask1",
    "recover --all",
    "retry ask1",
    "branch ask1 --at 1",
    "rewind ask1 --to 1",
    "clean ask1 --yes",
    "facts --prune --label x",
    "workflow define program.lisp",
    "serve",
    "worker",
    "hosts drain here",
    "hosts lost here",
    "hosts remove here",
    "worktrees ask1 --prune",
    "trust .",
    "trust . --remove",
    "run ../other/COMMAND.yaml --id trusted --trust",
];

const CLEARED: &str = "env -u RAYMOND_RUN -u RAYMOND_AGENT -u RAYMOND_TURN -u RAYMOND_DETACHED -u RAYMOND_PLUGIN -u RAYMOND_TRUST";

const RAYMOND: &str = env!("CARGO_BIN_EXE_raymond");

/// Returns a workflow with a run that waits for an answer, and `attempts.sh KIND`, which tries all commands.
fn attempts() -> Test {
    let test = Test::new();
    let (root, dir, flow) = (test.root().display(), test.dir(), test.flow());
    let mut script = format!(
        "export HOME={root}/home RAYMOND_DIR={}\ncd {}\nreport={root}/tried.$1\necho \"as $RAYMOND_AGENT\" > $report.new\n",
        dir.display(),
        flow.display(),
    );
    for command in COMMANDS {
        let silent = "< /dev/null > /dev/null 2>&1";
        let _ = writeln!(
            script,
            "{CLEARED} {RAYMOND} {command} {silent}; echo \"{command}: $?\" >> $report.new"
        );
    }
    let _ = writeln!(script, "{CLEARED} {RAYMOND} signal said/$1 < /dev/null");
    script.push_str("mv $report.new $report\n");
    std::fs::write(test.root().join("attempts.sh"), script).expect("written");
    let command = super::graph(&json!({"type": "bash_exec", "command": "true"}));
    let test = test
        .prompt("ASK.md", "ask the person")
        .prompt("DONE.md", "done")
        .prompt("INNER.md", "inner")
        .file("../other/COMMAND.yaml", command.as_bytes())
        .rule(when("ask the person").reply(r#"<ask next="DONE.md">Release it?</ask>"#))
        .rule(when("inner").reply("<result>ok</result>"));
    test.raymond(&["run", "ASK.md", "--id", "ask1", "--on-wait", "exit"]).code(2);
    test
}

/// Returns the command with which a shell tries all commands as a kind of process.
fn trying(test: &Test, kind: &str) -> String {
    format!("sh {}/attempts.sh {kind}", test.root().display())
}

/// Makes a FIFO for which a command waits, and returns its path.
fn gate(test: &Test) -> String {
    let gate = test.root().join("gate");
    mknodat(CWD, &gate, FileType::Fifo, Mode::RWXU, 0).expect("made");
    gate.display().to_string()
}

fn report(test: &Test, kind: &str) -> PathBuf {
    test.root().join(format!("tried.{kind}"))
}

/// Checks that a process was refused all commands, and that nothing has changed in the run that waits. Returns the
/// agent that its environment named.
#[track_caller]
fn assert_refused(test: &Test, kind: &str) -> String {
    let report = report(test, kind);
    wait_until("the report", || report.exists());
    let report = std::fs::read_to_string(report).expect("it was tried");
    let mut lines = report.lines();
    let agent = lines.next().unwrap_or_default().trim_start_matches("as").trim().to_owned();
    let expected: Vec<String> = COMMANDS.iter().map(|command| format!("{command}: 77")).collect();
    assert_eq!(lines.collect::<Vec<_>>(), expected, "{kind}");
    let asked = test.dir().join("runs/ask1");
    let journal = std::fs::read_to_string(asked.join("journal.jsonl")).expect("a journal");
    assert!(!journal.contains("question_answered"), "{kind}: {journal}");
    let requests = std::fs::read_dir(asked.join("inbox")).into_iter().flatten().flatten();
    let names: Vec<_> = requests.map(|one| one.file_name()).collect();
    assert!(
        !names.iter().any(|name| Path::new(name).extension().is_some_and(|end| end == "json")),
        "{names:?}"
    );
    agent
}

/// Returns the source of the fact that a process has asserted.
fn source(test: &Test, kind: &str) -> Value {
    let facts = test.raymond(&["facts", "--json", "--label", &format!("said/{kind}")]);
    facts.ok().json()[0]["source"].clone()
}

#[test]
fn cold_and_warm_agent_is_refused() {
    let test = attempts();
    let (cold, warm) = (trying(&test, "cold"), trying(&test, "warm"));
    let test = test
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").runs(&cold).reply("<goto>NEXT.md</goto>"))
        .rule(when("next").runs(&warm).reply("<result>ok</result>"));
    test.run(&["START.md"]).ok();
    let calls = test.calls();
    assert_eq!(calls[1].pid, calls[2].pid, "the second turn is a warm one");
    for kind in ["cold", "warm"] {
        assert_eq!(assert_refused(&test, kind), "main");
        assert_eq!(source(&test, kind), "t/main");
    }
}

#[test]
fn prestarted_agent_is_refused() {
    let test = attempts();
    let ahead = trying(&test, "ahead");
    let test = test
        .prompt("START.md", "start")
        .prompt("LAST.md", "last")
        .prompt("CHILD.md", "child")
        .rule(when("start").hold_before("fork").reply(r#"<fork next="LAST.md">CHILD.md</fork>"#))
        .rule(when("last").reply("<result>led</result>"))
        .rule(when("child").runs(&ahead).reply("<result>worked</result>"));
    let mut live = test.spawn(&["START.md", "--prestart", "2", "--max-procs", "4"]);
    live.wait_calls(2);
    live.wait_for("processes ahead", |test| {
        let working: Vec<i32> = test.calls().iter().map(|call| call.pid).collect();
        let warm = FakeCall::warm_pids(&test.call_log());
        warm.iter().filter(|pid| !working.contains(pid)).count() == 2
    });
    test.release("fork");
    live.wait().ok().ended("main.1", "worked");
    assert_eq!(assert_refused(&test, "ahead"), "", "its environment names no agent");
    assert_eq!(source(&test, "ahead"), "t/main.1", "the registry does");
}

#[test]
fn agent_whose_raymond_was_killed_is_refused_also_when_it_is_adopted() {
    for (kind, is_adopted) in [("left", false), ("adopted", true)] {
        let test = attempts();
        let gate = gate(&test);
        let left = format!("cat {gate}; {}", trying(&test, kind));
        let test = test
            .prompt("START.md", "start")
            .rule(when("start").runs(&left).reply("<result>ok</result>"));
        let mut live: RunningRaymond<'_> = test.spawn(&["START.md"]);
        live.wait_calls(2);
        live.kill9();
        let adopting = is_adopted.then(|| {
            let mut adopting = test.spawn_resumed(&[]);
            adopting.wait_event("run_resumed", 1);
            adopting
        });
        std::fs::write(&gate, "").expect("it goes on");
        assert_eq!(assert_refused(&test, kind), "main");
        let ended = adopting.map_or_else(|| test.resume(&[]), RunningRaymond::wait);
        ended.ok().ended("main", "ok");
        assert_eq!(test.calls_with("start").len(), 1, "it was adopted");
    }
}

#[test]
fn processes_of_raymond_that_an_agent_has_started_are_refused() {
    let test = attempts();
    let plugin = test.root().join("plugin.py");
    let program = format!(
        "import json, os, sys\nfor line in sys.stdin:\n    if json.loads(line)['type'] == 'hello':\n        os.system({:?})\n        print(json.dumps({{'type': 'hello', 'version': 2, 'consult': []}}), flush=True)\n",
        trying(&test, "plugin"),
    );
    std::fs::write(&plugin, program).expect("written");
    let nested = format!(
        "{CLEARED} {RAYMOND} run INNER.md --id in1 --on-event '{}' --plugin 'python3 {}'; \
         {CLEARED} {RAYMOND} start INNER.md --id in2 --on-event '{}'; \
         {CLEARED} {RAYMOND} run LOWER.md --id in3",
        trying(&test, "hook"),
        plugin.display(),
        trying(&test, "background"),
    );
    let lower = trying(&test, "nested");
    let test = test
        .prompt("START.md", "start")
        .prompt("LOWER.md", "lower")
        .rule(when("start").runs(&nested).reply("<result>ok</result>"))
        .rule(when("lower").runs(&lower).reply("<result>ok</result>"));
    test.run(&["START.md"]).ok();
    for kind in ["hook", "plugin", "background", "nested"] {
        assert_refused(&test, kind);
    }
    assert_eq!(source(&test, "nested"), "in3/main");
}

/// The ways in which a command that has left its ancestors and environment hides what is left of its origin: a kind, what
/// it does before, and the program by which it starts.
const HIDING: [(&str, &str, &str); 7] = [
    ("alone", "", ""),
    ("namespace", "", "unshare -rpf --mount-proc"),
    ("covered", "", "unshare -rm sh -c 'mount -t tmpfs none /proc; exec \"$@\"' -"),
    ("bound", "", "unshare -rm sh -c 'mount --bind /proc/$PPID /proc/$$; exec \"$@\"' -"),
    (
        "linked",
        "mkdir -p -m 700 $HOME/own/raymond; ln $HOME/.local/state/raymond/key $HOME/own/raymond/key",
        "env XDG_STATE_HOME=$HOME/own",
    ),
    ("unregistered", "rm -r $HOME/.local/state/raymond/processes", ""),
    ("unseen", "", "unshare -rpf --mount-proc"),
];

#[test]
fn command_that_has_left_its_ancestors_and_environment_is_refused() {
    let test = attempts();
    let gate = gate(&test);
    let mut script = format!("export HOME={}/home; ", test.root().display());
    for (kind, before, by) in HIDING {
        let tries = trying(&test, kind);
        let _ = write!(
            script,
            "{before}\n(env -i PATH=\"$PATH\" setsid {by} sh -c '{tries}; echo > {gate}' &); cat {gate}\n"
        );
    }
    let test = test
        .prompt("START.md", "start")
        .rule(when("start").runs(&script).reply("<result>ok</result>"));
    test.run(&["START.md"]).ok();
    for (kind, ..) in HIDING {
        assert_refused(&test, kind);
    }
}

#[test]
fn command_from_another_user_namespace_without_registry_is_refused() {
    let test = attempts();
    let script = format!(
        "rm -r {}/home/.local/state/raymond/processes; {CLEARED} unshare -r {}",
        test.root().display(),
        trying(&test, "user")
    );
    let test = test
        .prompt("START.md", "start")
        .rule(when("start").runs(&script).reply("<result>ok</result>"));
    test.run(&["START.md"]).ok();
    assert_refused(&test, "user");
}

#[test]
fn supervisor_whose_entry_was_removed_enters_itself_again() {
    let test = Test::new();
    let processes = test.root().join("home/.local/state/raymond/processes");
    let list = format!("ls {0}/*/$(ps -o ppid= -p $PPID | tr -d ' ')-*", processes.display());
    let removes = format!("rm -r {}", processes.display());
    let finds = format!("{list} > {}/found", test.root().display());
    let test = test
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").runs(&removes).reply("<reset>NEXT.md</reset>"))
        .rule(when("next").runs(&finds).reply("<result>ok</result>"));
    test.run(&["START.md"]).ok();
    let found = std::fs::read_to_string(test.root().join("found")).expect("it was listed");
    assert_eq!(found.lines().count(), 1, "{found}");
}

#[test]
fn person_in_a_container_is_refused_only_while_a_raymond_outside_supervises() {
    let test = attempts()
        .prompt("HELD.md", "held")
        .rule(when("held").hold_before("go").reply("<result>ok</result>"));
    let inside =
        |arguments: &[&str]| test.start_by("unshare", &["-rpf", "--mount-proc"], arguments).wait();
    inside(&["hold", "ask1", "main"]).ok();
    let mut live = test.spawn(&["HELD.md"]);
    live.wait_calls(2);
    inside(&["release", "ask1", "main"]).code(77).stderr_has("process namespace");
    test.raymond(&["release", "ask1", "main"]).ok();
    test.release("go");
    live.wait().ok();
    let script = r#"exec unshare -rpf --mount-proc sh -c '
        "$0" start HELD.md --id inner && "$0" hold ask1 main && "$0" stop inner' "$0""#;
    test.shell(script).wait().ok();
}

#[test]
fn forged_entry_of_a_shell_counts_only_while_its_lock_is_held_and_is_named() {
    let test = attempts();
    let script = r#"
        set -- $(cat /proc/$$/stat)
        entry=$HOME/.local/state/raymond/processes/boot-$(cat /proc/sys/kernel/random/boot_id)/$$-${22}
        mkdir -p "${entry%/*}"
        printf '{"pid":%s,"start":%s,"group":1,"kind":"turn","run":"r","agent":"main","turn":"t","proof":""}' $$ ${22} > "$entry"
        "$0" hold ask1 main || exit 1
        flock "$entry" "$0" release ask1 main
        test $? = 77 && rm "$entry" && exec "$0" release ask1 main"#;
    test.shell(script).wait().ok().stderr_has("the agent r/main may not").stderr_has("remove /");
}

/// The proof by which `raymond test` resumes the runs of its cases, made with a key of the agent's.
const FORGED_TEST: &str = r#"
    mkdir -m 700 $HOME/own
    env XDG_STATE_HOME=$HOME/own "$RAYMOND" run INNER.md --id own --dir $HOME/runs
    proof=$(python3 -c '
import hashlib, hmac, sys
key = open(sys.argv[1]).read().strip().encode()
print(hmac.new(key, b"RAYMOND_TEST\0" + sys.argv[2].encode(), hashlib.sha256).hexdigest())' \
        $HOME/own/raymond/key "$RAYMOND_DIR/runs")
    for own in $HOME/own $HOME/.local/state; do
        env XDG_STATE_HOME=$own RAYMOND_TEST=$proof "$RAYMOND" resume ask1 --trust
        echo "$own: $?" >> $HOME/tried
    done
"#;

#[test]
fn proof_of_a_test_that_an_agent_has_made_resumes_no_run_of_a_person() {
    let test = attempts();
    let script = format!(
        "export HOME={}/home RAYMOND_DIR={} RAYMOND={RAYMOND}; cd {}; {FORGED_TEST}",
        test.root().display(),
        test.dir().display(),
        test.flow().display(),
    );
    let test = test
        .prompt("START.md", "start")
        .rule(when("start").runs(&script).reply("<result>ok</result>"));
    test.run(&["START.md"]).ok();
    let tried = std::fs::read_to_string(test.root().join("home/tried")).expect("it was tried");
    assert_eq!(tried.lines().filter(|line| line.ends_with(": 77")).count(), 2, "{tried}");
}

#[test]
fn script_and_command_of_graph_are_refused() {
    let test = attempts();
    let (script, command) = (trying(&test, "script"), trying(&test, "graph"));
    let graph = super::graph(&json!({"type": "bash_exec", "command": command}));
    let test = test
        .file("START.sh", format!("{script}\necho '<result>ok</result>'\n").as_bytes())
        .file("GRAPH.yaml", graph.as_bytes());
    test.run(&["START.sh"]).ok();
    test.run(&["GRAPH.yaml", "--id", "g"]).ok();
    for kind in ["script", "graph"] {
        assert_eq!(assert_refused(&test, kind), "main");
    }
}

#[test]
fn hook_and_plugin_of_a_person_act_for_the_person() {
    let test = attempts();
    let plugin = test.root().join("plugin.py");
    let program = format!(
        "import json, os, sys\nfor line in sys.stdin:\n    if json.loads(line)['type'] == 'hello':\n        os.system('{RAYMOND} hold ask1 main; echo $? > {}/plugin')\n        print(json.dumps({{'type': 'hello', 'version': 2, 'consult': []}}), flush=True)\n",
        test.root().display(),
    );
    std::fs::write(&plugin, program).expect("written");
    let answer =
        format!("{RAYMOND} answer ask1 DONE.md=yes; echo $? > {}/hook", test.root().display());
    let hook = format!("sh -c '{answer}'");
    let plugin = format!("python3 {}", plugin.display());
    test.run(&["INNER.md", "--on-event", &hook, "--plugin", &plugin]).ok();
    for kind in ["hook", "plugin"] {
        let code = std::fs::read_to_string(test.root().join(kind)).expect("it was tried");
        assert_eq!(code.trim(), "0", "{kind}");
    }
}
