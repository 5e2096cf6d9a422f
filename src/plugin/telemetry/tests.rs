//! Records go in, spans come out: no network, no clock.

mod judged;

use opentelemetry::trace::{SpanId, SpanKind, Status};
use opentelemetry_sdk::trace::SpanData;

use super::trace::RunTrace;
use crate::domain::event::{Event, Record, StepFinished, TurnRejected};
use crate::domain::money::Usd;
use crate::domain::refusal::{ToolRefusal, ToolRefusals};
use crate::domain::tests::scene::{Scene, agent_id, first, goto, result, tag};
use crate::domain::time::Timestamp;
use crate::domain::transition::{TagName, Transition};
use crate::domain::turn::FailureCause;
use crate::domain::turn::TurnCost;
use crate::domain::usage::{ModelUse, UsageByModel};

/// A scene whose records are told to a trace, and kept.
struct TracedStory {
    scene: Scene,
    trace: RunTrace,
    records: Vec<Record>,
    spans: Vec<SpanData>,
}

impl TracedStory {
    fn begin() -> Self {
        let mut trace = RunTrace::default();
        assert_eq!(trace.see(&first()), []);
        Self { scene: Scene::begin(), trace, records: vec![first()], spans: Vec::new() }
    }

    fn happens(&mut self, event: Event) -> &mut Self {
        let seq = self.scene.next();
        let record = Record {
            kept_session: None,
            seq,
            at: Timestamp(seq * 1000),
            folder: None,
            snapshot: None,
            placed: Vec::new(),
            event,
        };
        self.spans.extend(self.trace.see(&record));
        self.scene.happens(record.event.clone());
        self.records.push(record);
        self
    }

    /// Takes a step of half a second.
    fn take(&mut self, agent: &str, transition: Transition) -> &mut Self {
        let step = self.scene.step(agent, transition);
        let cost = TurnCost { duration_ms: Some(500), usage: used(), ..step.cost };
        self.happens(Event::StepFinished(StepFinished { cost, ..step }))
    }

    /// Returns the names of the spans, each with its start and end, in milliseconds.
    fn names(&self) -> Vec<String> {
        let shown = |span: &SpanData| {
            let [from, to] = [span.start_time, span.end_time].map(millis);
            format!("{} {from}..{to}", span.name)
        };
        self.spans.iter().map(shown).collect()
    }

    #[track_caller]
    fn span(&self, name: &str) -> &SpanData {
        let mut named = self.spans.iter().filter(|span| span.name == name);
        let span = named.next().unwrap_or_else(|| panic!("no {name:?} in {:?}", self.names()));
        assert!(named.next().is_none(), "{name:?} twice in {:?}", self.names());
        span
    }
}

fn millis(time: std::time::SystemTime) -> u128 {
    time.duration_since(std::time::SystemTime::UNIX_EPOCH).expect("after 1970").as_millis()
}

/// Returns the usage of a step: its cost is a cent, as in every scene.
pub(super) fn used() -> UsageByModel {
    let cost_usd = Usd::from_dollars(0.01);
    let used = ModelUse {
        input_tokens: 3,
        output_tokens: 7,
        cache_read_tokens: 20,
        cache_write_tokens: 100,
        cost_usd,
    };
    let chores = ModelUse { output_tokens: 900, cost_usd: Usd::ZERO, ..ModelUse::default() };
    UsageByModel::from_iter([("big".to_owned(), used), ("small".to_owned(), chores)])
}

fn attribute(span: &SpanData, key: &str) -> Option<String> {
    let mut found = span.attributes.iter().filter(|pair| pair.key.as_str() == key);
    let value = found.next().map(|pair| pair.value.as_str().into_owned());
    assert!(found.next().is_none(), "{key} twice in {span:?}");
    value
}

#[track_caller]
fn assert_attributes(span: &SpanData, expected: &[(&str, &str)]) {
    for (key, value) in expected {
        assert_eq!(attribute(span, key).as_deref(), Some(*value), "{key} of {span:?}");
    }
}

fn fork() -> Transition {
    tag(TagName::Fork, "B.md", "W.md")
}

