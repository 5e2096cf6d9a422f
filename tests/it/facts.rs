//! `raymond signal` and `raymond facts`: an asserted fact holds for all runs, also if no raymond is running.

use std::path::{Path, PathBuf};

use raymond::store::layout::RunsRoot;
use raymond::store::user_state::UserState;
use serde_json::{Value, json};

use crate::support::{Test, always};

fn file(test: &Test, name: &str) -> PathBuf {
    test.dir().join("dataspace").join(name)
}

/// Returns the facts that hold, as `label key=value`.
fn holds(test: &Test) -> Vec<String> {
    let shown = |fact: Value| {
        let part = |name: &str| fact[name].as_str().expect("a text").to_owned();
        format!("{} {}={}", part("label"), part("key"), part("value"))
    };
    test.raymond(&["facts", "--json"]).ok().json_items().into_iter().map(shown).collect()
}

#[test]
fn fact_holds_until_it_is_retracted() {
    let test = Test::new();
    let signal = |arguments: &[&str]| test.raymond(&[&["signal"], arguments].concat());
    test.raymond(&["facts"]).ok().stderr_has("no facts; assert one: raymond signal");
    assert_eq!(test.raymond(&["facts", "--json"]).ok().json(), json!([]));
    signal(&["plan/ready", "--retract"]).ok().stdout_has("plan/ready is not asserted");
    assert!(!test.dir().exists(), "who only looks makes nothing");
    let feature = ["plan/ready", "--key", "feature-42"];
    signal(&feature).ok().stdout_has("plan/ready feature-42 is asserted (1)\n");
    signal(&feature).ok().stdout_has("plan/ready feature-42 is asserted already (1)\n");
    assert!(file(&test, "facts").is_file());
    signal(&[&feature[..], &["--value", "- two\nlines"]].concat()).ok().stdout_has("asserted (2)");
    signal(&["other"]).ok().stdout_has("other is asserted (3)\n");
    assert_eq!(holds(&test), ["other =", "plan/ready feature-42=- two\nlines"]);
    let shown = test.raymond(&["facts"]);
    shown.ok().stdout_has("label       key         value        source  seq\n");
    shown.stdout_has("plan/ready  feature-42  - two lines  signal  2\n");
    test.raymond(&["facts", "--label", "other"]).ok().stdout_lacks("plan/ready");
    test.raymond(&["facts", "--label", "none"]).ok().stderr_has("no facts of the label none");
    signal(&[&feature[..], &["--retract"]].concat()).ok().stdout_has("feature-42 is retracted\n");
    assert_eq!(holds(&test), ["other ="]);
}

#[test]
fn signal_json_reports_change_and_fact() {
    let test = Test::new();
    let said = test.raymond(&["signal", "a", "--value", "1", "--json"]).ok().json();
    let at = said["fact"]["at"].clone();
    assert!(at.as_str().is_some_and(|at| at.ends_with('Z')), "{said}");
    let fact =
        json!({ "label": "a", "key": "", "value": "1", "seq": 1, "source": "signal", "at": at });
    assert_eq!(
        said,
        json!({ "label": "a", "key": "", "changed": true, "fact": fact, "replaced": null,
            "hint": "nobody waits for a: no unfinished run and no defined program looks at any fact" })
    );
    let said = test.raymond(&["signal", "a", "--value", "1", "--json"]).ok().json();
    assert_eq!((&said["changed"], &said["fact"]), (&json!(false), &fact));
    assert_eq!(test.raymond(&["facts", "--json"]).ok().json(), json!([fact]));
    let said = test.raymond(&["signal", "a", "--retract", "--json"]).ok().json();
    assert_eq!(
        said,
        json!({ "label": "a", "key": "", "changed": true, "fact": null, "replaced": null, "hint": null })
    );
    test.run_without_reader(&["signal", "a"]).ok();
    test.run_without_reader(&["facts"]).ok();
    assert_eq!(holds(&test), ["a ="]);
}

#[test]
fn dash_as_value_reads_stdin() {
    let test = Test::new();
    test.run_in_namespaces("printf 'a\\nb\\n\\n' | \"$0\" signal a --value -").ok();
    assert_eq!(holds(&test), ["a =a\nb"]);
    test.run_in_namespaces("head -c 1048577 /dev/zero | \"$0\" signal a --value -")
        .code(64)
        .stderr_has("the value of a has 1048577 bytes, the maximum is 1048576");
    test.run_in_namespaces("printf '\\377' | \"$0\" signal a --value -")
        .code(74)
        .stderr_has("stdin: cannot read the value from");
}

#[test]
fn agent_signal_records_run_and_agent_as_source() {
    let test = Test::new().env("RAYMOND_RUN", "feature-42").env("RAYMOND_AGENT", "main.1");
    test.raymond(&["signal", "plan/ready"]).ok();
    let facts = test.raymond(&["facts", "--json"]).ok().json();
    assert_eq!(facts[0]["source"], "feature-42/main.1");
    let elsewhere = test.root().join("elsewhere");
    let dir = elsewhere.to_str().expect("a path");
    test.raymond(&["signal", "plan/ready", "--dir", dir]).ok();
    assert!(elsewhere.join("dataspace/facts").is_file());
}

