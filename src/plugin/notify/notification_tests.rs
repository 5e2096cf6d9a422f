//! The choice of notifications, and their words.

use std::sync::Arc;

use super::*;
use crate::actor::registry::AgentView;
use crate::domain::agents::LiveAgents;
use crate::domain::event::{AgentFailed, Record, StepFinished};
use crate::domain::id::{AgentId, SessionId, StateName};
use crate::domain::refusal::{ToolRefusal, ToolRefusals};
use crate::domain::restart::FailureGroup;
use crate::domain::run::PauseReason;
use crate::domain::settings::Settings;
use crate::domain::time::Timestamp;
use crate::domain::transition::{TagName, Transition};
use crate::domain::turn::TurnCost;
use crate::domain::turn::{FailureCause, TurnId};

fn state(name: &str) -> StateName {
    StateName::parse(name).expect("a state")
}

/// Returns the tracker of a run with its first agent, which has spent nothing.
fn occasions() -> NotificationTracker {
    let run = Run {
        version: 1,
        seq: 1,
        workflow_id: RunId::parse("t").expect("an id"),
        scope_dir: String::new(),
        folder: None,
        status: RunStatus::Running,
        pause: None,
        limited_until: None,
        given_usd: Usd::ZERO,
        total_cost_usd: Usd::default(),
        refused_tools: ToolRefusals::default(),
        max_turn_costs_usd: std::collections::BTreeMap::new(),
        shares: std::collections::BTreeMap::new(),
        closed_shares: std::collections::BTreeMap::new(),
        ended_calls: Vec::new(),
        settings: Settings::default(),
        approvals_asked: 0,
        approval_rules: Vec::new(),
        used_answers: std::collections::BTreeMap::new(),
        worktrees: std::collections::BTreeMap::new(),
        definitions: std::collections::BTreeMap::new(),
        facts: crate::domain::fact::KnownFacts::default(),
        branch: None,
        agents: LiveAgents::default(),
        finished: Vec::new(),
    };
    NotificationTracker { live: 1, ..NotificationTracker::new(&run) }
}

fn published(event: Event, agent: Option<AgentView>) -> Published {
    Published {
        record: Arc::new(Record {
            kept_session: None,
            seq: 2,
            at: Timestamp(0),
            folder: None,
            snapshot: None,
            placed: Vec::new(),
            event,
        }),
        agent,
        total_cost: Usd::from_dollars(0.05),
        missed: 0,
    }
}

fn turn() -> TurnId {
    TurnId { agent: AgentId::main(), step: 1, turn: 0 }
}

fn step(tag: TagName, attributes: &[(&str, &str)], target: &str) -> Event {
    let owned = attributes.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Event::StepFinished(StepFinished {
        turn: turn(),
        state: state("A.md"),
        transition: Transition::from_parts(tag, owned, target).expect("a transition"),
        implicit: false,
        cost: TurnCost::default(),
        session_id: SessionId::new("s"),
        message: None,
        shown: Vec::new(),
        new_session: None,
        options: Box::default(),
        overruled: None,
        without_turn: false,
        evaluator: None,
        children: Vec::new(),
        call_budget_usd: None,
        restarted: None,
    })
}

fn failed(error: &str, ends_run: bool) -> Event {
    Event::AgentFailed(AgentFailed {
        turn: turn(),
        state: state("A.md"),
        cause: FailureCause::Crash,
        error: error.to_owned(),
        cost: TurnCost::default(),
        ends_run,
    })
}

fn view() -> AgentView {
    AgentView {
        id: AgentId::main(),
        began: state("A.md"),
        state: state("A.md"),
        item: None,
        session: SessionId::new("s"),
        stack: 0,
        activity: AgentActivity::Waiting(WaitReason::Permit),
        cost: Usd::default(),
    }
}

#[test]
fn steps_notify_nothing_and_last_agent_ends_the_run() {
    let mut occasions = occasions();
    let fork = step(TagName::Fork, &[("next", "A.md")], "B.md");
    assert_eq!(occasions.of(&published(fork, Some(view()))), None);
    assert_eq!(occasions.of(&published(step(TagName::Result, &[], "x"), None)), None);
    let broken = occasions.at_the_end(None).expect("one lives");
    assert_eq!((broken.kind, broken.status), (NotificationKind::Broken, RunStatus::Running));

    assert_eq!(occasions.of(&published(step(TagName::Result, &[], "x"), None)), None);
    let ended = occasions.at_the_end(None).expect("none lives");
    assert_eq!((ended.kind, ended.status), (NotificationKind::Ended, RunStatus::Completed));
    assert_eq!(ended.message, "run t finished, $0.05 spent");
}

