//! An attacker who can write into a run's directory changes the settings it is resumed with.

use std::fmt::Write as _;

use crate::support::{Test, always, when};

/// Returns a workflow in which START is held in its turn until `go`, and leads to NEXT. The environment
/// trusts nothing.
fn held() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").hold_before("go").reply("<goto>NEXT.md</goto>"))
        .rule(always().reply("<result>ok</result>"))
        .env("RAYMOND_TRUST", "false")
}

/// Returns a run that was interrupted in its first turn.
fn interrupted() -> Test {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    live.interrupt();
    test.release("go");
    live.wait().code(130);
    test
}

/// Changes the text of all records, with checksums that fit.
fn forge(test: &Test, from: &str, to: &str) {
    let journal = std::fs::read_to_string(test.journal_file()).expect("a journal");
    let mut forged = String::new();
    for line in journal.lines() {
        let body = line.rsplit_once(",\"crc\":").expect("a record").0.replace(from, to);
        let crc = crc32fast::hash(body.as_bytes());
        let _ = writeln!(forged, "{body},\"crc\":\"{crc:08x}\"}}");
    }
    std::fs::write(test.journal_file(), forged).expect("written");
    for other in ["state.json", "acknowledged"] {
        let _ = std::fs::remove_file(test.run_dir().join(other));
    }
}

#[test]
fn unchanged_run_resumes_without_trust() {
    interrupted().resume(&[]).ok().ended("main", "ok");
}

