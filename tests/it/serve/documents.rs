//! The documents are those of the commands.

use serde_json::{Value, json};

use crate::support::{Test, always, pair, when};

/// Returns a run that asks a person.
fn asking() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next {{answer}}")
        .rule(when("start").reply(r#"<ask next="NEXT.md">Which colour?</ask>"#))
        .rule(always().reply("<result>ok</result>"))
}

fn without(mut value: Value, keys: &[&str]) -> Value {
    for key in keys {
        value.as_object_mut().expect("an object").remove(*key);
    }
    value
}

#[test]
fn documents_have_what_the_commands_print() {
    let test = pair();
    test.run(&["START.md"]).ok();
    let page = test.serve(&[]);
    let client = &page.client;

    let list = test.raymond(&["list", "--json"]).ok().json();
    let mut runs = client.document("/api/runs");
    let own = ["questions_open", "questions", "parked", "budget_usd", "reason", "waits"];
    assert_eq!(json!([without(runs["runs"][0].take(), &own)]), list);
    assert_eq!(runs["more"], 0);

    let status = test.status();
    let run = client.document("/api/runs/t");
    assert_eq!(run["finished_count"], 2);
    let own = ["agents_count", "finished_count"];
    assert_eq!(without(run, &own), without(status, &["agents", "finished"]));

    let costs = test.raymond(&["costs", "t", "--json"]).ok().json();
    assert_eq!(without(client.document("/api/runs/t/costs"), &["more_agents"]), costs);

    let log = test.raymond(&["log", "t", "--json"]).ok().json_lines();
    let told = client.document("/api/runs/t/log");
    let records: Vec<&Value> =
        told["records"].as_array().expect("records").iter().map(|one| &one["record"]).collect();
    assert_eq!(records, log.iter().collect::<Vec<_>>());

    let shown = test.raymond(&["show", "t", "main.1", "--json"]).ok().json();
    let agent = client.document("/api/runs/t/agents/main.1");
    assert_eq!((&agent["result"], &agent["cost_usd"]), (&shown["result"], &shown["cost_usd"]));
    assert_eq!(agent["steps"][0]["turns"][0]["prompt"], Value::Null, "texts are asked for apart");
    let turn = client.document("/api/runs/t/agents/main.1/turns/1/0");
    assert_eq!(turn["entries"][0], json!({ "kind": "prompt", "text": "work" }));
    assert!(turn["entries"].to_string().contains("worked"), "{turn}");
}

#[test]
fn log_is_served_in_pages_and_filtered() {
    let test = pair();
    test.run(&["START.md"]).ok();
    let page = test.serve(&[]);
    let seqs = |query: &str| -> Vec<u64> {
        let told = page.client.document(&format!("/api/runs/t/log?{query}"));
        let records = told["records"].as_array().expect("records").clone();
        records.iter().filter_map(|one| one["line"]["seq"].as_u64()).collect()
    };
    let all = seqs("limit=500");
    let last = *all.last().expect("a record");
    assert_eq!(seqs("limit=2"), [last - 1, last]);
    assert_eq!(seqs(&format!("limit=2&before={last}")), [last - 2, last - 1]);
    assert_eq!(seqs("limit=2&after=1"), [2, 3]);
    assert_eq!(
        seqs("agent=main.1").len(),
        test.events("step_finished").iter().filter(|one| one["agent"] == "main.1").count()
    );
    assert!(seqs("text=WORKED").len() == 1 && seqs("text=nothing%20at%20all").is_empty());
}

#[test]
fn wrong_parameters_are_refused() {
    let test = pair();
    test.run(&["START.md"]).ok();
    let page = test.serve(&[]);
    let number = |name: &str| format!("the parameter `{name}` has to be a number, 0 or more");
    let agent =
        |name: &str| format!("the parameter `{name}` has to be the id of an agent, such as main.1");
    let encoded = |name: &str| format!("the parameter `{name}` has to be percent-encoded UTF-8");
    let position = "the parameter `position` has to be the id of an event".to_owned();
    for (path, why) in [
        ("runs?offset=x", number("offset")),
        ("runs?limit", number("limit")),
        ("runs/t/agents?limit=-1", number("limit")),
        ("runs/t/agents?after=MAIN", agent("after")),
        ("runs/t/log?before=", number("before")),
        ("runs/t/log?limit=2&after=main", number("after")),
        ("runs/t/log?agent=..", agent("agent")),
        ("runs/t/log?text=100%", encoded("text")),
        ("runs/t/agents/main/turns/1/0?from=1.5", number("from")),
        ("events?position=7", position.clone()),
        ("runs/t/events?position=a.b.c", position.clone()),
        ("runs/t/agents/main/events?position=%ff", encoded("position")),
        ("runs?limt=1", "unknown parameter `limt`; this address takes offset, limit".to_owned()),
        ("runs/t?limit=1", "unknown parameter `limit`; this address takes none".to_owned()),
        ("runs?limit=1&limit=x", "the parameter `limit` is there twice".to_owned()),
    ] {
        let reply = page.client.get(&format!("/api/{path}"));
        assert_eq!((reply.status, reply.json()), (400, json!({ "error": why })), "{path}");
    }
    // A browser may send the id of another server's event, and gets everything.
    page.client.stream("/api/runs/t/events", Some("other")).until("whole", |_| true);
}

#[test]
fn agents_timeline_costs_and_graph_are_served() {
    let test = pair();
    test.run(&["START.md"]).ok();
    let page = test.serve(&[]);
    let client = &page.client;
    let first = client.document("/api/runs/t/agents?limit=1");
    assert_eq!((&first["agents"][0]["id"], &first["more"]), (&json!("main"), &json!(1)));
    let next = client.document("/api/runs/t/agents?after=main");
    assert_eq!(next["agents"][0]["kind"], "finished");
    assert_eq!(next["agents"][0]["text"], "worked");
    let times = client.document("/api/runs/t/timeline");
    assert_eq!(times["turns"].as_array().map(Vec::len), Some(3));
    let costs = client.document("/api/runs/t/cost-times");
    let sum: f64 = costs["states"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|one| one["usd"].as_array().cloned().unwrap_or_default())
        .filter_map(|usd| usd.as_f64())
        .sum();
    assert!((sum - 0.04).abs() < 1e-9, "{costs}");
    let graph = client.document("/api/runs/t/graph");
    let ids: Vec<&str> = graph["nodes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["id"].as_str())
        .collect();
    assert!(ids.contains(&"START.md"), "{graph}");
}

#[test]
fn open_questions_of_all_runs_are_served() {
    let test = asking();
    test.run(&["START.md"]).code(2);
    let page = test.serve(&[]);
    let told = page.client.document("/api/questions");
    let asked = test.raymond(&["answer", "t", "--json"]).ok().json();
    assert_eq!(told[0]["questions"], asked["questions"]);
    assert_eq!(told[0]["run"], "t");
}
