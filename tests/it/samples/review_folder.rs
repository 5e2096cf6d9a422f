//! The review of a folder in all its ways: a list in a file, a reviewer that fails, one file too many, and an
//! empty list.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;

use super::{
    SampleDirectories, SampleWorkflow, code, count, names, read, records, text, told, transitions,
};

pub(super) const REVIEW_FOLDER: SampleWorkflow = SampleWorkflow {
    name: "review-folder",
    input: Some("only what is in src"),
    steps: &[
        r#"main START.md: <fork next="MERGE.md" each="["src/main.rs", "src/args.rs", "src/store.rs"]" as="file">REVIEW.md</fork>"#,
        "main MERGE.md: <result>1 finding; the worst: three files do not say which file they could not read</result>",
        "main.1 REVIEW.md: <result>12: src/main.rs does not say which file it could not read</result>",
        "main.2 REVIEW.md: <result>12: src/args.rs does not say which file it could not read</result>",
        "main.3 REVIEW.md: <result>12: src/store.rs does not say which file it could not read</result>",
    ],
    cost_usd: 0.08,
    reminders: 0,
};

/// The reply of a real agent that has written the list.
const SEND: &str =
    r#"<fork next="MERGE.md" each=".raymond/tmp/review-files.json" as="file">REVIEW.md</fork>"#;

/// Copies the sample with another script.
fn with(place: &SampleDirectories, replies: &Value) -> PathBuf {
    let folder = place.work.path().join("review-folder");
    fs::create_dir(&folder).expect("made");
    for name in names(&REVIEW_FOLDER.path()).into_iter().filter(|name| name != "tests") {
        fs::write(folder.join(&name), read(&REVIEW_FOLDER.path().join(&name))).expect("copied");
    }
    fs::write(folder.join("replies.yaml"), replies.to_string()).expect("written");
    folder
}

/// Runs the sample in a directory that has such a list.
fn run(place: &SampleDirectories, replies: &Value, list: &str) -> Output {
    let folder = with(place, replies);
    let scratch = place.work.path().join(".raymond/tmp");
    fs::create_dir_all(&scratch).expect("made");
    fs::write(scratch.join("review-files.json"), list).expect("written");
    let run = ["run", text(&folder), "--agent", "scripted", "--cwd", text(place.work.path())];
    place.raymond(&[&run[..], &["--stagger", "0s", "--json"]].concat())
}

/// Returns the last transition of an agent.
fn result(out: &Output, agent: &str) -> String {
    let steps = transitions(&records(out));
    steps[agent].last().cloned().unwrap_or_default()
}

#[test]
fn list_in_a_file_is_reviewed_and_a_failed_reviewer_is_in_results() {
    let place = SampleDirectories::new();
    let reply = "<{{ends_with}}>nothing found</{{ends_with}}>";
    let replies = serde_json::json!({
        "START.md": [SEND],
        "REVIEW.md": [{ "reply": reply, "repeat": true }],
        "MERGE.md": ["<result>{{results}}</result>"],
    });
    let list = r#"[{ "ends_with": "result" }, { "ends_with": "a word that is no tag" }]"#;
    let out = run(&place, &replies, list);
    assert_eq!(code(&out), 0, "a failure that is kept is none of the run's: {}", told(&out));
    let merged = result(&out, "main");
    let list = merged.trim_start_matches("MERGE.md: <result>").trim_end_matches("</result>");
    let merged: Value = serde_json::from_str(list).expect("a list");
    assert_eq!(merged[0]["id"], "main.1");
    assert_eq!(merged[0]["result"], "nothing found");
    assert_eq!((&merged[1]["id"], &merged[1]["status"]), (&"main.2".into(), &"error".into()));
    let error = merged[1]["error"].as_str().expect("what happened");
    assert!(error.contains("no transition tag"), "{merged}");
}

#[test]
fn too_many_files_are_rejected_and_repaired_by_a_reminder() {
    let place = SampleDirectories::new();
    let replies = serde_json::json!({
        "START.md": [SEND, "<result>nothing to review: too many files</result>"],
    });
    let many: Vec<String> = (0..51).map(|number| format!("{number}.rs")).collect();
    let list = serde_json::to_string(&many).expect("JSON");
    let out = run(&place, &replies, &list);
    assert_eq!(code(&out), 0, "{}", told(&out));
    assert_eq!(count(&records(&out), "turn_rejected"), 1);
    assert!(told(&out).contains("one reply may fork at most 50"), "{}", told(&out));
    assert!(result(&out, "main").contains("nothing to review"));
}

#[test]
fn missing_list_is_rejected_and_repaired_by_a_reminder() {
    let place = SampleDirectories::new();
    let one = SEND.replace(".raymond/tmp/review-files.json", "[&quot;a.rs&quot;]");
    let replies = serde_json::json!({
        "START.md": [SEND.replace("files.json", "file.json"), one],
        "REVIEW.md": ["<result>nothing found</result>"],
        "MERGE.md": ["<result>0 findings</result>"],
    });
    let out = run(&place, &replies, "[]");
    assert_eq!(code(&out), 0, "{}", told(&out));
    assert_eq!(count(&records(&out), "turn_rejected"), 1);
    assert_eq!(result(&out, "main.1"), "REVIEW.md: <result>nothing found</result>");
}
