//! Formats conditions for people, and selects the facts that a program can match at its position.
//!
//! A condition is formatted as in the program, but with its values.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Deref;

use raymond_model::fact::{Fact, FactPattern, FactSelection};
use raymond_model::graph_execution::{ProgramExecution, ProgramSource};
use raymond_model::id::RunId;
use raymond_model::run::Run;
use raymond_model::time::format_duration;
use raymond_model::tool_call::{beginning, first_characters, flat};

use super::{ProgramEnvironment, ProgramInterpreter};
use crate::program::checked_program::{MatchedFacts, Program, ProgramCondition, TextExpression};

/// The most bytes of a text of the context in a published execution.
const MAX_CONTEXT_BYTES: usize = 2000;

/// The number of characters that are shown of a value.
const MAX_SHOWN_CHARS: usize = 60;

pub(super) fn signal(label: &str, key: Option<&str>, equals: Option<&str>) -> String {
    let mut text = format!("(signal {label}");
    for (keyword, value) in [(":key", key), (":equals", equals)] {
        if let Some(value) = value {
            let _ = write!(text, " {keyword} {}", atom(value));
        }
    }
    text.push(')');
    text
}

/// Formats an execution as a form: its definition, its label, its branch and its context. Long texts are cut.
pub(super) fn instance(execution: &ProgramExecution) -> String {
    let text = |text: &str| atom(&beginning(text.to_owned(), MAX_CONTEXT_BYTES));
    let ProgramExecution { name, label, branch, context, .. } = execution;
    let mut form = format!("(workflow-instance :definition {} :label {}", atom(name), atom(label));
    if let Some(branch) = branch {
        let _ = write!(form, " :branch {}", atom(branch));
    }
    let context = context.iter().filter(|(_, value)| !value.is_empty());
    let context: Vec<String> =
        context.map(|(key, value)| format!("({} {})", atom(key), text(value))).collect();
    if !context.is_empty() {
        let _ = write!(form, " :context ({})", context.join(" "));
    }
    form + ")"
}

/// Says that an assertion has replaced a fact, and so many values behind it.
pub(super) fn replaced(fact: &Fact, behind: usize) -> String {
    let Fact { label, key, value, .. } = fact;
    let more = if behind > 0 { format!(" and {behind} behind it") } else { String::new() };
    let (key, value) = (atom(key), flat(value, MAX_SHOWN_CHARS));
    format!("(assert {label} :key {key}) replaces {value:?}{more}, which no program had taken")
}

pub(super) fn response(name: &str) -> String {
    format!("(transcript-response :request-id {name})")
}

pub(super) fn user_input(name: &str) -> String {
    format!("(user-input :as {})", atom(name))
}

/// Formats a command, or the beginning of a long one.
pub(super) fn command(text: &str) -> String {
    format!("(run :command {:?})", first_characters(text, MAX_SHOWN_CHARS))
}

pub(super) fn condition(
    shown: &ProgramCondition,
    value: &dyn Fn(&TextExpression) -> String,
) -> String {
    let all = |word: &str, conditions: &[ProgramCondition]| {
        let parts: Vec<String> = conditions.iter().map(|part| condition(part, value)).collect();
        format!("({word} {})", parts.join(" "))
    };
    match shown {
        ProgramCondition::Signal { label, key, equals, .. } => {
            let (key, equals) = (key.as_ref().map(value), equals.as_ref().map(value));
            signal(label, key.as_deref(), equals.as_deref())
        }
        ProgramCondition::Response { request, .. } => response(request),
        ProgramCondition::Matches { text, pattern } => {
            format!("(matches {} {:?})", expression(text, value), pattern.as_str())
        }
        ProgramCondition::Equals { left, right } => {
            format!("(equals {} {})", expression(left, value), expression(right, value))
        }
        ProgramCondition::Verdict { verdict: TextExpression::Verdict(name), word } => {
            format!("(verdict {name} {word})")
        }
        ProgramCondition::Verdict { word, .. } => format!("(verdict … {word})"),
        ProgramCondition::After(millis) => format!("(after \"{}\")", format_duration(*millis)),
        ProgramCondition::At(time) => format!("(at \"{time}\")"),
        ProgramCondition::And(conditions) => all("and", conditions),
        ProgramCondition::Or(conditions) => all("or", conditions),
        ProgramCondition::Not(negated) => format!("(not {})", condition(negated, value)),
    }
}

/// Formats an expression as in the program, if it is a short one.
fn expression(shown: &TextExpression, value: &dyn Fn(&TextExpression) -> String) -> String {
    match shown {
        TextExpression::Text(text) => atom(text),
        TextExpression::Response(name) => format!("(response {name})"),
        TextExpression::Signal { label, key } => {
            signal(label, key.as_deref().map(value).as_deref(), None)
        }
        TextExpression::Bound(name) => format!("@{name}"),
        _ => "…".to_owned(),
    }
}

