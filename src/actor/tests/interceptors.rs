//! Plug-ins as interceptors of whole runs.
//!
//! Their verdicts count, and a failing, slow or flooding plug-in harms no run.

use std::cell::RefCell;
use std::time::Duration;

use actix::{Actor, Context as Ctx, Handler};

use super::stage::{Player, Stage, ended, files, settings};
use crate::actor::observer::{Consult, PluginInterceptor};
use crate::domain::consult::{ConsultVerdict, Consultation, StopScope};
use crate::domain::event::{Event, RunCommand};
use crate::domain::id::StateName;
use crate::domain::run::{PauseReason, RunStatus};
use crate::domain::transition::{Transition, Variables};
use crate::proof::ProofKey;
use crate::store::inbox;

const WORKFLOW: &[(&str, &str)] = &[
    ("A.md", "<goto>B.md</goto>"),
    ("B.md", "<result>done</result>"),
    ("OTHER.md", "<result>elsewhere</result>"),
];

/// A plug-in that a test speaks for.
struct Voice(Box<Says>);

type Says = dyn FnMut(&Consultation) -> Option<ConsultVerdict> + Send;

impl Actor for Voice {
    type Context = Ctx<Self>;
}

impl Handler<Consult> for Voice {
    type Result = actix::ResponseFuture<ConsultVerdict>;

    /// Answers with the test's verdict; without one it never answers.
    fn handle(&mut self, Consult(question): Consult, _: &mut Self::Context) -> Self::Result {
        let verdict = (self.0)(&question);
        Box::pin(async move {
            match verdict {
                Some(verdict) => verdict,
                None => std::future::pending().await,
            }
        })
    }
}

/// Returns a stage with such a plug-in.
fn with(
    deadline: Duration,
    required: bool,
    says: impl FnMut(&Consultation) -> Option<ConsultVerdict> + Send + 'static,
) -> Stage {
    let stage = Stage::new();
    let says = RefCell::new(Some(says));
    stage.plug(move || {
        let voice = Voice(Box::new(says.take().expect("plugged in once"))).start();
        PluginInterceptor::new("guard".to_owned(), voice.recipient(), deadline, required)
    });
    stage
}

fn patient(says: impl FnMut(&Consultation) -> Option<ConsultVerdict> + Send + 'static) -> Stage {
    with(Duration::from_mins(1), false, says)
}

fn goto(target: &str) -> Transition {
    let target = StateName::parse(target).expect("a state");
    Transition::Goto { target, scope: None, variables: Variables::new() }
}

fn instead(target: &str) -> ConsultVerdict {
    ConsultVerdict::Override { transition: goto(target), reason: "better".to_owned() }
}

#[test]
fn interceptor_is_asked_before_each_turn_and_transition() {
    let (tell, asked_turns) = std::sync::mpsc::channel();
    let stage = patient(move |question| {
        let kind = match question {
            Consultation::Start(start) => format!("start {}", start.state),
            Consultation::Transition(asked) => format!("{} {}", asked.state, asked.transition),
            Consultation::Approval(asked) => format!("approval {}", asked.request.tool),
        };
        tell.send(kind).expect("someone listens");
        Some(ConsultVerdict::Proceed)
    });
    let played = stage.play(settings(1), files(WORKFLOW), &Player::echo());
    assert_eq!(played.run.finished[0].ending, ended("done"));
    let asked: Vec<String> = asked_turns.try_iter().collect();
    assert_eq!(
        asked,
        ["start A.md", "A.md <goto>B.md</goto>", "start B.md", "B.md <result>…</result>"]
    );
}

#[test]
fn interceptor_overrides_transition_and_skips_turn() {
    let stage = patient(|question| match question {
        Consultation::Transition(asked) if asked.state.as_str() == "A.md" => Some(instead("A.md")),
        Consultation::Start(start) if start.turn.step == 2 => Some(instead("OTHER.md")),
        _ => Some(ConsultVerdict::Proceed),
    });
    let echo = Player::echo();
    let played = stage.play(settings(1), files(WORKFLOW), &echo);
    assert_eq!(played.run.finished[0].ending, ended("elsewhere"));
    assert_eq!(echo.names(), ["main#1", "main#3"], "the second was not asked");
}

#[test]
fn impossible_override_is_ignored() {
    let stage = patient(|_| Some(instead("GONE.md")));
    let played = stage.play(settings(1), files(WORKFLOW), &Player::echo());
    assert_eq!(played.run.finished[0].ending, ended("done"));
}

