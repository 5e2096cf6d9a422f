//! Cassettes that cannot be made, or not be replayed.

use serde_json::{Value, json};

use super::{cassette, record, replay};
use crate::support::{Test, when};

fn recorded() -> Test {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply("<goto>NEXT.md</goto>"))
        .rule(when("next").reply("<result>ok</result>"));
    test.run(&["START.md"]).ok();
    record(&test, &[]).ok();
    test
}

#[test]
fn directory_that_exists_is_replaced_only_with_force() {
    let test = recorded();
    record(&test, &[]).code(74).stderr_has("--force");
    record(&test, &["--force"]).ok();
    std::fs::remove_dir_all(test.run_dir().join("steps")).expect("removed");
    record(&test, &["--force"])
        .code(65)
        .stderr_has("the streams of all turns of the run t are missing");
    replay(&test, "u", &[]).ok();
    let mut names: Vec<_> = std::fs::read_dir(test.root())
        .expect("read")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["cassette", "fake", "flow", "home", "out", "ray"], "nothing half made");
}

#[test]
fn turn_whose_stream_is_missing_is_recorded_without_texts() {
    let test = recorded();
    let steps = test.run_dir().join("steps");
    let turn = ["main-2-0.turn", "main-2-0.jsonl"].map(|name| steps.join(name));
    for path in &turn {
        let _ = std::fs::remove_file(path);
    }
    record(&test, &["--force"])
        .ok()
        .stdout_has("1 turn has no texts, because its stream is missing");
    let turns = super::turns(&test);
    assert_eq!((&turns[1]["stream_missing"], &turns[1]["answer"]), (&json!(true), &Value::Null));
    replay(&test, "u", &[]).code(1).stderr_has("the answer of this turn is not recorded");
}

#[test]
fn unusable_cassette_is_an_error_before_anything_starts() {
    let test = recorded();
    let refused = |why: &str| {
        replay(&test, "u", &[]).code(65).stderr_has(why);
        assert!(!test.dir().join("runs/u").exists(), "{why}");
    };
    let header = cassette(&test).join("cassette.json");
    let turns = cassette(&test).join("turns.jsonl");
    let kept = std::fs::read_to_string(&header).expect("there");
    let with = |change: &dyn Fn(&mut Value)| {
        let mut value: Value = serde_json::from_str(&kept).expect("JSON");
        change(&mut value);
        std::fs::write(&header, value.to_string()).expect("written");
    };
    with(&|value| value["format"] = json!(9));
    refused("has format 9, and this raymond reads up to 1");
    with(&|value| value["workflow"]["entry"] = json!("OTHER.md"));
    refused("it is a recording of another workflow");
    with(&|value| value["turns"] = json!(3));
    refused("turns.jsonl has 2 turns");
    with(&|_| ());
    let lines = std::fs::read_to_string(&turns).expect("there");
    std::fs::write(&turns, lines.replacen('{', "[", 1)).expect("written");
    refused("turns.jsonl:1 is damaged");
    std::fs::write(&turns, lines.replace("NEXT.md\",\"visit", "GONE.md\",\"visit"))
        .expect("written");
    refused("none of its states is here, such as GONE.md");
    std::fs::remove_file(&turns).expect("removed");
    refused("`raymond record RUN -o DIR` creates a cassette");
    std::fs::remove_dir_all(cassette(&test)).expect("removed");
    refused("cassette.json: cannot read");
    test.run(&["START.md", "--agent", "replay"])
        .code(64)
        .stderr_has("write claude, scripted or replay:DIR");
}

#[test]
fn changed_copy_of_the_cassette_is_not_replayed() {
    let test = recorded();
    let agent = format!("replay:{}", cassette(&test).display());
    let killed = test.shell(&format!(
        "RAYMOND_FAILPOINT=append.after:1 exec \"$0\" run START.md --id u --agent {agent}"
    ));
    assert!(killed.wait().killed());
    let copy = test.dir().join("runs/u/cassette/turns.jsonl");
    let content = std::fs::read_to_string(&copy).expect("a copy");
    std::fs::write(&copy, content.replace("<result>ok", "<result>forged")).expect("written");
    test.raymond(&["resume", "u"])
        .code(65)
        .stderr_has("the run's copy of its cassette was changed");
}