#[test]
fn agent_failure_is_notified_and_counted() {
    let mut occasions = occasions();
    let fork = step(TagName::Fork, &[("next", "A.md")], "B.md");
    occasions.of(&published(fork, Some(view())));
    let notification = occasions.of(&published(failed("it\nfell\0", true), None)).expect("told");
    assert_eq!(notification.kind, NotificationKind::AgentFailed);
    assert_eq!(
        notification.message,
        "main of run t failed at A.md (crash): it fell\\u{0}; all other agents end with it"
    );
    let ended = occasions.at_the_end(None).expect("none lives");
    assert_eq!(ended.status, RunStatus::Failed);
    assert_eq!(ended.message, "run t ended, 2 of 2 agents failed, $0.05 spent");
}

#[test]
fn end_notification_names_failures_that_join_kept() {
    let mut occasions = occasions();
    occasions.of(&published(failed("x", false), None));
    let group =
        FailureGroup { state: Some(state("W.md")), cause: Some(FailureCause::Protocol), agents: 2 };
    let mut failures =
        AgentFailures { ended: 3, failed: 2, kept: 2, fails_run: true, groups: vec![group] };
    let strict = occasions.at_the_end(Some(&failures)).expect("none lives");
    assert_eq!(strict.status, RunStatus::Failed);
    failures.fails_run = false;
    let ended = occasions.at_the_end(Some(&failures)).expect("none lives");
    assert_eq!(ended.status, RunStatus::Completed);
    assert_eq!(
        ended.message,
        "run t finished: 2 of 3 agents failed, kept by the join (W.md: protocol ×2), $0.05 spent"
    );
    let json = ended.json(&RunId::parse("t").expect("an id"), "/x/.raymond");
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value["failed_agents"], 2);
    let expected = serde_json::json!([{ "state": "W.md", "cause": "protocol", "agents": 2 }]);
    assert_eq!(value["failures"], expected);
}

#[test]
fn pause_notification_has_resume_hint_and_is_the_last() {
    let mut occasions = occasions();
    let pause = PauseReason::Budget {
        spent: Usd::from_dollars(0.05),
        limit: Usd::from_dollars(0.04),
        given: Usd::ZERO,
    };
    let notification = occasions.of(&published(Event::RunPaused { pause }, None)).expect("told");
    assert_eq!(
        (notification.kind, notification.status),
        (NotificationKind::Paused, RunStatus::Paused)
    );
    assert_eq!(
        notification.message,
        "run t paused: the budget of $0.04 is used up: $0.05 spent; resume with more: raymond resume t --budget USD"
    );
    assert_eq!(occasions.at_the_end(None), None);
}

#[test]
fn notification_json_contains_the_record() {
    let mut occasions = occasions();
    let notification = occasions.of(&published(failed("it \"fell\"", false), None)).expect("told");
    let json = notification.json(&RunId::parse("t").expect("an id"), "/x/.raymond");
    assert!(!json.contains('\n'));
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value["event"], "agent_failed");
    assert_eq!((&value["run"], &value["dir"]), (&"t".into(), &"/x/.raymond".into()));
    assert_eq!(value["record"]["seq"], 2);
    assert_eq!(value["record"]["event"], "agent_failed");
    assert_eq!(value["status"], "failed");
    assert_eq!(value["total_cost_usd"], 0.05);
    assert!(value["message"].as_str().is_some_and(|text| text.contains("it \"fell\"")));
}

#[test]
fn question_is_notified_unless_already_answered() {
    let asks = || step(TagName::Ask, &[("next", "B.md")], "Sure?");
    let asking = AgentView {
        activity: AgentActivity::Waiting(WaitReason::Answer {
            node: "B.md".into(),
            question: "Well?".into(),
        }),
        ..view()
    };
    assert_eq!(occasions().of(&published(asks(), Some(view()))), None);
    let notification = occasions().of(&published(asks(), Some(asking.clone()))).expect("told");
    assert_eq!(notification.kind, NotificationKind::Question);
    assert_eq!(
        notification.message,
        "main of run t asks B.md: Sure?; answer: raymond answer t main/B.md=TEXT"
    );
    let elsewhere = step(TagName::Goto, &[], "B.md");
    assert_eq!(occasions().of(&published(elsewhere, Some(asking))), None);
}

#[test]
fn end_notification_mentions_refused_tools() {
    let mut occasions = occasions();
    let mut event = step(TagName::Result, &[], "x");
    if let Event::StepFinished(step) = &mut event {
        let input = serde_json::json!({ "url": "https://example.org/a" });
        let call = ToolRefusal::new("WebFetch", &input, "");
        step.cost.refused_tools = ToolRefusals { calls: vec![call], more: 0 };
    }
    occasions.of(&published(event, None));
    let notification = occasions.at_the_end(None).expect("it has ended");
    assert_eq!(
        notification.message,
        "run t finished, $0.05 spent; 1 tool was refused: WebFetch `https://example.org/a`; allow it with: --allow-tool 'WebFetch(domain:example.org)'"
    );
}
