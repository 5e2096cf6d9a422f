//! Traces by hand and by chance.

use proptest::prelude::*;

use super::*;
use crate::event::{Event, Record};
use crate::run_trace::{TraceFold, TracedTurn};
use crate::tests::scene::{Scene, goto, result, tag};
use crate::time::Timestamp;
use crate::transition::{TagName, Transition};
use crate::turn::TurnId;

/// A scene whose records a trace sees.
struct Traced {
    scene: Scene,
    fold: TraceFold,
}

impl Traced {
    fn begin() -> Self {
        Self { scene: Scene::begin(), fold: TraceFold::default() }
    }

    fn happens(&mut self, event: Event) {
        let seq = self.scene.next();
        let record = Record {
            kept_session: None,
            seq,
            at: Timestamp(seq * 1000),
            folder: None,
            snapshot: None,
            placed: Vec::new(),
            event: event.clone(),
        };
        self.fold.see(&self.scene.run, &record, &|text| TracedText::from(text));
        self.scene.happens(event);
    }

    fn takes(mut self, id: &str, transition: Transition) -> Self {
        let step = self.scene.step(id, transition);
        self.happens(Event::StepFinished(step));
        self
    }

    fn finish(self) -> RunHistory {
        self.fold.finish(&self.scene.run, &|text| TracedText::from(text))
    }
}

fn forks() -> Traced {
    Traced::begin().takes("main", tag(TagName::Fork, "B.md", "W.md"))
}

fn text(difference: &MomentDifference) -> String {
    let MomentDifference { agent, step, aspects, .. } = difference;
    let words: Vec<&str> = aspects.iter().map(|(aspect, _)| aspect.word()).collect();
    format!("{agent}#{step} {}", words.join(" "))
}

#[test]
fn earliest_difference_is_the_cause_and_not_its_consequence() {
    let a = forks().takes("main.1", result("x")).takes("main", goto("C.md")).finish();
    let b = forks().takes("main.1", result("y")).takes("main", goto("D.md")).finish();
    let found = compare(&a, &b, None);
    assert_eq!(text(found.first.as_ref().expect("one")), "main.1#1 payload");
    let steps: Vec<(&str, u64)> =
        found.steps.iter().map(|step| (step.agent.as_str(), step.step)).collect();
    assert_eq!(steps, [("main", 2)], "a result is no transition");
    let traces = found.steps[0].traces.as_ref().map(|trace| trace.clone().expect("a way"));
    assert_eq!(
        (&*traces.a.outcomes[0].text, &*traces.b.outcomes[0].text),
        ("<goto>C.md</goto>", "<goto>D.md</goto>")
    );
    assert_eq!(found.results.len(), 1);
    assert!(!found.is_equal());
    let of_agent = compare(&a, &b, Some(&AgentId::main()));
    assert_eq!(text(of_agent.first.as_ref().expect("one")), "main#2 transition");
    assert!(of_agent.results.is_empty());
}

#[test]
fn agent_of_one_run_only_is_a_consequence_of_the_fork() {
    let a = forks().takes("main.1", result("x")).finish();
    let b = Traced::begin().takes("main", goto("B.md")).finish();
    let found = compare(&a, &b, None);
    assert_eq!(text(found.first.as_ref().expect("one")), "main#1 transition");
    let last = found.steps.last().expect("a step");
    assert_eq!((last.agent.as_str(), last.traces.b.is_none()), ("main.1", true));
    assert_eq!(found.results.len(), 1);
}

#[test]
fn run_that_did_not_come_so_far_differs_at_its_end() {
    let a = Traced::begin().takes("main", goto("B.md")).takes("main", result("x")).finish();
    let b = Traced::begin().takes("main", goto("B.md")).finish();
    let found = compare(&a, &b, None);
    let first = found.first.expect("one");
    assert_eq!((first.step, first.moments.a.is_some(), first.moments.b), (2, true, None));
    assert_eq!(found.results[0].endings.b, Some(TracedEnding::Live));
}

#[test]
fn failures_of_the_machine_are_not_a_difference() {
    let mut a = Traced::begin();
    let mut failure = a.scene.failure("main");
    failure.cause = crate::turn::FailureCause::Lost;
    a.happens(Event::TurnFailed(failure));
    let a = a.takes("main", result("x")).finish();
    let b = Traced::begin().takes("main", result("x")).finish();
    assert!(compare(&a, &b, None).is_equal());
    let mut c = Traced::begin();
    let failure = c.scene.failure("main");
    c.happens(Event::TurnFailed(failure));
    let c = c.takes("main", result("x")).finish();
    assert_eq!(
        text(compare(&c, &b, None).first.as_ref().expect("one")),
        "main#1 failure transition payload"
    );
}

