//! Sentences about steps and failures.

use super::*;
use crate::domain::event::AgentFailed;
use crate::domain::id::{AgentId, SessionId};
use crate::domain::money::Usd;
use crate::domain::refusal::{ToolRefusal, ToolRefusals};
use crate::domain::time::Timestamp;
use crate::domain::transition::TagName;
use crate::domain::turn::TurnCost;
use crate::domain::turn::TurnId;

fn step_sentence(tag: TagName, attributes: &[(&str, &str)], body: &str) -> String {
    step_sentence_with(tag, attributes, body, cost(ToolRefusals::default()))
}

fn cost(refused_tools: ToolRefusals) -> TurnCost {
    TurnCost {
        amount: Usd::from_dollars(0.05),
        refused_tools,
        duration_ms: Some(1234),
        ..TurnCost::default()
    }
}

fn step_sentence_with(
    tag: TagName,
    attributes: &[(&str, &str)],
    body: &str,
    cost: TurnCost,
) -> String {
    let owned = attributes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let event = StepFinished {
        turn: TurnId { agent: AgentId::main(), step: 1, turn: 0 },
        state: StateName::parse("A.md").expect("a state"),
        transition: Transition::from_parts(tag, owned, body).expect("a transition"),
        implicit: false,
        overruled: None,
        without_turn: false,
        evaluator: None,
        cost,
        session_id: SessionId::new("s"),
        message: None,
        shown: Vec::new(),
        new_session: None,
        options: Box::default(),
        children: Vec::new(),
        call_budget_usd: None,
        restarted: None,
    };
    sentence(&Record {
        kept_session: None,
        seq: 1,
        at: Timestamp(0),
        folder: None,
        snapshot: None,
        placed: Vec::new(),
        event: Event::StepFinished(event),
    })
}

#[test]
fn finished_step_is_described_in_one_line() {
    assert_eq!(step_sentence(TagName::Goto, &[], "B.md"), "main  A.md → B.md (goto)  $0.05  1.2s");
    assert_eq!(
        step_sentence(TagName::Call, &[("return", "C.md")], "B.md"),
        "main  A.md → B.md, returning to C.md (call)  $0.05  1.2s"
    );
    assert_eq!(
        step_sentence(TagName::Fork, &[("next", "C.md")], "B.md"),
        "main  A.md → C.md, a new agent at B.md (fork)  $0.05  1.2s"
    );
    let refused = ToolRefusals {
        calls: vec![ToolRefusal { tool: "Bash".into(), times: 2, ..ToolRefusal::default() }],
        more: 0,
    };
    assert_eq!(
        step_sentence_with(TagName::Goto, &[], "B.md", cost(refused)),
        "main  A.md → B.md (goto)  $0.05  1.2s  (2 tools were refused: Bash (2))"
    );
    let long = step_sentence(TagName::Result, &[], &"many\nwords ".repeat(20));
    assert!(
        long.contains("many words many") && long.contains("… (result)") && !long.contains('\n')
    );
}

#[test]
fn step_without_a_turn_has_no_duration() {
    let text = step_sentence_with(TagName::Goto, &[], "B.md", TurnCost::default());
    assert_eq!(text, "main  A.md → B.md (goto)  $0.00");
}

#[test]
fn uncertain_effect_says_whether_it_is_retried() {
    let event = |counts| TurnFailed {
        turn: TurnId { agent: AgentId::main(), step: 1, turn: 0 },
        state: StateName::parse("A.sh").expect("a state"),
        cause: FailureCause::Uncertain,
        message: "WF502 x".to_owned(),
        cost: TurnCost::default(),
        session: None,
        not_before: None,
        counts,
    };
    assert!(failed(&event(true), None).ends_with("WF502 x; raymond retries it"));
    assert!(failed(&event(false), None).ends_with("WF502 x"));
}

#[test]
fn failure_of_several_lines_is_one_line() {
    let event = Event::AgentFailed(AgentFailed {
        turn: TurnId { agent: AgentId::main(), step: 1, turn: 0 },
        state: StateName::parse("flow.yaml").expect("a state"),
        cause: FailureCause::Workflow,
        error: "in flow.yaml: no sources:\n  a\n  b\n".to_owned(),
        cost: TurnCost::default(),
        ends_run: false,
    });
    let text = sentence(&Record {
        kept_session: None,
        seq: 1,
        at: Timestamp(0),
        folder: None,
        snapshot: None,
        placed: Vec::new(),
        event,
    });
    assert_eq!(text, "main  failed (workflow): in flow.yaml: no sources: a b");
}