#[test]
fn invalid_fact_is_refused() {
    let test = Test::new();
    let long = "k".repeat(201);
    let table: [(&[&str], &str); 6] = [
        (&[""], "`` is not a label: write a word without white space, such as plan/ready"),
        (&["a b"], "`a b` is not a label"),
        (&["a\n"], "is not a label"),
        (&["a", "--key", &long], "its file would have a name of 201 bytes, the maximum is 200"),
        (&["a", "--value", "1", "--retract"], "cannot be used with"),
        (&[], "LABEL"),
    ];
    for (arguments, message) in table {
        let all = [&["signal"], arguments].concat();
        test.raymond(&all).code(64).stderr_has(message);
    }
    assert!(!test.dir().exists());
    test.raymond(&["signl"]).code(64).stderr_has("did you mean the command `raymond signal`?");
    test.raymond(&["facts", "nobody"]).code(64).stderr_has("no run nobody");
}

#[test]
fn run_without_program_reports_no_facts() {
    let test = Test::new().prompt("START.md", "start").rule(always().reply("<result>x</result>"));
    test.run(&["START.md"]).ok();
    test.raymond(&["signal", "a"]).ok();
    test.raymond(&["facts", "t"])
        .ok()
        .stderr_has("t has seen no current facts; a live run sees the facts that its program");
    assert_eq!(test.raymond(&["facts", "t", "--json"]).ok().json(), json!([]));
}

#[test]
fn damaged_change_is_reported_until_its_fact_is_asserted_again() {
    let test = Test::new();
    test.raymond(&["signal", "a"]).ok();
    test.raymond(&["signal", "b"]).ok();
    let stored = std::fs::read_to_string(file(&test, "facts")).expect("read");
    let damaged = stored.replacen("\"source\":\"signal\"", "\"source\":\"nobody\"", 1);
    std::fs::write(file(&test, "facts"), damaged).expect("damaged");
    let shown = test.raymond(&["facts"]);
    shown.ok().stdout_has("b ").stdout_lacks("nobody").stderr_has(
        "dataspace/facts:2: this is not a fact (its checksum is wrong), so it is ignored",
    );
    test.raymond(&["signal", "a"]).ok().stdout_has("a is asserted (3)");
    test.raymond(&["facts"]).ok().stderr_lacks("not a fact");
}

#[test]
fn signal_into_unusable_directory_is_error() {
    let test = Test::new();
    std::fs::write(test.dir(), "a file").expect("in its way");
    test.raymond(&["signal", "a"]).code(74).stderr_has("choose another directory");
}

#[test]
fn signal_repeated_after_kill_holds_once() {
    for point in [
        "replace.written",
        "migrate.noted",
        "migrate.begun",
        "dataspace.written",
        "dataspace.noted",
        "dataspace.applied",
    ] {
        let test = Test::new().env("RAYMOND_FAILPOINT", format!("{point}:1"));
        let killed = test.raymond(&["signal", "a"]);
        killed.assert(killed.killed(), point);
        let test = test.env("RAYMOND_FAILPOINT", "none:1");
        test.raymond(&["signal", "a"]).ok();
        assert_eq!(holds(&test), ["a ="], "{point}");
    }
}

/// Puts the facts of the released store into a directory, with proofs of the user's key.
fn restore(test: &Test) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/facts-1/dataspace");
    std::fs::create_dir_all(test.dir()).expect("made");
    let user = UserState::new(test.root().join("home/.local/state/raymond"));
    let space = RunsRoot::new(test.dir()).dataspace();
    let key = user.key().expect("a key").derive(&space.display().to_string());
    for label in std::fs::read_dir(from.join("facts")).expect("facts").flatten() {
        let folder = file(test, "facts").join(label.file_name());
        std::fs::create_dir_all(&folder).expect("made");
        for fact in std::fs::read_dir(label.path()).expect("facts").flatten() {
            let stored = std::fs::read_to_string(fact.path()).expect("a fact");
            let proof = key.proof("fact", stored.as_bytes());
            let body = stored.strip_suffix('}').expect("a fact");
            let proven = format!("{body},\"proof\":\"{proof}\"}}");
            std::fs::write(folder.join(fact.file_name()), proven).expect("written");
        }
    }
    std::fs::copy(from.join("changes"), file(test, "changes")).expect("copied");
}

#[test]
fn facts_of_a_released_store_are_taken_over_also_after_a_kill() {
    let kills = [
        "none:1",
        "replace.before:1",
        "replace.after:1",
        "migrate.noted:1",
        "migrate.aside:1",
        "replace.written:2",
        "migrate.begun:1",
        "migrate.removed:1",
        "replace.before:3",
        "replace.after:3",
        "dataspace.written:1",
    ];
    for point in kills {
        let test = Test::new().env("RAYMOND_FAILPOINT", point);
        restore(&test);
        let first = test.raymond(&["signal", "new"]);
        first.assert(first.killed() == (point != "none:1"), point);
        let test = test.env("RAYMOND_FAILPOINT", "none:1");
        let held = holds(&test);
        let is_new = held.iter().any(|held| held == "new =");
        assert_eq!(held.len(), if is_new { 7 } else { 6 }, "{point}: {held:?}");
        test.raymond(&["signal", "new"]).ok();
        let held = holds(&test);
        assert_eq!((held.len(), &*held[1]), (7, "job =two"), "{point}: {held:?}");
        test.raymond(&["signal", "other"]).ok().stdout_has("other is asserted (1");
        let files = std::fs::read_dir(file(&test, "")).expect("listed").flatten();
        let mut files: Vec<_> = files.map(|entry| entry.file_name()).collect();
        files.sort();
        assert_eq!(files, ["changes", "engine.json", "facts", "lock"], "{point}");
    }
}
