//! Telemetry: the data of a run at a collector, no telemetry unless asked for, and no failure of a run by a
//! collector.

mod collector;

use std::collections::BTreeSet;

use self::collector::{Collector, CollectorReply, ReceivedSpan};
use crate::support::{Test, pair, wait_until, when};

/// Returns a workflow in which START forks a worker that breaks the protocol, and continues in NEXT.
fn half_failing() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("WORKER.md", "work")
        .prompt("NEXT.md", "next")
        .rule(
            when("start")
                .reply(r#"<fork next="NEXT.md" item="hidden">WORKER.md</fork>"#)
                .cost(0.02),
        )
        .rule(when("work").reply("a hidden text without a tag").cost(0.01))
        .rule(when("next").reply("<result>hidden</result>").cost(0.01))
}

/// Sends spans at once, so that a test can wait for them.
fn at_once(test: Test) -> Test {
    test.env("OTEL_BSP_SCHEDULE_DELAY", "5")
}

/// Checks that there is one trace with one root, that all parents and links are in it, and that no id occurs
/// twice.
#[track_caller]
fn assert_whole(spans: &[ReceivedSpan]) {
    let ids: BTreeSet<&str> = spans.iter().map(|span| span.id.as_str()).collect();
    assert_eq!(ids.len(), spans.len(), "an id came twice: {spans:#?}");
    let traces: BTreeSet<&str> = spans.iter().map(|span| span.trace.as_str()).collect();
    assert_eq!(traces.len(), 1, "{spans:#?}");
    let roots: Vec<&ReceivedSpan> = spans.iter().filter(|span| span.parent.is_empty()).collect();
    assert!(matches!(roots[..], [root] if root.name == "invoke_workflow flow"), "{roots:#?}");
    for span in spans {
        assert!(span.parent.is_empty() || ids.contains(span.parent.as_str()), "{span:#?}");
        assert!(span.links.iter().all(|link| ids.contains(link.as_str())), "{span:#?}");
    }
}

#[test]
fn run_is_one_trace_of_agents_steps_and_turns() {
    let (test, collector) = (half_failing(), Collector::start(CollectorReply::Well));
    let outcome = test.run(&["START.md", "--otlp", &collector.url]);
    outcome.code(1);
    assert_whole(&collector.spans());
    let [run, lead, worker] = [
        ("invoke_workflow flow", "raymond.run.id", "t"),
        ("invoke_agent START", "gen_ai.agent.id", "main"),
        ("invoke_agent WORKER", "gen_ai.agent.id", "main.1"),
    ]
    .map(|(name, key, value)| collector.span(name, key, value));
    let [forking, working] = ["START", "WORKER"]
        .map(|state| collector.span(&format!("step {state}"), "raymond.step", "1"));
    let turn = collector.span("chat", "raymond.state", "WORKER.md");
    assert_eq!([&lead.parent, &worker.parent], [&run.id, &run.id]);
    assert_eq!(
        [&forking.parent, &working.parent, &turn.parent],
        [&lead.id, &worker.id, &working.id]
    );
    assert_eq!((&worker.links, lead.links.len()), (&vec![forking.id], 0));
    assert_eq!(
        [&run, &worker, &working, &turn].map(|span| span.get("error.type")),
        ["protocol"; 4]
    );
    assert!(run.failed && turn.failed && !lead.failed);
    assert_eq!(
        [&run, &lead, &worker].map(|span| span.get("raymond.cost_usd")),
        ["0.04", "0.03", "0.01"]
    );
    assert_eq!(turn.get("gen_ai.provider.name"), "anthropic");
    assert_eq!(turn.get("gen_ai.response.model"), "opus");
    assert_eq!(
        [&run, &lead, &turn].map(|span| span.get("gen_ai.usage.output_tokens")),
        ["300", "200", "100"]
    );
    let session = test.calls_with("work")[0].session.clone();
    assert_eq!(Some(turn.get("gen_ai.conversation.id")), session.as_deref());
    assert_eq!(run.resource.get("service.name").map(String::as_str), Some("raymond"));
    assert_eq!(run.resource.get("raymond.run.id").map(String::as_str), Some("t"));
    assert!(!format!("{:?}", collector.received()).contains("hidden"), "contents stay here");
}

