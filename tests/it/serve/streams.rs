//! The streams: live and dead runs, readers that return, and a server that is started again.

use std::collections::BTreeMap;

use serde_json::Value;

use super::http::StreamEvent;
use crate::support::{Test, crowd, held, pair, when};

/// Returns the numbers of the records that events tell, in order.
fn records(events: &[StreamEvent]) -> Vec<u64> {
    let logs = events.iter().filter(|event| event.name == "log");
    let lines = logs.flat_map(|event| event.data.as_array().cloned().unwrap_or_default());
    lines.filter_map(|line| line["seq"].as_u64()).collect()
}

/// Returns the last position that events have.
fn position(events: &[StreamEvent]) -> String {
    events.iter().rev().find_map(|event| event.id.clone()).expect("a position")
}

#[test]
fn live_run_is_followed_to_its_end_without_a_gap() {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    let page = test.serve(&[]);
    let mut stream = page.client.stream("/api/runs/t/events", None);
    let mut events = stream.until("whole", |_| true);
    assert_eq!(events[0].name, "reset");
    assert!(events.iter().any(|event| event.name == "run" && event.data["status"] == "running"));
    test.release("go");
    events.extend(stream.until("run", |run| run["status"] == "completed"));
    live.wait().ok();
    let last = test.journal().len() as u64;
    while records(&events).last() != Some(&last) {
        events.extend(stream.next());
    }
    assert_eq!(records(&events), (1..=last).collect::<Vec<_>>());
}

#[test]
fn reader_that_returns_misses_nothing_even_at_another_server() {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    let page = test.serve(&[]);
    let mut stream = page.client.stream("/api/runs/t/events", None);
    let mut seen = stream.until("whole", |_| true);
    drop(stream);
    test.release("go");
    live.wait().ok();
    let last = test.journal().len() as u64;

    let at = position(&seen);
    let mut back = page.client.stream("/api/runs/t/events", Some(&at));
    let mut more = Vec::new();
    while records(&more).last() != Some(&last) {
        more.extend(back.next());
    }
    assert!(more.iter().all(|event| event.name != "reset"), "it goes on where it was: {more:?}");
    let both = [seen.clone(), more].concat();
    assert_eq!(records(&both), (1..=last).collect::<Vec<_>>());

    page.server.interrupt();
    page.server.wait().ok();
    let page = test.serve(&[]);
    let mut other = page.client.stream("/api/runs/t/events", Some(&at));
    seen.extend(other.until("whole", |_| true));
    assert_eq!(records(&seen), (1..=last).collect::<Vec<_>>());
}

#[test]
fn rows_of_all_agents_are_those_of_the_tree() {
    let test = crowd();
    let mut live = test.spawn(&["START.md", "--max-procs", "16"]);
    live.wait_crowd();
    let page = test.serve(&[]);
    let mut stream = page.client.stream("/api/runs/t/events", None);
    let mut kinds: BTreeMap<String, Value> = BTreeMap::new();
    let mut take = |events: Vec<StreamEvent>| -> BTreeMap<String, Value> {
        for event in events.iter().filter(|event| event.name == "agents") {
            for row in event.data.as_array().into_iter().flatten() {
                kinds.insert(row["id"].as_str().unwrap_or_default().to_owned(), row.clone());
            }
        }
        kinds.clone()
    };
    let mut rows = take(stream.until("whole", |_| true));
    while rows["main.7"]["kind"] != "running" || rows["main"]["kind"] != "running" {
        rows = take(vec![stream.next().expect("an event")]);
    }
    assert_eq!(rows.len(), 15);
    let kind = |agent: &str| rows[agent]["kind"].as_str().unwrap_or_default().to_owned();
    assert_eq!(
        (kind("main.3"), kind("main.5"), kind("main.1")),
        ("stuck".into(), "failed".into(), "finished".into())
    );
    test.release("go");
    let end = stream.until("run", |run| run["counts"]["running"] == 0 && run["held"] == false);
    assert_eq!(end.last().expect("an event").data["parked"], 1);
    live.wait().code(2);
}

#[test]
fn conversation_is_streamed_as_it_is_written() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(when("start").tool("Grep").hold_tool("go").reply("<result><img src=x></result>"));
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    let page = test.serve(&[]);
    let mut stream = page.client.stream("/api/runs/t/agents/main/events", None);
    let mut seen = Vec::new();
    let has = |seen: &[StreamEvent], text: &str| {
        seen.iter().any(|event| event.name == "entries" && event.data.to_string().contains(text))
    };
    while !has(&seen, "Grep") {
        seen.push(stream.next().expect("an event"));
    }
    assert!(has(&seen, "\"kind\":\"prompt\"") && !has(&seen, "<img src=x>"));
    test.release("go");
    while !has(&seen, "<img src=x>") {
        seen.push(stream.next().expect("an event"));
    }
    live.wait().ok();
}

#[test]
fn runs_come_change_and_go() {
    let test = pair();
    let page = test.serve(&[]);
    let mut stream = page.client.stream("/api/events", None);
    stream.until("whole", |_| true);
    test.run(&["START.md"]).ok();
    stream.until("run", |run| run["run"] == "t" && run["status"] == "completed");
    test.raymond(&["clean", "t", "--yes"]).ok();
    stream.until("gone", |run| run == "t");
}

#[test]
fn many_readers_share_one_stream() {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    let page = test.serve(&[]);
    let mut readers: Vec<_> =
        (0..20).map(|_| page.client.stream("/api/runs/t/events", None)).collect();
    let names: Vec<String> = readers
        .iter_mut()
        .map(|reader| {
            let at = position(&reader.until("whole", |_| true));
            at.rsplit('.').next().expect("a name").to_owned()
        })
        .collect();
    assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
    test.release("go");
    for reader in &mut readers {
        reader.until("run", |run| run["status"] == "completed");
    }
    live.wait().ok();
}
