//! Decisions on questions: answers, answers given ahead of time, and missing ones; and on the endings of graphs.

use std::sync::Arc;

use serde_json::Map;

use super::*;
use crate::advance::AdvanceNext;
use crate::event::{AdvancePosition, GraphEntry, GraphProgress, NextAction};
use crate::graph_execution::NodeCursor;
use crate::id::AgentId;
use crate::question::{Answer, AnswerCommand, QuestionOption};
use crate::transition::AskTimeout;

fn ask(next: &str, late: Option<(u64, &str)>) -> Transition {
    Transition::Ask {
        question: "Sure?".into(),
        next: state(next),
        timeout: late
            .map(|(timeout_ms, next)| AskTimeout { timeout_ms, timeout_next: state(next) }),
        variables: crate::transition::Variables::new(),
    }
}

fn choice(node: &str) -> Question {
    let option = |id: &str, label: &str| QuestionOption {
        id: id.into(),
        label: label.into(),
        description: String::new(),
    };
    Question {
        node: node.into(),
        text: "Which?".into(),
        header: None,
        options: vec![option("git", "Git repository"), option("web", "Web site")],
        free: false,
    }
}

fn walk(next: AdvanceNext) -> Advance {
    let entered = GraphEntry {
        workflow_name: "g".into(),
        workflow_version: "1".into(),
        program: "sha256:0".into(),
        fields: Map::new(),
    };
    let progress = GraphProgress {
        entered: Some(Box::new(entered)),
        migrated: None,
        visits: Vec::new(),
        changes: Vec::new(),
        node: Arc::from("kind"),
        cursor: NodeCursor::default(),
    };
    Advance { outputs: Vec::new(), position: AdvancePosition::Graph(Box::new(progress)), next }
}

/// Returns the events of an advance of a graph by `main`.
fn walked(scene: &Scene, then: AdvanceNext) -> Vec<Event> {
    let judgement = TurnJudgement::Advanced(Box::new(walk(then)));
    let report = TurnReport { judgement, ..TurnReport::empty(scene.turn("main")) };
    decide(&scene.run, &report, chosen())
}

/// Creates a run whose agent `main` waits for an answer.
fn asking(node: &str) -> Scene {
    let mut scene = Scene::begin();
    for event in walked(&scene, AdvanceNext::Action(NextAction::Question(Box::new(choice(node))))) {
        scene.happens(event);
    }
    assert!(scene.agent("main").question().is_some());
    scene
}

fn given(events: &[Event]) -> Vec<(String, Option<u32>)> {
    let answers = events.iter().filter_map(|event| match event {
        Event::QuestionAnswered(answered) => {
            Some((answered.answer.id.clone(), answered.used_answers))
        }
        _ => None,
    });
    answers.collect()
}

#[test]
fn first_valid_answer_wins() {
    let mut scene = asking("kind");
    let take = |scene: &Scene, text| answer(&scene.run, &AnswerCommand::to("kind", text));
    let invalid = take(&scene, "svn").expect_err("no option");
    assert_eq!(invalid.to_string(), "WF504 `svn` is not an answer to kind: use one of git, web");
    let first = take(&scene, "1").expect("the first option");
    let second = take(&scene, "web").expect("it is still open");
    assert_eq!(given(std::slice::from_ref(&first)), [("git".to_owned(), None)]);
    scene.happens(first);
    assert!(scene.offer(second).is_err(), "what was decided before the first was taken is refused");
    let late = take(&scene, "web").expect_err("nobody asks any more");
    assert_eq!(late.to_string(), "no open question kind; there are none at all");
}

#[test]
fn answer_applies_only_to_question_it_addresses() {
    let mut scene = asking("kind");
    let asked = scene.agent("main").step;
    let of = |step, agent: &str| AnswerCommand {
        agent: Some(agent_id(agent)),
        step: Some(step),
        ..AnswerCommand::to("kind", "git")
    };
    assert!(answer(&scene.run, &of(asked, "main")).is_ok());
    let error = answer(&scene.run, &of(asked - 1, "main")).expect_err("an earlier question");
    assert!(error.to_string().contains("has been answered before"), "{error}");
    let error = answer(&scene.run, &of(asked, "main.1")).expect_err("no such agent");
    assert_eq!(error.to_string(), "no open question kind; open questions: main/kind");
    scene.run.agents.insert(Agent { id: agent_id("main.1"), ..scene.agent("main").clone() });
    let error = answer(&scene.run, &AnswerCommand::to("kind", "git")).expect_err("which one?");
    assert_eq!(
        error.to_string(),
        "several agents ask kind: name one, as main/kind=… or main.1/kind=…"
    );
}