#[test]
fn run_trace_nests_agents_steps_and_turns() {
    let mut story = TracedStory::begin();
    story.take("main", goto("B.md")).take("main", result("done"));
    assert_eq!(
        story.names(),
        [
            "chat 1500..2000",
            "step A 1000..2000",
            "chat 2500..3000",
            "step B 2000..3000",
            "invoke_agent A 1000..3000",
            "invoke_workflow w 1000..3000",
        ]
    );
    let [run, agent] = ["invoke_workflow w", "invoke_agent A"].map(|name| story.span(name));
    let step = story.span("step B");
    assert_eq!(run.parent_span_id, SpanId::INVALID);
    assert_eq!(agent.parent_span_id, run.span_context.span_id());
    assert_eq!(step.parent_span_id, agent.span_context.span_id());
    assert_eq!(story.spans[2].parent_span_id, step.span_context.span_id());
    assert_eq!(story.spans[2].span_kind, SpanKind::Client);
    let trace = run.span_context.trace_id();
    assert!(story.spans.iter().all(|span| span.span_context.trace_id() == trace));
    assert!(story.trace.finish().is_empty(), "everything was told");
}

#[test]
fn refused_tool_event_has_name_but_no_arguments() {
    let mut story = TracedStory::begin();
    let mut step = story.scene.step("main", goto("B.md"));
    let input = serde_json::json!({ "command": "curl secret" });
    let call = ToolRefusal { times: 2, ..ToolRefusal::new("Bash", &input, "") };
    step.cost.refused_tools = ToolRefusals { calls: vec![call], more: 1 };
    story.happens(Event::StepFinished(step));
    let span = &story.spans[0];
    assert_attributes(span, &[("raymond.tools.refused", "3")]);
    let event = span.events.iter().next().expect("an event");
    let known: Vec<String> =
        event.attributes.iter().map(|pair| format!("{}={}", pair.key, pair.value)).collect();
    assert_eq!(event.name, "raymond.tool_refused");
    assert_eq!(known, ["gen_ai.tool.name=Bash", "raymond.tool.refused_times=2"]);
    assert!(!format!("{:?}", story.spans).contains("secret"));
}

#[test]
fn span_attributes_follow_semantic_conventions() {
    let mut story = TracedStory::begin();
    story.take("main", goto("B.md")).take("main", result("secret"));
    assert_attributes(
        &story.spans[0],
        &[
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.provider.name", "anthropic"),
            ("gen_ai.response.model", "big"),
            ("gen_ai.conversation.id", "s1"),
            ("gen_ai.agent.id", "main"),
            ("gen_ai.agent.name", "A"),
            ("gen_ai.usage.input_tokens", "123"),
            ("gen_ai.usage.output_tokens", "907"),
            ("gen_ai.usage.cache_read.input_tokens", "20"),
            ("gen_ai.usage.cache_creation.input_tokens", "100"),
            ("raymond.state", "A.md"),
            ("raymond.step", "1"),
            ("raymond.turn", "0"),
            ("raymond.cost_usd", "0.01"),
        ],
    );
    assert_attributes(
        story.span("step A"),
        &[("raymond.transition", "goto"), ("raymond.transition.target", "B.md")],
    );
    assert_attributes(
        story.span("invoke_agent A"),
        &[
            ("raymond.steps", "2"),
            ("gen_ai.usage.output_tokens", "1814"),
            ("raymond.cost_usd", "0.02"),
        ],
    );
    assert_attributes(
        story.span("invoke_workflow w"),
        &[("gen_ai.workflow.name", "w"), ("raymond.run.id", "r"), ("raymond.agents", "1")],
    );
    assert!(!format!("{:?}", story.spans).contains("secret"), "a payload is nobody's business");
}

#[test]
fn forked_agent_span_links_to_forking_step() {
    let mut story = TracedStory::begin();
    story.take("main", fork()).take("main", result("")).take("main.1", result(""));
    let (step, child) = (story.span("step A"), story.span("invoke_agent W"));
    assert_eq!(child.links.len(), 1);
    assert_eq!(child.links[0].span_context, step.span_context);
    assert_attributes(child, &[("gen_ai.agent.id", "main.1"), ("gen_ai.conversation.id", "s2")]);
    let run = story.span("invoke_workflow w");
    assert_eq!(child.parent_span_id, run.span_context.span_id());
    assert!(story.span("invoke_agent A").links.is_empty());
    assert_attributes(run, &[("raymond.agents", "2"), ("raymond.cost_usd", "0.03")]);
}

#[test]
fn failed_turn_span_is_an_error_and_its_step_continues() {
    let mut story = TracedStory::begin();
    let failed = story.scene.failure("main");
    story.happens(Event::TurnFailed(failed)).take("main", result(""));
    assert_eq!(story.names()[..3], ["chat 1000..2000", "chat 2500..3000", "step A 1000..3000"]);
    assert_eq!(story.spans[0].status, Status::error("crash"));
    assert_attributes(&story.spans[0], &[("error.type", "crash")]);
    assert_ne!(story.spans[0].span_context, story.spans[1].span_context);
    assert_eq!(story.spans[2].status, Status::Unset);
    assert_attributes(&story.spans[2], &[("raymond.turns", "2"), ("raymond.cost_usd", "0.02")]);
    assert_eq!(story.span("invoke_workflow w").status, Status::Unset);
}

