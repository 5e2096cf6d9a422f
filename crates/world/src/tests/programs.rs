//! Programs, and types of a program's own.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::append::OperationNotes;
use raymond_agents::captured_output;
use raymond_agents::child::orphans;
use raymond_model::operation::RecoveryClass;
use raymond_store::proof::StepProofs;

fn shell(command: &str) -> Value {
    json!({"type": "bash_exec", "command": command})
}

#[tokio::test]
async fn command_runs_in_workspace_without_api_key() {
    let ground = Ground::new();
    let output = ground.value(shell("pwd; echo ${ANTHROPIC_API_KEY-none} $RAYMOND_RUN >&2")).await;
    let expected = json!({
        "exit_code": 0,
        "stdout": format!("{}\n", ground.root().display()),
        "stderr": "none world\n",
    });
    assert_eq!(output, expected);
    let why = ground.why(shell("echo no network >&2; exit 3")).await;
    assert_eq!(why, "the command `echo no network >&2; exit 3` exited with code 3: no network");
    assert_eq!(ground.why(shell(" ")).await, "the command is empty");
}

#[tokio::test]
async fn finished_command_is_not_run_again() {
    let mut ground = Ground::new();
    let command = shell("echo run >> runs; echo $$; exit 0");
    let first = ground.perform("main.1", command.clone(), false).await;
    ground.restart();
    assert_eq!(ground.perform("main.1", command, true).await, first);
    let failing = shell("echo run >> runs; exit 4");
    let first = ground.perform("main.2", failing.clone(), true).await;
    assert_eq!(ground.perform("main.2", failing, true).await, first, "never begun, then failed");
    assert_eq!(ground.text("runs"), "run\nrun\n");
}

#[tokio::test]
async fn command_with_unless_runs_until_its_test_succeeds() {
    let ground = Ground::new();
    OperationNotes::of(&ground.base().join("steps"), &StepProofs::default(), "main.1")
        .begin()
        .expect("noted");
    let mut command = shell("echo run >> runs; echo made");
    command["unless"] = json!("test -e runs");
    for (again, stdout) in [(true, "made\n"), (true, ""), (false, "")] {
        let done = ground.perform("main.1", command.clone(), again).await;
        let Ok(done) = done else { panic!("{done:?}") };
        assert_eq!((&done["stdout"], &done["exit_code"]), (&json!(stdout), &json!(0)));
        assert_eq!(done.get("skipped").is_some(), stdout.is_empty());
    }
    assert_eq!(ground.text("runs"), "run\n");
    command["unless"] = json!("no-such-program");
    let why = ground.why(command).await;
    assert!(
        why.starts_with("`unless`, the command `no-such-program`, exited with code 127"),
        "{why}"
    );
}

#[tokio::test]
async fn started_command_is_repeated_if_idempotent_and_fails_if_once() {
    let ground = Ground::new();
    for stem in ["main.1", "main.2"] {
        OperationNotes::of(&ground.base().join("steps"), &StepProofs::default(), stem)
            .begin()
            .expect("noted");
    }
    let mut command = shell("echo run >> runs");
    command["idempotent"] = json!(true);
    let done = ground.perform("main.1", command, true).await;
    assert!(done.is_ok(), "{done:?}");
    let mut command = shell("echo run >> runs");
    command["once"] = json!(true);
    let failed = ground.perform("main.2", command.clone(), true).await;
    let Err(OperationError::Failed(why)) = failed else { panic!("{failed:?}") };
    assert!(why.ends_with("`once` means that it is never repeated"), "{why}");
    let done = ground.perform("main.3", command.clone(), false).await;
    assert_eq!(ground.perform("main.3", command, true).await, done, "its outcome was noted");
    assert_eq!(ground.text("runs"), "run\nrun\n");
}

#[tokio::test]
async fn failed_command_shows_stderr_and_stdout() {
    let ground = Ground::new();
    let why = ground.why(shell("echo 1 failed; echo no test passed >&2; exit 1")).await;
    assert!(why.ends_with("exited with code 1: no test passed (stdout: 1 failed)"), "{why}");
}

