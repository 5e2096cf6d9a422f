//! JSON: the keys in the output of each command, and the names of events, pauses, causes and waits.

use std::collections::BTreeSet;

use clap::CommandFactory;
use raymond::cli::args::Cli;
use raymond::domain::agent_status::WaitReason;
use raymond::domain::turn::FailureCause;
use raymond::plugin::notify::NotificationKind;
use raymond::plugin::schema::{ProtocolPart, schema};
use serde_json::Value;
use strum::VariantNames;

use super::page::{listed, row_of, rows, section, section_about, spans, words};
use super::{example_runs, reference};
use crate::support::Test;

fn page() -> String {
    reference("json.md")
}

/// Adds the keys of a document: its own, and those of the objects in its lists.
fn add_keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Array(list) => list.iter().for_each(|one| add_keys(one, found)),
        Value::Object(map) => {
            for (key, value) in map {
                found.insert(key.clone());
                if value.is_array() {
                    add_keys(value, found);
                }
            }
        }
        _ => {}
    }
}

/// Returns the keys that are always there: those without a `?` in the tables of a section.
fn required(section: &str) -> BTreeSet<String> {
    let mut required = BTreeSet::new();
    let mut is_of_keys = false;
    let rows = rows(section);
    for (index, row) in rows.iter().enumerate() {
        if rows.get(index + 1).is_some_and(|next| next[0].starts_with('-')) {
            is_of_keys = row[0].starts_with("key");
        }
        if !is_of_keys || row[0].contains(" or ") {
            continue;
        }
        let parts: Vec<&str> = row[0].split('`').collect();
        for (name, after) in parts.iter().skip(1).step_by(2).zip(parts.iter().skip(2).step_by(2)) {
            if !after.starts_with('?') {
                let own = name.trim_end_matches("[]").rsplit('.').next();
                required.insert(own.unwrap_or_default().to_owned());
            }
        }
    }
    required
}

/// Returns the arguments with which a command prints everything that it can as one document, in the order of
/// execution.
fn calls(command: &str) -> &'static [&'static [&'static str]] {
    match command {
        "list" => &[&["list"]],
        "pending" => &[&["pending"]],
        "recover" => &[&["recover"]],
        "status" => &[&["status", "t"], &["status", "p"]],
        "tree" => &[&["tree", "t"]],
        "show" => &[&["show", "t", "main"], &["show", "t", "main.1"], &["show", "t", "main.2"]],
        "costs" => &[&["costs", "t"]],
        "record" => &[&["record", "t", "-o", "recorded"]],
        "diff" => &[&["diff", "t", "p"]],
        "answer" => &[&["answer", "t"], &["answer", "t", "DONE.md=this"]],
        "rules" => &[&["rules", "t"]],
        "stop" => &[&["stop", "g"]],
        "tell" => &[&["tell", "p", "main", "x"]],
        "hold" => &[&["hold", "p", "main"]],
        "release" => &[&["release", "p", "main"]],
        "retry" => &[&["retry", "t", "--dry-run"]],
        "branch" => &[&["branch", "t", "--at", "1", "--dry-run"]],
        "rewind" => &[&["rewind", "t", "--to", "1", "--dry-run"]],
        "clean" => &[&["clean", "g", "t", "--dry-run"]],
        "signal" => &[&["signal", "l"], &["signal", "l", "--retract"]],
        "facts" => &[&["facts"]],
        "worktrees" => &[&["worktrees", "t"], &["worktrees", "t", "--prune"]],
        "trust" => &[&["trust", "graph"], &["trust", "--list"]],
        "check" => &[&["check", "wrong"]],
        "test" => &[&["test", "tested"], &["test", "tested", "--real"]],
        "workflow define" => &[&["workflow", "define", "talk.lisp"]],
        "workflow list" => &[&["workflow", "list"]],
        // Records are checked below; `start` prints an id, and `hosts` needs an engine.
        "run" | "resume" | "start" | "workflow start" | "log" | "workflow watch" | "hosts" => &[],
        other => panic!("`raymond {other} --json` is new: say here how it is run"),
    }
}