#[test]
fn prepared_answers_are_consumed_in_order() {
    let mut scene = Scene::begin();
    let answers = ["svn", "web", "git"].map(str::to_owned).to_vec();
    scene.run.settings.answers.insert("kind".into(), answers);
    let mut asked = Vec::new();
    for _ in 0..3 {
        let events =
            walked(&scene, AdvanceNext::Action(NextAction::Question(Box::new(choice("kind")))));
        asked.push(given(&events));
        for event in events {
            scene.happens(event);
        }
    }
    let web = vec![("web".to_owned(), Some(2))];
    let git = vec![("git".to_owned(), Some(3))];
    assert_eq!(asked, [web, git, vec![]], "what is no answer is passed over, the last stays open");
    assert!(scene.agent("main").question().is_some());
    scene.run.settings.answers.entry("kind".into()).or_default().push("web".into());
    let at_last = first_prepared_answer(&scene.run).expect("one was given meanwhile");
    assert_eq!(given(std::slice::from_ref(&at_last)), [("web".to_owned(), Some(4))]);
    scene.happens(at_last);
    assert_eq!(first_prepared_answer(&scene.run), None);
}

#[test]
fn ask_waits_in_state_that_receives_answer() {
    let mut scene = Scene::begin();
    let effects = scene.take("main", ask("B.md", None));
    assert_eq!(effects, [Effect::Ask(AgentId::main())]);
    assert_eq!(scene.agent("main").current_state, state("B.md"));
    let event = answer(&scene.run, &AnswerCommand::to("B.md", "Yes, do.")).expect("free text");
    scene.happens(event);
    let agent = scene.agent("main");
    assert_eq!(
        (agent.variables["answer"].as_str(), agent.question().is_none()),
        ("Yes, do.", true)
    );

    let mut scene = Scene::begin();
    scene.run.settings.answers.insert("B.md".into(), vec!["ahead".into()]);
    let events = decide(&scene.run, &report(&scene, accepted(ask("B.md", None))), chosen());
    assert_eq!(given(&events), [("other".to_owned(), Some(1))]);
    for event in events {
        scene.happens(event);
    }
    assert_eq!(scene.agent("main").variables["answer"], "ahead");
}

#[test]
fn unanswered_question_enters_timeout_state() {
    let mut scene = Scene::begin();
    scene.take("main", ask("B.md", Some((500, "LATE.md"))));
    let at = Timestamp(scene.run.seq * 1000);
    let late = |scene: &Scene, after| timed_out(scene.agent("main"), at.plus(after));
    assert_eq!(late(&scene, 499), None);
    let event = late(&scene, 500).expect("it is time");
    scene.happens(event);
    let agent = scene.agent("main");
    assert_eq!((&agent.current_state, agent.question().is_none()), (&state("LATE.md"), true));
    assert_eq!(late(&scene, 1000), None, "once");
    assert!(answer(&scene.run, &AnswerCommand::to("B.md", "yes")).is_err());
}

#[test]
fn graph_error_fails_agent_only_without_caller() {
    let end = |error: Option<&str>| AdvanceNext::End {
        payload: "{}".into(),
        error: error.map(str::to_owned),
    };
    let failed =
        |events: &[Event]| events.iter().any(|event| matches!(event, Event::AgentFailed(_)));
    let mut scene = Scene::begin();
    assert!(failed(&walked(&scene, end(Some("no")))));
    assert!(!failed(&walked(&scene, end(None))));
    scene.take("main", tag(TagName::Function, "BACK.md", "g.yaml"));
    let events = walked(&scene, end(Some("no")));
    assert!(!failed(&events));
    for event in events {
        scene.happens(event);
    }
    let agent = scene.agent("main");
    assert_eq!(
        (&agent.current_state, agent.variables["result"].as_str()),
        (&state("BACK.md"), "{}")
    );
}

#[test]
fn answer_record_stores_option_id_and_raw_text() {
    let scene = asking("kind");
    let event =
        answer(&scene.run, &AnswerCommand::to("kind", " GIT Repository ")).expect("a label");
    let Event::QuestionAnswered(answered) = event else { panic!("{event:?}") };
    let raw = " GIT Repository ".to_owned();
    assert_eq!(answered.answer, Answer { id: "git".into(), raw });
    let walked = walked(&scene, AdvanceNext::Action(NextAction::Walk));
    assert!(
        matches!(&walked[0], Event::GraphAdvanced(walked) if walked.next_action == NextAction::Walk)
    );
}