#[tokio::test]
async fn started_command_without_outcome_is_lost() {
    let ground = Ground::new();
    OperationNotes::of(&ground.base().join("steps"), &StepProofs::default(), "main.1")
        .begin()
        .expect("noted");
    let lost = ground.perform("main.1", shell("echo run >> runs"), true).await;
    let Err(OperationError::Lost(why)) = lost else { panic!("{lost:?}") };
    assert!(why.starts_with("WF502 the command `echo run >> runs` had begun when"), "{why}");
    assert!(!ground.root().join("runs").exists());
    let repeated = ground.perform("main.1", shell("echo run >> runs"), false).await;
    assert!(repeated.is_ok(), "the policy runs it again");
}

#[tokio::test]
async fn stop_ends_command_and_its_child_processes() {
    let ground = Ground::new();
    let fifo = "mkfifo here; (sleep 600 & echo started > here; wait)";
    let command = serde_json::from_value(shell(fifo)).expect("an operation");
    let running = ground.world.perform("main.1", &command, false);
    let stopping = async {
        let here = ground.root().join("here");
        while !here.exists() {
            tokio::task::yield_now().await;
        }
        tokio::fs::read_to_string(here).await.expect("it has started");
        ground.world.stop();
    };
    let both = async { tokio::join!(running, stopping) };
    let (performed, ()) =
        tokio::time::timeout(Duration::from_mins(1), Box::pin(both)).await.expect("it ends");
    assert_eq!(performed, Err(OperationError::Interrupted));
    let marker =
        EnvironmentMarker { run: RunId::parse("world").expect("an id"), dir: ground.base() };
    let left = async {
        while !orphans::find(&marker).is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), left).await.expect("nothing is left");
    let again = world_at(ground.kept.path(), CustomTypeRegistry::default(), &[]);
    let lost = again.perform("main.1", &command, true).await;
    assert!(matches!(lost, Err(OperationError::Lost(_))), "{lost:?}");
}

#[tokio::test]
async fn tool_available_searches_the_path() {
    let ground = Ground::new();
    let has = |tool: &str| json!({"type": "tool_available", "tool": tool});
    assert_eq!(ground.value(has("sh")).await, json!(true));
    assert_eq!(ground.value(has("no-such-tool")).await, json!(false));
    assert!(ground.why(has("/bin/sh")).await.contains("is not the name of a program"));
}

#[tokio::test]
async fn python_module_is_found_without_importing_it() {
    let ground = Ground::new();
    ground.put("package/__init__.py", "open('ran', 'w')");
    ground.put("package/part.py", "open('ran', 'w')");
    let has = |module: &str| json!({"type": "python_module_available", "module": module});
    for module in ["json", "os.path", "email.mime.text", "package", "package.part", "sys"] {
        assert_eq!(ground.value(has(module)).await, json!(true), "{module}");
    }
    for module in ["no_such_module", "json.no_such", "sys.no", "package.none"] {
        assert_eq!(ground.value(has(module)).await, json!(false), "{module}");
    }
    for module in ["", "a..b", "os; x", "-c", "1a"] {
        assert!(ground.why(has(module)).await.contains("is not the name of a module"), "{module}");
    }
    assert!(!ground.root().join("ran").exists());
}

#[tokio::test]
async fn custom_operation_type_is_performed_and_its_panic_is_a_failure() {
    let mut types = CustomTypeRegistry::default();
    types.add("greet", |parameters: serde_json::Map<String, Value>| async move {
        Ok(json!(format!("hello {}", parameters["whom"].as_str().unwrap_or("you"))))
    });
    types.add("panic", |_| async { panic!("nobody is there") });
    types.add("wait", |_| std::future::pending());
    let ground = Ground::with(types, &[]);
    let call = |name: &str, class: RecoveryClass| {
        let class = serde_json::to_value(class).expect("a class");
        json!({"type": "own", "name": name, "parameters": {"whom": "all"}, "class": class})
    };
    assert_eq!(ground.value(call("greet", RecoveryClass::Uncertain)).await, json!("hello all"));
    let known = ground.perform("main.1", call("panic", RecoveryClass::Uncertain), true).await;
    assert_eq!(known, Ok(json!("hello all")), "what was noted before");
    let why = ground.why(call("panic", RecoveryClass::Read)).await;
    assert_eq!(why, "it panicked: nobody is there");
    assert!(
        ground.why(call("none", RecoveryClass::Read)).await.contains("no longer provides `none`")
    );
    let waiting = serde_json::from_value(call("wait", RecoveryClass::Read)).expect("an operation");
    let stopping = async { ground.world.stop() };
    let (performed, ()) = tokio::join!(ground.world.perform("main.2", &waiting, false), stopping);
    assert_eq!(performed, Err(OperationError::Interrupted));
}