/// Returns the further sections about the output of a command.
fn further(command: &str) -> &'static [&'static str] {
    match command {
        "status" => &["Questions", "Parts of records"],
        "tree" | "list" | "recover" => &["Pauses"],
        "show" => &["Records"],
        "worktrees" | "stop" | "costs" | "workflow list" => &["`list`, `recover`"],
        _ => &[],
    }
}

/// Returns the commands that can print JSON, each under its whole name.
fn json_commands(of: &clap::Command, before: &str) -> Vec<String> {
    let own = of.get_subcommands().flat_map(|command| {
        let name = format!("{before}{}", command.get_name());
        let has_json = command.get_arguments().any(|one| one.get_long() == Some("json"));
        let below = json_commands(command, &format!("{name} "));
        below.into_iter().chain(has_json.then_some(name)).collect::<Vec<_>>()
    });
    own.collect()
}

fn printed(test: &Test, call: &[&str]) -> Value {
    let outcome = test.raymond(&[call, &["--json"]].concat());
    outcome.code_in(&[0, 1, 64, 65]);
    outcome.json()
}

#[test]
fn json_lists_the_keys_that_each_command_prints() {
    let (page, test) = (page(), example_runs::start());
    let mut wrong = Vec::new();
    for command in json_commands(&Cli::command(), "") {
        let Some(own) = section_about(&page, &command) else {
            let is_named = page.contains(&format!("`{command} --json`"));
            wrong.extend((!is_named).then(|| format!("{command} has no section")));
            continue;
        };
        let mut found = BTreeSet::new();
        for call in calls(&command) {
            add_keys(&printed(&test, call), &mut found);
        }
        if found.is_empty() {
            continue;
        }
        let further: Vec<String> =
            further(&command).iter().map(|heading| section(&page, heading)).collect();
        let known: BTreeSet<&str> =
            further.iter().chain([&own]).flat_map(|text| words(text)).collect();
        let unknown = found.iter().filter(|key| !known.contains(key.as_str()));
        wrong.extend(unknown.map(|key| format!("{command} prints `{key}`, which is not listed")));
        let missing = required(&own).into_iter().filter(|key| !found.contains(key));
        wrong.extend(missing.map(|key| format!("{command} does not print `{key}`")));
    }
    assert!(wrong.is_empty(), "json.md: {wrong:#?}");
}

#[test]
fn json_lists_the_keys_of_the_questions_that_end_a_run() {
    let test = example_runs::start();
    let again = test.resume(&["--json"]);
    let last = again.code(2).json_lines().pop().expect("a line");
    let own = section_about(&page(), "run").expect("a section");
    let page = page();
    let example = page.split("## `run`").nth(1).expect("a section");
    assert!(own.contains("the last line"), "{own}");
    for key in last.as_object().expect("an object").keys() {
        assert!(example.contains(&format!("\"{key}\"")), "json.md does not show {key} of {last}");
    }
    let questions = section(&page, "Questions");
    let (question, known) = (&last["questions"][0], words(&questions));
    for key in question.as_object().expect("an object").keys() {
        assert!(known.contains(key.as_str()), "json.md does not list {key} of {question}");
    }
}

/// Adds the keys of a shape of the schema, and of the shapes that it is made of.
fn add_properties(defs: &Value, shape: &Value, found: &mut BTreeSet<String>) {
    let own = shape["properties"].as_object();
    found.extend(own.into_iter().flat_map(|own| own.keys().cloned()));
    if let Some(name) = shape["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        add_properties(defs, &defs[name], found);
    }
    for key in ["allOf", "oneOf", "anyOf"] {
        for part in shape[key].as_array().into_iter().flatten() {
            add_properties(defs, part, found);
        }
    }
}