/// Formats a value as in a form, without quotes if it needs none.
fn atom(value: &str) -> String {
    let plain = |c: char| !c.is_whitespace() && !"()\";~@#:".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        value.to_owned()
    } else {
        format!("{value:?}")
    }
}

// The facts that a program can match at its position, as far as their keys and payloads are known.
//
// The run looks these facts up before each advance. A key that an advance itself makes known, such as a taken value, is
// recorded and looked up before the program looks at facts with it. So an unknown key selects nothing, and no fact is
// missed.

impl Program {
    /// Returns the facts that every execution in a run can match: those whose keys and payloads are known before it
    /// begins.
    pub(super) fn facts_of_run(&self, run: &RunId) -> FactSelection {
        let known = |expression: &TextExpression| {
            known_before_execution(expression, run.as_str()).map(Some)
        };
        selection(self.facts.iter().filter(|matched| !matched.is_of_execution()), known)
    }

    /// Returns whether executions differ in the facts that they can match.
    fn has_facts_of_execution(&self) -> bool {
        self.facts.iter().any(MatchedFacts::is_of_execution)
    }
}

impl MatchedFacts {
    /// Returns whether the key or the payload is a value of an execution.
    fn is_of_execution(&self) -> bool {
        let is_known =
            |expression: &TextExpression| known_before_execution(expression, "").is_some();
        ![&self.key, &self.value].into_iter().flatten().all(is_known)
    }
}

/// Returns the value of an expression that is the same in each execution of a run.
fn known_before_execution(expression: &TextExpression, run: &str) -> Option<String> {
    match expression {
        TextExpression::Text(text) => Some(text.clone()),
        TextExpression::WorkflowId => Some(run.to_owned()),
        _ => None,
    }
}

/// Returns the facts that the programs of a run can match at their positions. `program_of` reads what a run has kept.
pub fn selected_facts<P: Deref<Target = Program>>(
    run: &Run,
    program_of: impl Fn(&ProgramSource) -> Option<P>,
) -> FactSelection {
    let mut all = FactSelection::default();
    let mut differing = BTreeMap::new();
    for definition in run.definitions.values() {
        match program_of(definition) {
            Some(program) => {
                all.extend(&program.facts_of_run(&run.workflow_id));
                if program.has_facts_of_execution() {
                    differing.insert(&definition.program, program);
                }
            }
            // What it runs is not there now, so only the labels are known.
            None => all.extend(&FactSelection::of_labels(&definition.labels)),
        }
    }
    if differing.is_empty() {
        return all;
    }
    for agent in run.agents.values() {
        let Some(execution) = agent.program() else { continue };
        let Some(program) = differing.get(&execution.program) else { continue };
        all.extend(&facts_of_execution(&ProgramEnvironment {
            program,
            execution,
            facts: &run.facts,
            run: &run.workflow_id,
            file: &agent.current_state,
            folder: None,
            step: agent.step,
            budget_left: None,
            path: "",
            now: agent.since,
        }));
    }
    all
}

/// Returns the facts that an execution can match beside those of its run.
pub(super) fn facts_of_execution(environment: &ProgramEnvironment<'_>) -> FactSelection {
    let machine = ProgramInterpreter::new(environment);
    let known = |expression: &TextExpression| match expression {
        // Another fact, or a directory, may change at any time.
        TextExpression::Signal { .. } | TextExpression::Artifact(_) => Some(None),
        known => machine.evaluate(known).ok().map(Some),
    };
    selection(environment.program.facts.iter().filter(|matched| matched.is_of_execution()), known)
}

/// Returns the selection of the facts whose keys and payloads are known. `Some(None)` is a key or payload that may be
/// anything.
fn selection<'program>(
    facts: impl Iterator<Item = &'program MatchedFacts>,
    known: impl Fn(&TextExpression) -> Option<Option<String>>,
) -> FactSelection {
    let mut all = FactSelection::default();
    for matched in facts {
        let known =
            |expression: &Option<TextExpression>| expression.as_ref().map_or(Some(None), &known);
        if let (Some(key), Some(value)) = (known(&matched.key), known(&matched.value)) {
            all.add(&matched.label, FactPattern { key, value });
        }
    }
    all
}

impl ProgramInterpreter<'_> {
    /// Returns whether this advance has bound a name to a new value, so that the run has not looked up facts with it.
    pub(super) fn is_new(&self, expression: &TextExpression) -> bool {
        let TextExpression::Bound(name) = expression else { return false };
        let bound = self.bindings.get(&**name);
        bound.is_some() && bound != self.environment.execution.bindings.get(&**name)
    }
}