#[test]
fn metrics_count_costs_steps_and_failures() {
    let (test, collector) = (half_failing(), Collector::start(CollectorReply::Well));
    test.run(&["START.md", "--otlp", &collector.url]).code(1);
    let cost = |state| collector.sum("raymond.cost", "raymond.state", state);
    assert_eq!(
        ["START.md", "WORKER.md", "NEXT.md"].map(cost),
        [Some(0.02), Some(0.01), Some(0.01)]
    );
    let steps = |tag| collector.sum("raymond.steps", "raymond.transition", tag);
    assert_eq!(["fork", "result", "goto"].map(steps), [Some(1.0), Some(1.0), None]);
    assert_eq!(collector.sum("raymond.failures", "error.type", "protocol"), Some(1.0));
    assert_eq!(collector.sum("raymond.agents.live", "", ""), Some(0.0));
    let tokens = |kind| collector.sum("gen_ai.client.token.usage", "gen_ai.token.type", kind);
    assert_eq!(["input", "output"].map(tokens), [Some(3000.0), Some(300.0)]);
    let duration = "gen_ai.client.operation.duration";
    assert!(collector.sum(duration, "gen_ai.provider.name", "anthropic").is_some());
}

#[test]
fn run_resumed_after_kill_continues_its_trace() {
    let collector = Collector::start(CollectorReply::Well);
    let test = at_once(pair()).env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url);
    test.script(&[
        when("start").reply(r#"<fork next="NEXT.md">WORKER.md</fork>"#).cost(0.02),
        when("work").reply("<result>worked</result>").hold_before("go"),
        when("next").reply("<result>led</result>").cost(0.01),
    ]);
    let mut live = test.spawn(&["START.md"]);
    let came = |name: &str| collector.spans().iter().any(|span| span.name == name);
    live.wait_for("the first agent's span", |_| came("invoke_agent START"));
    live.kill9();
    assert!(!came("invoke_workflow flow"), "it has not ended");
    test.release("go");
    test.resume(&[]).ok();
    assert_whole(&collector.spans());
    let worker = collector.span("invoke_agent WORKER", "gen_ai.agent.id", "main.1");
    let fork = collector.span("step START", "raymond.transition", "fork");
    assert_eq!(worker.links, [fork.id]);
    let run = collector.span("invoke_workflow flow", "raymond.run.id", "t");
    assert_eq!((run.get("raymond.cost_usd"), run.get("raymond.agents")), ("0.03", "2"));
    let instances = collector.spans();
    let instance = |span: &ReceivedSpan| span.resource.get("service.instance.id").cloned();
    let instances: BTreeSet<_> = instances.iter().map(instance).collect();
    assert_eq!(instances.len(), 2, "a process each: {instances:?}");
}

#[test]
fn missing_or_failing_collector_causes_only_two_warnings() {
    let (broken, gone) =
        (Collector::start(CollectorReply::Badly), Collector::start(CollectorReply::Well));
    let dead = gone.url.clone();
    drop(gone);
    for (url, why) in [(&broken.url, "answers 500"), (&dead, "refused")] {
        let test = pair();
        let outcome = test.run(&["START.md", "--otlp", url]);
        outcome.ok();
        let warnings: Vec<&str> =
            outcome.stderr.lines().filter(|line| line.contains("telemetry")).collect();
        let [first, last] = warnings[..] else { panic!("{outcome:#?}") };
        assert!(first.contains("does not arrive at") && first.contains(why), "{first}");
        assert!(last.contains("9 of 9 spans did not arrive"), "{last}");
        assert_eq!(test.status()["status"], "completed");
    }
}

