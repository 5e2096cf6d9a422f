//! Starts of programs as runs of their own: their values, the id that they give, and their failures.

use serde_json::Value;

use super::{Play, program, state};
use raymond_model::activity::ActivityResult;
use raymond_model::branch::{StartedRun, WorkflowStart};
use raymond_model::id::RunId;
use raymond_model::money::Usd;

impl Play {
    /// Gives the run a budget of which so many dollars are left.
    fn budget(&mut self, dollars: f64) {
        let spent = self.scene.run.total_cost_usd;
        let budget = spent.saturating_add(Usd::from_dollars(dollars));
        self.scene.run.settings.budget_usd = Some(budget);
    }

    /// Returns the amount that started runs were given, in dollars.
    fn given(&self) -> f64 {
        self.scene.run.given_usd.dollars()
    }
}

/// Starts a program as the run `r`, or fails as the play says.
pub(super) fn started(play: &mut Play, start: &WorkflowStart) -> Result<ActivityResult, String> {
    play.done.push(serde_json::to_string(start).expect("JSON"));
    let outcome = play.outputs.pop_front().unwrap_or(Ok(Value::Null));
    let run = RunId::parse("r").expect("an id");
    outcome.map(|_| ActivityResult::Started(StartedRun { run, budget_usd: start.budget_usd }))
}

#[test]
fn start_is_given_label_branch_and_context_and_gives_the_run() {
    let text = state(
        "(action (start-workflow other :label \"~a-~a\" :args (@context/k x) :branch @label :context (input \"text\" item @context/k) :as run)
          (log \"~a~a\" @run @run/error))",
    );
    let mut play = Play::of(&text);
    let expected =
        r#"{"program":"other","label":"v-x","branch":"l","context":{"input":"text","item":"v"}}"#;
    assert_eq!(play.done, [expected]);
    assert_eq!(play.shown, ["has started other as the run r", "r"]);
    assert_eq!(play.completed_in(), "s");
    play = Play::of(&state("(action (start-workflow other :label @context/k))"));
    assert_eq!(play.done, [r#"{"program":"other","label":"v"}"#]);
}

#[test]
fn start_waits_for_its_values_and_loop_may_wait_for_it_alone() {
    let mut play = Play::of(&state("(action (start-workflow other :label (signal job)))"));
    assert!(play.done.is_empty());
    play.fact("job", "", "one");
    assert_eq!(play.done, [r#"{"program":"other","label":"one"}"#]);
    let text = program(&[
        "(state s (loop :max 3 :on-max t (action (start-workflow other))))",
        "(state t (terminal))",
    ]);
    let play = Play::of(&text);
    assert_eq!(play.done, [r#"{"program":"other"}"#; 3]);
}

#[test]
fn failed_start_fails_program_or_leads_to_its_state() {
    let fails = |start: &str| {
        let bad = "(state bad (terminal :result @x/error))";
        let text = program(&[&format!("(state s (action {start}))"), "(state t (terminal))", bad]);
        let mut play = Play::before(&text);
        play.outputs.push_back(Err("it is not trusted".to_owned()));
        play.go();
        play.ended().to_owned()
    };
    assert_eq!(fails("(start-workflow other :as x :on-error bad)"), "it is not trusted");
    assert_eq!(
        fails("(start-workflow other :as x)"),
        "p.lisp:2:18: other is not started: it is not trusted"
    );
}

#[test]
fn started_runs_are_given_parts_of_what_is_left_of_the_budget() {
    let given = |starts: &str| {
        let bad = if starts.contains(":as x") { "@x/error" } else { "none" };
        let bad = format!("(state bad (action (log \"~a\" {bad})))");
        let text =
            program(&[&format!("(state s (action {starts}))"), "(state t (terminal))", &bad]);
        let mut play = Play::before(&text);
        play.budget(1.0);
        play.go();
        (play.shown.clone(), play.given())
    };
    let with = |budget: &str| format!("has started other as the run r with a budget of {budget}");
    let twice = "(start-workflow other) (start-workflow other)";
    assert_eq!(given(twice), (vec![with("$0.50"), with("$0.25")], 0.75));
    let asked =
        "(start-workflow other :budget 0.8) (start-workflow other :budget 0.5 :as x :on-error bad)";
    let why = "its `:budget` is $0.50, and no more than $0.20 of the budget of this run is left";
    let warning = format!("warning: other is not started: {why}");
    assert_eq!(given(asked), (vec![with("$0.80"), warning, why.to_owned()], 0.8));
    let all = "(start-workflow other :budget 1) (start-workflow other :as x :on-error bad)";
    let why = "the budget of this run is used up, or given to the runs that it has started";
    let warning = format!("warning: other is not started: {why}");
    assert_eq!(given(all), (vec![with("$1.00"), warning, why.to_owned()], 1.0));
}

#[test]
fn part_of_a_start_that_fails_is_given_back() {
    let mut play = Play::before(&program(&[
        "(state s (action (start-workflow other :budget 1 :as x :on-error bad)))",
        "(state bad (terminal))",
    ]));
    play.budget(1.0);
    play.outputs.push_back(Err("it is not trusted".to_owned()));
    play.go();
    assert_eq!((play.completed_in().as_str(), play.given()), ("bad", 0.0));
}