#[test]
fn interceptor_is_asked_again_after_holding_turn() {
    let mut asked = 0;
    let stage = patient(move |question| {
        asked += u32::from(matches!(question, Consultation::Start(_)));
        let hold =
            ConsultVerdict::Hold { until: crate::actor::context::now(), reason: "wait".to_owned() };
        Some(if asked == 1 { hold } else { ConsultVerdict::Proceed })
    });
    let echo = Player::echo();
    let played = stage.play(settings(1), files(WORKFLOW), &echo);
    assert_eq!(played.run.finished[0].ending, ended("done"));
    let held = |event: &Event| matches!(event, Event::TurnHeld(_));
    assert_eq!(played.records.iter().filter(|record| held(&record.event)).count(), 1);
    assert_eq!(echo.names(), ["main#1", "main#2"]);
}

#[test]
fn stop_verdict_with_run_scope_pauses_run() {
    let stage = patient(|question| match question {
        Consultation::Start(start) if start.turn.step == 2 => {
            Some(ConsultVerdict::Stop { reason: "enough".to_owned(), scope: StopScope::Run })
        }
        _ => Some(ConsultVerdict::Proceed),
    });
    let played = stage.play(settings(1), files(WORKFLOW), &Player::echo());
    assert_eq!(played.run.status, RunStatus::Paused);
    let pause = PauseReason::Plugin { plugin: "guard".to_owned(), reason: "enough".to_owned() };
    assert_eq!(played.run.pause, Some(pause));
    assert_eq!(played.run.agents.len(), 1, "the agent can go on");
}

#[test]
fn unresponsive_interceptor_is_asked_once_and_run_completes() {
    let (tell, asked_turns) = std::sync::mpsc::channel();
    let stage = with(Duration::from_millis(10), false, move |_| {
        tell.send(()).expect("someone listens");
        None
    });
    let played = stage.play(settings(1), files(WORKFLOW), &Player::echo());
    assert_eq!(played.run.finished[0].ending, ended("done"));
    assert_eq!(asked_turns.try_iter().count(), 1);
}

#[test]
fn panicking_interceptor_does_not_affect_run() {
    let stage = patient(|_| panic!("the plug-in of a test fails, as it should"));
    let played = stage.play(settings(1), files(WORKFLOW), &Player::echo());
    assert_eq!(played.run.finished[0].ending, ended("done"));
}

#[test]
fn silent_or_failed_required_interceptor_pauses_run() {
    let silent: fn(&Consultation) -> Option<ConsultVerdict> = |_| None;
    let failing: fn(&Consultation) -> Option<ConsultVerdict> =
        |_| panic!("the plug-in of a test fails");
    for (says, why) in [(silent, "did not answer within 10ms"), (failing, "has failed")] {
        let stage = with(Duration::from_millis(10), true, says);
        let played = stage.play(settings(1), files(WORKFLOW), &Player::echo());
        let Some(PauseReason::Plugin { reason, .. }) = &played.run.pause else {
            panic!("{:?}", played.run.pause)
        };
        assert!(reason.contains("required") && reason.contains(why), "{reason}");
    }
}

#[test]
fn stop_does_not_wait_for_interceptor_and_leaves_step_open() {
    for (at_start, played) in [(true, &[][..]), (false, &["main#1"][..])] {
        let stage = Stage::new();
        let dir = stage.root.run(&Stage::id()).inbox();
        stage.plug(move || {
            let dir = dir.clone();
            let voice = Voice(Box::new(move |question| {
                if matches!(question, Consultation::Start(_)) != at_start {
                    return Some(ConsultVerdict::Proceed);
                }
                inbox::put(&dir, "stop-1", &RunCommand::Stop, &ProofKey::new("test"))
                    .expect("written");
                None
            }));
            let voice = voice.start().recipient();
            PluginInterceptor::new("guard".to_owned(), voice, Duration::MAX, false)
        });
        let mut settings = settings(1);
        settings.supervision.shutdown_ms = 10;
        let echo = Player::echo();
        let run = stage.play(settings, files(WORKFLOW), &echo).run;
        assert_eq!((run.status, run.pause), (RunStatus::Paused, Some(PauseReason::Stopped)));
        assert_eq!(echo.names(), played);
        assert_eq!(run.agents.values().next().map(|agent| agent.step), Some(1));
    }
}
