//! Process management without a supervisor: a turn whose follower is gone, as after a failure of its actor,
//! is followed again, is asked once, and keeps its process and its slot.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use raymond::domain::id::{AgentId, RunId, SessionId, StateName};
use raymond::domain::session::Session;
use raymond::domain::settings::{MaxProcs, Settings};
use raymond::domain::supervision::SupervisionPolicy;
use raymond::domain::transition::Variables;
use raymond::domain::turn::{TURN_VERSION, TurnId, TurnInput, TurnOutcome, TurnReply};
use raymond::domain::turn_options::TurnOptions;
use raymond::domain::worktree_snapshot::WorkingDir;
use raymond::process::claude::program::ClaudeCode;
use raymond::process::command::EnvironmentMarker;
use raymond::process::process_runner::ProcessRunner;
use raymond::process::working_dirs::WorkingDirs;

use super::three;
use crate::support::{Test, when};

/// Returns a script that starts the stand-in with its folder. A shell writes the script: a file that this
/// process holds open for writing while another test starts a child cannot be executed.
fn claude(test: &Test) -> PathBuf {
    let path = test.root().join("claude.sh");
    let fake = env!("CARGO_BIN_EXE_fake-claude");
    let script =
        format!("#!/bin/sh\nFAKE_CLAUDE='{}' exec '{fake}' \"$@\"\n", test.fake().display());
    let written = Command::new("/bin/sh")
        .args(["-c", "printf %s \"$1\" > \"$0\" && chmod 700 \"$0\""])
        .args([path.as_os_str(), script.as_ref()])
        .status();
    assert!(written.expect("a shell").success());
    path
}

fn room(test: &Test, steps: &Path) -> ProcessRunner {
    std::fs::create_dir_all(steps).expect("a folder");
    let settings = Settings {
        max_procs: MaxProcs::Count(1),
        cwd: test.flow().display().to_string(),
        ..Settings::default()
    };
    let marker = EnvironmentMarker { run: RunId::parse("t").expect("an id"), dir: test.dir() };
    let homes = WorkingDirs::new(test.flow(), test.dir().join("worktrees/t"));
    let (program, path) = (Rc::new(ClaudeCode), claude(test));
    ProcessRunner::new(program, path, settings, homes, steps.to_owned(), marker)
}

fn turn(step: u64, session: Session, prompt: &str) -> TurnInput {
    TurnInput {
        version: TURN_VERSION,
        turn: TurnId { agent: AgentId::main(), step, turn: 0 },
        failed_before: None,
        state: StateName::parse("START.md").expect("a name"),
        folder: None,
        working_dir: WorkingDir::default(),
        reads_results: false,
        output: None,
        visit: 0,
        session,
        model: None,
        options: TurnOptions::default(),
        max_cost: None,
        limits: SupervisionPolicy::default().limits(),
        prompt: prompt.to_owned(),
        values: Variables::new(),
    }
}

#[track_caller]
fn replied(outcome: TurnOutcome) -> TurnReply {
    match outcome {
        TurnOutcome::Replied(reply) => reply,
        TurnOutcome::Failed(failure) => panic!("{failure:?}"),
    }
}

async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Runs three turns with room for one process; the second is abandoned in its middle and followed again.
async fn left_and_taken_up(test: &Test) {
    let claude = room(test, &test.root().join("steps"));
    let quiet = |_: raymond::process::runner::TurnNotice<'_>| {};
    let session = Session::fresh(SessionId::new("one"));
    let first = replied(claude.run(&turn(1, session.clone(), "start"), quiet).await);

    let session = session.after_turn(first.message);
    let second = turn(2, session.clone(), "next");
    tokio::select! {
        outcome = claude.run(&second, quiet) => panic!("it is held: {outcome:?}"),
        () = until(|| test.calls().len() == 2) => {}
    }
    test.release("go");
    let again = replied(claude.run(&second, quiet).await);
    assert_eq!(again.text, "<goto>LAST.md</goto>");
    assert!((again.cost.dollars() - 0.02).abs() < 1e-9, "{:?}", again.cost);

    let session = session.after_turn(again.message);
    let third = replied(claude.run(&turn(3, session, "last"), quiet).await);
    assert_eq!(third.text, "<result>ok</result>");
    assert_eq!(claude.sweep(&[]).await, 0, "nothing had to be swept");
}

#[test]
fn abandoned_turn_is_followed_again_and_asked_once() {
    let test =
        three().rule(when("next").hold_before("go").reply("<goto>LAST.md</goto>").cost(0.02));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let local = tokio::task::LocalSet::new();
    let in_time = async {
        tokio::time::timeout(Duration::from_mins(5), Box::pin(left_and_taken_up(&test))).await
    };
    local.block_on(&runtime, in_time).expect("it ends");
    assert_eq!(test.prompts(), ["start", "next", "last"], "each was asked once");
    let calls = test.calls();
    calls[1].assert_continues(&calls[0]);
    calls[2].assert_resumes(&calls[1]);
    assert_eq!(calls[2].history, ["start", "next"]);
    test.assert_no_survivors();
}