#[tokio::test]
async fn command_stopped_in_queue_counts_as_never_started() {
    let mut types = CustomTypeRegistry::default();
    types.add("wait", |_| std::future::pending());
    let mut ground = Ground::with(types, &[]);
    let wait = json!({"type": "own", "name": "wait", "parameters": {}, "class": "read"});
    let operations: Vec<Operation> = [vec![wait; 16], vec![shell("echo run > ran")]]
        .concat()
        .into_iter()
        .map(|operation| serde_json::from_value(operation).expect("an operation"))
        .collect();
    let world = &ground.world;
    let all = operations.iter().map(|operation| world.perform("main.1", operation, false));
    let mut all: Vec<_> = all.map(Box::pin).collect();
    for queued in &mut all {
        assert!(tokio::time::timeout(Duration::ZERO, queued).await.is_err(), "each waits");
    }
    world.stop();
    for queued in all {
        assert_eq!(queued.await, Err(OperationError::Interrupted));
    }
    ground.restart();
    let again = ground.perform("main.1", shell("echo run > ran"), true).await;
    assert!(again.is_ok(), "{again:?}");
    assert_eq!(ground.text("ran"), "run\n");
}

#[tokio::test]
async fn repeatable_command_waits_for_its_earlier_attempt() {
    let ground = Ground::new();
    let marker =
        EnvironmentMarker { run: RunId::parse("world").expect("an id"), dir: ground.base() };
    let mut earlier = std::process::Command::new("/bin/sh")
        .args(["-c", "read line; echo earlier > order"])
        .current_dir(ground.root())
        .stdin(std::process::Stdio::piped())
        .env_clear()
        .envs(captured_output::environment([], &marker, "main.1"))
        .spawn()
        .expect("a shell starts");
    let seen = async {
        while orphans::find(&marker).is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), seen).await.expect("it is seen");
    let mut command = shell("echo later >> order");
    command["idempotent"] = json!(true);
    let repeating = ground.perform("main.1", command, true);
    let ending = async {
        // As many looks as this are more than enough to end a process that is not waited for.
        for _ in 0..50 {
            assert_eq!(orphans::find(&marker).len(), 1, "it goes on, and nothing runs beside it");
            tokio::task::yield_now().await;
        }
        drop(earlier.stdin.take());
    };
    let both = async { tokio::join!(repeating, ending) };
    let (repeated, ()) =
        tokio::time::timeout(Duration::from_mins(1), Box::pin(both)).await.expect("it ends");
    assert!(repeated.is_ok(), "{repeated:?}");
    assert_eq!(ground.text("order"), "earlier\nlater\n");
    earlier.wait().expect("waited");
}

#[tokio::test]
async fn process_of_earlier_attempt_is_ended_before_retry() {
    let ground = Ground::new();
    let marker =
        EnvironmentMarker { run: RunId::parse("world").expect("an id"), dir: ground.base() };
    let mut left = std::process::Command::new("/bin/sleep")
        .arg("600")
        .env_clear()
        .envs(captured_output::environment([], &marker, "main.1"))
        .spawn()
        .expect("sleep starts");
    let seen = async {
        while orphans::find(&marker).is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), seen).await.expect("it is seen");
    let _ = ground.perform("main.1", shell("true"), true).await;
    let ended = tokio::task::spawn_blocking(move || left.wait()).await.expect("waited");
    assert!(!ended.expect("waited").success());
}