#[test]
fn forged_settings_in_run_directory_need_trust_to_resume() {
    let table = [
        (r#""permission":{"mode":"acceptEdits"}"#, r#""permission":"skip_all""#, "permission mode"),
        (r#""warm":true"#, r#""warm":true,"claude_args":["--evil"]"#, "its arguments"),
        (
            r#""warm":true"#,
            r#""warm":true,"plugins":[{"name":"x","command":["touch","pwned"],"deadline_ms":1}]"#,
            "its plug-ins changed",
        ),
        (
            r#""warm":true"#,
            r#""warm":true,"consent":{"trusts_workflow":true}"#,
            "its states may do",
        ),
    ];
    for (from, to, told) in table {
        let test = interrupted();
        let calls = test.calls().len();
        forge(&test, from, to);
        let outcome = test.resume(&[]);
        outcome.code(77).stderr_has(told).stderr_has("repeat the command with --trust");
        outcome.stderr_has("it would execute:");
        assert_eq!(test.calls().len(), calls, "{told}");
        test.raymond(&["recover", "--all"]).code(77);
        assert!(test.calls().len() == calls && !test.flow().join("pwned").exists(), "{told}");
    }
}

#[test]
fn changed_list_of_pinned_files_blocks_resume() {
    let test = interrupted();
    let list = test.run_dir().join("workflow.json");
    let content = std::fs::read_to_string(&list).expect("a list");
    std::fs::write(&list, content.replacen("sha256:", "sha256:0", 1)).expect("written");
    test.resume(&[]).code(77).stderr_has("the list of its workflow's files differs");
    std::fs::remove_file(&list).expect("removed");
    test.resume(&[]).code(77);
}

#[test]
fn run_without_seal_needs_trust_to_resume() {
    let test = interrupted();
    let state = test.root().join("home/.local/state/raymond/runs");
    std::fs::remove_dir_all(state).expect("removed: another account has none");
    let outcome = test.resume(&[]);
    outcome.code(77).stderr_has("it has no seal");
    test.raymond(&["recover", "--all"]).code(77);
    test.resume(&["--trust"]).ok().ended("main", "ok");
}

#[test]
fn seal_of_completed_run_is_kept_until_the_run_is_cleaned() {
    let test = interrupted();
    test.resume(&[]).ok();
    let folder = test.root().join("home/.local/state/raymond/runs");
    let seals = || std::fs::read_dir(&folder).expect("a directory").count();
    assert_eq!(seals(), 1, "other runs can branch off it");
    test.raymond(&["clean", "t", "--yes"]).ok();
    assert_eq!(seals(), 0);
}

#[test]
fn session_id_that_looks_like_option_is_rejected() {
    let test = interrupted();
    let calls = test.calls().len();
    let journal = std::fs::read_to_string(test.journal_file()).expect("a journal");
    let record: serde_json::Value =
        serde_json::from_str(journal.lines().next().expect("a record")).expect("JSON");
    let session = record["session"].as_str().expect("a session").to_owned();
    forge(&test, &session, "--dangerously-skip-permissions");
    test.resume(&[]).code(65).stderr_has("is not the id of a session");
    assert_eq!(test.calls().len(), calls);
}

#[test]
fn copied_run_directory_is_rejected() {
    let test = interrupted();
    let copy = test.dir().join("runs/copy");
    let copied = std::process::Command::new("cp").arg("-r").arg(test.run_dir()).arg(&copy).status();
    assert!(copied.expect("cp runs").success());
    let told = "copy is a copy of the run t";
    test.raymond(&["run", "copy"]).code(65).stderr_has(told);
    test.raymond(&["branch", "copy", "--at", "2"]).code(65).stderr_has(told);
    test.raymond(&["rewind", "copy", "--to", "2"]).code(65).stderr_has(told);
    test.raymond(&["branch", "copy", "--dry-run"]).code(65).stderr_has(told);
    test.resume(&[]).ok();
}

#[test]
fn journal_of_every_paused_run_is_sealed() {
    // However fast a run ends, its lock is released before its journal is sealed.
    let test = Test::new().prompt("START.md", "start").prompt("NEXT.md", "next").prompt(
        "replies.yaml",
        "START.md: [{ reply: <goto>NEXT.md</goto>, cost: 0.02 }]\nNEXT.md: [<result>ok</result>]\n",
    );
    let seals = || {
        let seals = test.root().join("home/.local/state/raymond/runs");
        let files = std::fs::read_dir(seals).into_iter().flatten().flatten();
        files.map(|file| std::fs::read_to_string(file.path()).expect("a seal")).collect::<Vec<_>>()
    };
    for run in ["a", "b", "c", "d", "e"] {
        let options = ["START.md", "--agent", "scripted", "--id", run, "--budget", "0.01"];
        test.run(&options).code(75);
    }
    assert_eq!(seals().len(), 5);
    assert!(seals().iter().all(|seal| seal.contains(r#"\"journal\":"#)), "{:#?}", seals());
    for run in ["a", "b", "c", "d", "e"] {
        test.raymond(&["run", run, "--budget", "5"]).ok();
    }
    assert_eq!(seals().len(), 5, "other runs can branch off those that are over");
    assert!(seals().iter().all(|seal| seal.contains(r#"\"journal\":"#)), "{:#?}", seals());
}

#[test]
fn forged_journal_blocks_resume_and_forged_snapshot_is_ignored() {
    let test = interrupted();
    let calls = test.calls().len();
    forge(&test, "START.md", "NEXT.md");
    test.resume(&[]).code(77).stderr_has("its journal was changed after it had stopped");

    let test = interrupted();
    let path = test.run_dir().join("state.json");
    let state = std::fs::read_to_string(&path).expect("a snapshot");
    let (body, _) = state.rsplit_once(",\n  \"checksum\"").expect("its checksum");
    let body = body
        .replace("NEXT.md", "START.md")
        .replace("\"status\": \"paused\"", "\"status\": \"running\"");
    let crc = crc32fast::hash(body.as_bytes());
    std::fs::write(&path, format!("{body},\n  \"checksum\": \"{crc:08x}\"\n}}")).expect("written");
    let outcome = test.resume(&[]);
    outcome.ok().ended("main", "ok").stderr_has("it contradicts the journal");
    assert_eq!(test.calls().len(), calls + 1, "NEXT is asked");
}

/// Returns a run whose raymond was killed in its first turn.
fn killed() -> Test {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    live.kill9();
    test.release("go");
    test
}

#[test]
fn killed_run_resumes_only_if_every_record_has_proof() {
    let test = killed();
    let stream = std::fs::read_to_string(test.run_dir().join("steps/main-1-0.jsonl"));
    test.resume(&[]).ok().ended("main", "ok");
    assert_eq!(test.calls_with("start").len(), 1, "the turn that ran on is believed: {stream:?}");

    let test = killed();
    let calls = test.calls().len();
    forge(&test, "START.md", "NEXT.md");
    let outcome = test.resume(&[]);
    outcome.code(77).stderr_has("record 1 of its journal has no proof that your raymond wrote it");
    assert_eq!(test.calls().len(), calls);
    test.resume(&["--trust"]).ok();
}

#[test]
fn trusted_run_resumes_again_without_trust() {
    let test = killed();
    forge(&test, ",\"proof\":", ",\"gone\":");
    test.resume(&[]).code(77);
    let mut live = test.spawn_resumed(&["--trust"]);
    live.wait_event("run_resumed", 1);
    live.kill9();
    test.resume(&[]).ok().ended("main", "ok");
}

#[test]
fn forged_result_is_not_reported() {
    let test = killed();
    test.resume(&[]).ok().ended("main", "ok");
    test.resume(&[]).ok().stdout_has("ok");
    forge(&test, "\"ok\"", "\"approved\"");
    let outcome = test.resume(&[]);
    outcome.code(77).stderr_has("was changed after it had stopped").stdout_lacks("approved");
    test.resume(&["--trust"]).ok().stdout_has("approved");
}

#[test]
fn journal_of_earlier_run_with_same_id_is_rejected() {
    let earlier = killed();
    let kept = std::fs::read_to_string(earlier.journal_file()).expect("a journal");
    std::fs::remove_dir_all(earlier.run_dir()).expect("removed");
    let mut live = earlier.spawn(&["START.md"]);
    live.wait_calls(2);
    live.kill9();
    std::fs::write(earlier.journal_file(), kept).expect("put back");
    for other in ["state.json", "acknowledged"] {
        let _ = std::fs::remove_file(earlier.run_dir().join(other));
    }
    earlier.resume(&[]).code(77);
}
