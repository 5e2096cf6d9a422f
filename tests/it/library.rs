//! raymond as a library: the examples, and the errors of programs that use it wrongly.

use std::io::Write;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, Context, Handler};
use raymond::domain::id::{AgentId, StateName};
use raymond::domain::money::Usd;
use raymond::domain::run::{AgentEnding, PauseReason};
use raymond::domain::settings::AnswererKind;
use raymond::{Published, Runtime};

use crate::support::Test;

mod custom_types;

#[expect(dead_code, reason = "its main is for the command line")]
#[path = "../../examples/budget.rs"]
mod budget;
#[expect(dead_code, reason = "its main is for the command line")]
#[path = "../../examples/evaluator.rs"]
mod evaluator;
#[expect(dead_code, reason = "its main is for the command line")]
#[path = "../../examples/logging.rs"]
mod logging;

/// Returns a scripted workflow of two states, a cent each.
fn scripted() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("replies.yaml", "START.md: [{ reply: <goto>NEXT.md</goto>, cost: 0.01 }, { reply: <goto>NEXT.md</goto>, cost: 0.01 }]\nNEXT.md: [{ reply: <result>ab</result>, cost: 0.01 }, { reply: <result>abcdef</result>, cost: 0.01 }]\n")
}

fn paths(test: &Test) -> (String, String) {
    (test.flow().display().to_string(), test.dir().display().to_string())
}

#[test]
fn budget_example_blocks_turn_when_budget_is_spent() {
    let test = scripted();
    let (flow, dir) = paths(&test);
    let outcome = budget::run(&flow, &dir, Usd::from_dollars(0.01)).expect("a run");
    let [main] = outcome.run.finished.as_slice() else { panic!("{:?}", outcome.run) };
    let AgentEnding::Error(error) = &main.ending else { panic!("{main:?}") };
    assert_eq!(
        error,
        "in NEXT.md: the plug-in budget did not let its turn start: $0.01 of $0.01 spent"
    );
    assert_eq!(outcome.cost(), Usd::from_dollars(0.01));
}

/// A writer whose text a test can read.
#[derive(Clone, Default)]
struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("nobody panics with it").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn logging_example_logs_each_step_with_cost() {
    let place = scripted();
    let (flow, dir) = paths(&place);
    let page = SharedBuffer::default();
    let outcome = logging::run(&flow, &dir, page.clone()).expect("a run");
    assert_eq!(outcome.result(&AgentId::main()), Some("ab"));
    let text = String::from_utf8(page.0.lock().expect("whole").clone()).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[1].contains("START.md → NEXT.md (goto)  $0.01"), "{text}");
    assert!(lines[2].ends_with("($0.02)"), "{text}");
}

/// An observer that calls a function for each record.
struct RecordObserver<F>(F);

impl<F: Unpin + 'static> Actor for RecordObserver<F> {
    type Context = Context<Self>;
}

impl<F: FnMut(&Published) + Unpin + 'static> Handler<Published> for RecordObserver<F> {
    type Result = ();

    fn handle(&mut self, published: Published, _: &mut Self::Context) {
        (self.0)(&published);
    }
}

#[test]
fn slow_observer_receives_all_records_before_run_returns() {
    let place = scripted();
    let (flow, dir) = paths(&place);
    let (tell, told) = channel();
    let (note, noted) = channel();
    let mut has_ended = Some(told);
    let eager = RecordObserver(move |published: &Published| {
        if published.agent.is_none() {
            let _ = tell.send(());
        }
    });
    let late = RecordObserver(move |published: &Published| {
        if let Some(told) = has_ended.take() {
            let _ = told.recv_timeout(Duration::from_mins(5));
        }
        let _ = note.send(published.record.seq);
    });
    let builder =
        Runtime::builder().workflow(&flow).dir(&dir).user_state(format!("{dir}/../state"));
    let outcome = builder
        .configure(|settings| settings.answerer = AnswererKind::Scripted)
        .observer("eager", eager)
        .observer("late", late)
        .run_here()
        .expect("a run");
    assert!(outcome.is_success());
    assert_eq!(noted.try_iter().collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn evaluator_example_sends_agent_back_for_too_short_result() {
    let test = scripted();
    let (flow, dir) = paths(&test);
    let start = StateName::parse("START.md").expect("a state");
    let outcome = evaluator::run(&flow, &dir, start, 4).expect("a run");
    assert_eq!(outcome.result(&AgentId::main()), Some("abcdef"));
    assert_eq!(outcome.cost(), Usd::from_dollars(0.04));
}

#[test]
fn paused_run_resumes_with_larger_budget() {
    let test = scripted();
    let (flow, dir) = paths(&test);
    let builder = || Runtime::builder().dir(&dir).user_state(test.root().join("state"));
    let limit = |dollars: f64| Some(Usd::from_dollars(dollars));
    let paused = builder()
        .workflow(&flow)
        .configure(move |settings| {
            settings.answerer = AnswererKind::Scripted;
            settings.budget_usd = limit(0.01);
        })
        .run_here()
        .expect("a run");
    assert!(matches!(paused.pause(), Some(PauseReason::Budget { .. })), "{:?}", paused.pause());
    let id = paused.run.workflow_id.to_string();
    let more = move |dollars| {
        let id = id.clone();
        builder().resume(id).configure(move |settings| settings.budget_usd = limit(dollars))
    };
    let ended = more(1.0).run_here().expect("it goes on");
    assert!(ended.is_success() && ended.result(&AgentId::main()) == Some("ab"));
    let again = more(2.0).run_here().expect("nothing to do");
    assert_eq!(again.run.finished, ended.run.finished);
}

#[test]
fn builder_misuse_gives_descriptive_error() {
    let test = scripted();
    let (flow, dir) = paths(&test);
    let error = |builder: raymond::runtime::Builder| builder.dir(&dir).run_here().expect_err("no");
    let nothing = error(Runtime::builder());
    assert!(nothing.to_string().contains("give the builder a workflow"), "{nothing}");
    let gone = error(Runtime::builder().workflow("no/such/place"));
    assert_eq!(gone.to_string(), "no/such/place: there is no such file or folder");
    let run = error(Runtime::builder().resume("none"));
    assert!(run.to_string().contains("none"), "{run}");
    let elsewhere = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(Runtime::builder().workflow(&flow).run()).expect_err("no")
    });
    let without = elsewhere.join().expect("no panic");
    assert!(without.to_string().contains("#[actix::main]"), "{without}");
}
