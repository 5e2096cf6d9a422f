//! A hook's queue: everything in its order, bounded, and over when it is said to be.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use super::*;

fn call(name: &'static str) -> HookCall {
    HookCall { name, input: format!("{name}\n"), environment: Vec::new() }
}

/// Returns a hook that runs a script, and the messages of its failures.
fn hook(script: &str, timeouts: HookTimeouts) -> (Hook, mpsc::Receiver<String>) {
    let program = HookCommand {
        path: "/bin/sh".into(),
        arguments: vec!["-c".to_owned(), script.to_owned()],
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        timeouts,
    };
    let (report, failures) = mpsc::channel();
    let report: HookFailureHandler = Box::new(move |call, failure| {
        let _ = report.send(format!("{} {failure}", call.unwrap_or("-")));
    });
    (Hook::new(program, report), failures)
}

/// A directory, and in it the file that is written and the one that is waited for.
fn place() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let place = tempfile::tempdir().expect("a directory");
    let (out, go) = (place.path().join("out"), place.path().join("go"));
    (place, out, go)
}

fn written(out: &Path) -> String {
    std::fs::read_to_string(out).unwrap_or_default()
}

/// Waits until the condition holds.
fn patiently(mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < Duration::from_secs(30), "it never came about");
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn finish_runs_all_queued_calls_in_order() {
    let (_place, out, _) = place();
    let (hook, failures) = hook(&format!("cat >> {}", out.display()), HookTimeouts::default());
    for name in ["one", "two", "three"] {
        hook.call(call(name));
    }
    hook.finish().await;
    assert_eq!(written(&out), "one\ntwo\nthree\n");
    assert_eq!(failures.try_iter().count(), 0);
}

#[tokio::test]
async fn failed_call_is_reported_and_next_call_runs() {
    let (hook, failures) = hook("read call; test $call = two", HookTimeouts::default());
    for name in ["one", "two"] {
        hook.call(call(name));
    }
    hook.finish().await;
    assert_eq!(failures.try_iter().collect::<Vec<_>>(), ["one exited with code 1"]);
}

#[tokio::test]
async fn full_queue_drops_oldest_calls() {
    let (_place, out, go) = place();
    let script = format!(
        "echo x >> {0}; until test -e {1}; do sleep 0.01; done; cat >> {0}",
        out.display(),
        go.display()
    );
    let (hook, failures) = hook(&script, HookTimeouts::default());
    hook.call(call("first"));
    patiently(|| !written(&out).is_empty());
    for _ in 0..MAX_QUEUED_CALLS {
        hook.call(call("old"));
    }
    for _ in 0..MAX_QUEUED_CALLS - 1 {
        hook.call(call("new"));
    }
    hook.call(call("last"));
    std::fs::write(&go, "").expect("it may go on");
    hook.finish().await;
    let written = written(&out);
    assert!(written.starts_with("x\nfirst\n") && written.ends_with("last\n"), "{written}");
    assert!(!written.contains("old"), "{written}");
    let left_out = "- skipped for 256 events, because it is slower than they arrive";
    assert_eq!(failures.try_iter().collect::<Vec<_>>(), [left_out]);
}

#[tokio::test]
async fn finish_runs_last_call_despite_slow_earlier_calls() {
    let (_place, out, _) = place();
    let script =
        format!("read call; echo $call >> {}; test $call = last || sleep 600", out.display());
    let brief = Duration::from_millis(500);
    let (hook, failures) = hook(&script, HookTimeouts { longest: brief, grace: brief });
    hook.call(call("first"));
    patiently(|| !written(&out).is_empty());
    for _ in 0..9 {
        hook.call(call("slow"));
    }
    hook.call(call("last"));
    hook.finish().await;
    assert!(written(&out).ends_with("last\n"), "{}", written(&out));
    let failures: Vec<String> = failures.try_iter().collect();
    assert!(failures.iter().any(|failure| failure.starts_with("- skipped for ")), "{failures:?}");
}

#[tokio::test]
async fn abandoned_command_is_ended_at_once() {
    let (_place, out, _) = place();
    let (hook, _told) =
        hook(&format!("echo $$ >> {}; sleep 600", out.display()), HookTimeouts::default());
    hook.call(call("one"));
    hook.call(call("two"));
    patiently(|| written(&out).ends_with('\n'));
    hook.abandon();
    hook.finish().await;
    assert_eq!(written(&out).lines().count(), 1);
}