#[test]
fn texts_that_differ_only_in_the_ids_of_their_runs_are_equal() {
    let text = |text: &str, without_id: &str| TracedText {
        text: text.to_owned(),
        without_id: (text != without_id).then(|| without_id.to_owned()),
    };
    assert_eq!(text("in a", "in [run]"), text("in b", "in [run]"));
    assert_eq!(text("write a draft", "write a [run]"), text("write a draft", "write a draft"));
    assert_ne!(text("in a", "in [run]"), text("in b", "in b"));
}

#[test]
fn unknown_text_is_not_a_difference() {
    let turn = TurnId { agent: AgentId::main(), step: 1, turn: 0 };
    let with = |prompt: Option<&str>| {
        let mut trace = Traced::begin().takes("main", result("x")).finish();
        let texts = TracedTurn { prompt: prompt.map(TracedText::from), ..TracedTurn::default() };
        trace.add_turn(&turn, texts);
        trace
    };
    assert!(compare(&with(Some("1")), &with(None), None).is_equal());
    let found = compare(&with(Some("1")), &with(Some("2")), None);
    assert_eq!(text(found.first.as_ref().expect("one")), "main#1 prompt");
    assert!(found.steps.is_empty());
}

#[test]
fn branch_is_compared_after_the_shared_records() {
    let mut a = forks().takes("main", result("x")).finish();
    let shared = a.lineage.shared_with(&a.lineage);
    assert_eq!(shared, 3);
    a.forget(2);
    assert_eq!(a.agents.len(), 1, "only the last record is left");
    let found = compare(&a, &a.clone(), None);
    assert_eq!((found.shared, found.is_equal()), (3, true));
}

/// Steps of some agents: for each the agent, and the state that it goes to.
fn any_moments() -> impl Strategy<Value = Vec<(u32, u8)>> {
    prop::collection::vec((1..4_u32, any::<u8>()), 0..24)
}

fn trace(moments: &[(u32, u8)]) -> RunHistory {
    let mut trace = Traced::begin().finish();
    for (seq, (agent, target)) in (2..).zip(moments) {
        let agent = AgentId::main().child(*agent);
        let traced = trace.agents.entry(agent.clone()).or_default();
        let turn = TurnId { agent, step: traced.len() as u64 + 1, turn: 0 };
        let aspects = [(TraceAspect::Transition, target.to_string().as_str().into())].into();
        traced.push(TracedMoment { seq, turn, ends_turn: true, aspects });
    }
    trace
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn run_equals_itself_whatever_the_order_of_its_agents(moments in any_moments()) {
        let traced = trace(&moments);
        prop_assert!(compare(&traced, &traced, None).is_equal());
        let mut sorted = moments;
        sorted.sort_by_key(|(agent, _)| *agent);
        prop_assert!(compare(&traced, &trace(&sorted), None).is_equal());
    }

    #[test]
    fn changed_moment_is_found_from_both_sides(moments in any_moments(), at in any::<prop::sample::Index>()) {
        prop_assume!(!moments.is_empty());
        let at = at.index(moments.len());
        let mut changed = moments.clone();
        changed[at].1 = changed[at].1.wrapping_add(1);
        let (traced, other) = (trace(&moments), trace(&changed));
        let (there, back) = (compare(&traced, &other, None), compare(&other, &traced, None));
        let first = there.first.expect("a difference");
        prop_assert_eq!(first.moments.a.as_ref().map(|moment| moment.seq), Some(at as u64 + 2));
        let first_back = back.first.expect("a difference");
        prop_assert_eq!((&first.moments.a, &first.moments.b), (&first_back.moments.b, &first_back.moments.a));
        prop_assert_eq!((there.steps.len(), back.steps.len()), (1, 1));
    }

    #[test]
    fn first_difference_is_the_earliest_of_several(
        moments in any_moments(),
        changes in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
    ) {
        prop_assume!(!moments.is_empty());
        let changes: BTreeSet<usize> = changes.iter().map(|at| at.index(moments.len())).collect();
        let mut changed = moments.clone();
        for &at in &changes {
            changed[at].1 = changed[at].1.wrapping_add(1);
        }
        let first = compare(&trace(&moments), &trace(&changed), None).first.expect("one");
        let earliest = changes.first().map(|&at| at as u64 + 2);
        prop_assert_eq!(first.moments.b.map(|moment| moment.seq), earliest);
    }
}