#[test]
fn rejected_reply_has_turn_span_without_its_text() {
    let mut story = TracedStory::begin();
    let rejected = TurnRejected {
        turn: story.scene.turn("main"),
        state: story.scene.agent("main").current_state.clone(),
        violation: "it says: secret".to_owned(),
        reminder: "no secret".to_owned(),
        cost: TurnCost { duration_ms: Some(100), ..TurnCost::default() },
        message: None,
    };
    story.happens(Event::TurnRejected(rejected));
    assert_eq!(story.names(), ["chat 1900..2000"]);
    assert_attributes(&story.spans[0], &[("error.type", "protocol")]);
    assert_eq!(attribute(&story.spans[0], "gen_ai.usage.input_tokens"), None, "nobody counted");
    assert!(!format!("{:?}", story.spans).contains("secret"));
}

#[test]
fn failed_agent_marks_step_and_run_spans_as_error() {
    let mut story = TracedStory::begin();
    story.take("main", fork());
    let ends = story.scene.end_badly("main.1");
    story.happens(Event::AgentFailed(ends)).take("main", result(""));
    for name in ["step W", "invoke_agent W", "invoke_workflow w"] {
        assert_attributes(story.span(name), &[("error.type", "output")]);
        assert_eq!(story.span(name).status, Status::error("unusable output"), "{name}");
    }
    assert_eq!(story.span("invoke_agent A").status, Status::Unset);
}

#[test]
fn agent_failure_before_first_turn_has_no_turn_span() {
    let mut story = TracedStory::begin();
    let mut ends = story.scene.end_badly("main");
    ends.cause = FailureCause::Workflow;
    story.happens(Event::AgentFailed(ends));
    let names = ["step A 1000..2000", "invoke_agent A 1000..2000", "invoke_workflow w 1000..2000"];
    assert_eq!(story.names(), names);
}

#[test]
fn spans_of_agents_ended_with_run_are_sent_once_billed() {
    let mut story = TracedStory::begin();
    story.take("main", fork()).take("main", tag(TagName::Fork, "C.md", "V.md"));
    let (turn, mut ends) = (story.scene.turn("main.1"), story.scene.end_badly("main"));
    ends.ends_run = true;
    story.happens(Event::AgentFailed(ends));
    let before = story.spans.len();
    let (cost_usd, usage) = (Usd::from_dollars(0.5), used());
    let cost = TurnCost { amount: cost_usd, usage, ..TurnCost::default() };
    story.happens(Event::CostCounted { turn, cost });
    assert_eq!(
        story.names()[before..],
        ["chat 2000..5000", "step W 2000..4000", "invoke_agent W 2000..4000"]
    );
    assert_attributes(
        story.span("invoke_agent W"),
        &[("error.type", "interrupted"), ("raymond.cost_usd", "0.5")],
    );
    story.spans = story.trace.finish();
    let names = ["step V 3000..4000", "invoke_agent V 3000..4000", "invoke_workflow w 1000..5000"];
    assert_eq!(story.names(), names);
    assert_attributes(story.span("invoke_workflow w"), &[("raymond.cost_usd", "0.53")]);
    assert!(story.trace.finish().is_empty());
}

#[test]
fn resumed_run_sends_same_spans_and_none_twice() {
    let mut whole = TracedStory::begin();
    whole.take("main", fork());
    let failed = whole.scene.failure("main");
    whole.happens(Event::TurnFailed(failed));
    whole.take("main", goto("C.md")).take("main.1", result("")).take("main", result(""));
    for cut in 0..whole.records.len() {
        let mut first = RunTrace::default();
        let mut sent: Vec<SpanData> =
            whole.records[..cut].iter().flat_map(|record| first.see(record)).collect();
        let mut second = RunTrace::default();
        whole.records[..cut].iter().for_each(|record| second.replay(record));
        // What was seen before is told again by a run that nobody had begun with yet.
        let from = cut.saturating_sub(1);
        sent.extend(whole.records[from..].iter().flat_map(|record| second.see(record)));
        assert_eq!(sent, whole.spans, "cut at {cut}");
    }
}

#[test]
fn paused_run_has_sent_only_ended_spans() {
    let mut story = TracedStory::begin();
    story.take("main", fork());
    assert_eq!(story.names(), ["chat 1500..2000", "step A 1000..2000"]);
    assert!(story.trace.finish().is_empty(), "agents and the run go on");
    assert_eq!(story.trace.living(), 2);
    assert!(story.scene.run.agents.contains_key(&agent_id("main.1")));
}