/// Returns the variants of a type of the protocol, each with its name under `tag`, and with its keys.
fn variants(of: &str, tag: &str) -> Vec<(String, BTreeSet<String>)> {
    let schema = schema(ProtocolPart::All);
    let variants = schema["$defs"][of]["oneOf"].as_array().expect("variants");
    let variant = |variant: &Value| {
        let name = variant["properties"][tag]["const"].as_str().expect("a name").to_owned();
        let mut keys = BTreeSet::new();
        add_properties(&schema["$defs"], variant, &mut keys);
        keys.remove(tag);
        (name, keys)
    };
    variants.iter().map(variant).collect()
}

#[test]
fn json_lists_each_event_with_its_keys() {
    let own = section(&page(), "Event names");
    let text: String = own.lines().filter(|line| !line.starts_with('|')).collect();
    let own = own.split("\n### ").next().expect("a section");
    let mut wrong = Vec::new();
    for (event, keys) in variants("Record", "event") {
        let Some(row) = row_of(own, &event) else {
            wrong.push(format!("{event} is not listed"));
            continue;
        };
        let told = row.join(" ");
        let (told, shared) = (words(&told), words(&text));
        let missing = keys
            .iter()
            .filter(|key| ![&told, &shared].iter().any(|all| all.contains(key.as_str())));
        wrong.extend(missing.map(|key| format!("{event} has the key {key}")));
    }
    assert!(wrong.is_empty(), "json.md: {wrong:#?}");
}

#[test]
fn plugins_lists_each_event() {
    let events = section(&reference("plugins.md"), "Events");
    let known = words(&events);
    let missing: Vec<String> = variants("Record", "event")
        .into_iter()
        .map(|(event, _)| event)
        .filter(|event| !known.contains(event.as_str()))
        .collect();
    assert!(missing.is_empty(), "plugins.md does not list {missing:?}");
}

/// Returns the row whose first cell names this, perhaps among others.
fn row_with(text: &str, name: &str) -> Option<Vec<String>> {
    rows(text).into_iter().find(|row| spans(&row[0]).any(|span| span == name))
}

#[test]
fn json_and_exit_codes_list_each_pause() {
    let own = section(&page(), "Pauses");
    let codes = section(&reference("exit-codes.md"), "Which pause gives which code");
    let mut wrong = Vec::new();
    for (reason, keys) in variants("PauseReason", "reason") {
        match row_with(&own, &reason) {
            Some(row) => {
                let told = words(&row[1]);
                let missing = keys.iter().filter(|key| !told.contains(key.as_str()));
                wrong.extend(missing.map(|key| format!("json.md: {reason} has the key {key}")));
            }
            None => wrong.push(format!("json.md does not list {reason}")),
        }
        if row_with(&codes, &reason).is_none() {
            wrong.push(format!("exit-codes.md does not list {reason}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn json_lists_each_cause_wait_and_notification() {
    use strum::VariantArray;

    let page = page();
    let name = |cause: &FailureCause| {
        serde_json::to_value(cause).expect("JSON").as_str().expect("a name").to_owned()
    };
    let causes: Vec<String> = FailureCause::VARIANTS.iter().map(name).collect();
    let listed_in = |heading: &str| listed(&section(&page, heading));
    let told = section_about(&page, "--on-event").expect("a section");
    let (causes_listed, waits_listed) = (listed_in("Causes"), listed_in("`tree`"));
    let told = words(&told);
    let causes = causes.iter().map(String::as_str).filter(|one| !causes_listed.contains(*one));
    let waits = WaitReason::NAMES.iter().copied().filter(|one| !waits_listed.contains(*one));
    let kinds = NotificationKind::VARIANTS.iter().copied().filter(|one| !told.contains(one));
    let missing: Vec<&str> = causes.chain(waits).chain(kinds).collect();
    assert!(missing.is_empty(), "json.md does not list {missing:?}");
}