#[test]
fn unresponsive_collector_does_not_block_the_run() {
    let (test, collector) = (pair(), Collector::start(CollectorReply::Never));
    let outcome = test.run(&["START.md", "--otlp", &collector.url]);
    outcome.ok();
    assert!(outcome.stderr.contains("9 of 9 spans did not arrive"), "{outcome:#?}");
}

#[test]
fn nothing_is_sent_when_otel_sdk_disabled_is_set() {
    let collector = Collector::start(CollectorReply::Well);
    let off = ("OTEL_SDK_DISABLED", "true");
    let test = pair().env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url).env(off.0, off.1);
    test.run(&["START.md"]).ok();
    let outcome = test.run(&["START.md", "--id", "u", "--otlp", &collector.url]);
    outcome.ok();
    assert!(outcome.stderr.contains("overrides --otlp"), "{outcome:#?}");
    assert!(collector.received().headers.is_empty());
}

#[test]
fn traces_endpoint_alone_exports_traces_without_metrics() {
    let collector = Collector::start(CollectorReply::Well);
    let traces = format!("{}/v1/traces", collector.url);
    let test = pair()
        .env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", traces)
        .env("OTEL_SERVICE_NAME", "mine")
        .env("OTEL_RESOURCE_ATTRIBUTES", "team=red,service.name=not-this");
    test.run(&["START.md"]).ok();
    assert!(collector.received().points.is_empty());
    let run = collector.span("invoke_workflow flow", "raymond.run.id", "t");
    let known = ["service.name", "team"].map(|key| run.resource.get(key).map(String::as_str));
    assert_eq!(known, [Some("mine"), Some("red")]);
}

#[test]
fn headers_are_sent_but_not_logged_or_stored() {
    let collector = Collector::start(CollectorReply::Well);
    let test =
        pair().env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=very%20secret").env("RAYMOND_LOG", "trace");
    let outcome = test.run(&["START.md", "--otlp", &collector.url]);
    outcome.ok();
    let sent = collector.received().headers.clone();
    assert!(!sent.is_empty());
    for headers in sent {
        assert_eq!(headers.get("x-key").and_then(|key| key.to_str().ok()), Some("very secret"));
    }
    let journal = std::fs::read_to_string(test.journal_file()).expect("a journal");
    for text in [&outcome.stdout, &outcome.stderr, &journal] {
        assert!(!text.contains("secret"), "{text}");
    }
    assert!(!journal.contains(&collector.url), "where it goes is said each time");
}

#[test]
fn credentials_in_otlp_address_become_basic_auth_header() {
    let (test, collector) = (pair(), Collector::start(CollectorReply::Well));
    let url = collector.url.replace("://", "://me:secret@");
    let outcome = test.run(&["START.md", "--otlp", &url]);
    outcome.ok();
    for headers in collector.received().headers.clone() {
        let given = headers.get("authorization").and_then(|value| value.to_str().ok());
        assert_eq!(given, Some("Basic bWU6c2VjcmV0"));
    }
    assert!(!collector.spans().is_empty());
    assert!(!outcome.stderr.contains("secret"), "{outcome:#?}");
}

#[test]
fn background_run_exports_spans() {
    let (test, collector) = (at_once(pair()), Collector::start(CollectorReply::Well));
    test.raymond(&["start", "START.md", "--id", "t", "--otlp", &collector.url]).ok();
    let came = || collector.spans().iter().any(|span| span.parent.is_empty());
    wait_until("the span of the run", came);
    assert_whole(&collector.spans());
}

#[test]
fn invalid_otlp_address_exits_64() {
    let outcome = pair().run(&["START.md", "--otlp", "localhost:4318"]);
    outcome.code(64);
    assert!(outcome.stderr.contains("http://"), "{outcome:#?}");
}
