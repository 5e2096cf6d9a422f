//! The facts that a program can match at its position, as far as their keys and payloads are known.
//!
//! The run looks these facts up before each advance. A key that an advance itself makes known, such as a taken value, is
//! recorded and looked up before the program looks at facts with it. So an unknown key selects nothing, and no fact is
//! missed.

use std::collections::BTreeMap;
use std::ops::Deref;

use super::{ProgramEnvironment, ProgramInterpreter};
use crate::program::checked_program::{Program, SoughtFacts, TextExpression};
use raymond_model::fact::{FactPattern, FactSelection};
use raymond_model::id::RunId;
use raymond_model::program_execution::ProgramSource;
use raymond_model::run::Run;

impl Program {
    /// Returns the facts that every execution in a run can match: those whose keys and payloads are known before it begins.
    pub(super) fn facts_of_run(&self, run: &RunId) -> FactSelection {
        let known = |expression: &TextExpression| {
            known_before_execution(expression, run.as_str()).map(Some)
        };
        selection(self.facts.iter().filter(|sought| !sought.is_of_execution()), known)
    }

    /// Returns whether executions differ in the facts that they can match.
    fn has_facts_of_execution(&self) -> bool {
        self.facts.iter().any(SoughtFacts::is_of_execution)
    }
}

impl SoughtFacts {
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
pub fn sought_facts<P: Deref<Target = Program>>(
    run: &Run,
    program_of: impl Fn(&ProgramSource) -> Option<P>,
) -> FactSelection {
    let mut all = FactSelection::default();
    let mut differing = BTreeMap::new();
    for own in run.definitions.values() {
        match program_of(own) {
            Some(program) => {
                all.extend(&program.facts_of_run(&run.workflow_id));
                if program.has_facts_of_execution() {
                    differing.insert(&own.program, program);
                }
            }
            // What it runs is not there now, so only the labels are known.
            None => all.extend(&FactSelection::of_labels(&own.labels)),
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
    selection(environment.program.facts.iter().filter(|sought| sought.is_of_execution()), known)
}

/// Returns the selection of the facts whose keys and payloads are known; `Some(None)` is one that may be any.
fn selection<'program>(
    facts: impl Iterator<Item = &'program SoughtFacts>,
    known: impl Fn(&TextExpression) -> Option<Option<String>>,
) -> FactSelection {
    let mut all = FactSelection::default();
    for sought in facts {
        let known =
            |expression: &Option<TextExpression>| expression.as_ref().map_or(Some(None), &known);
        if let (Some(key), Some(value)) = (known(&sought.key), known(&sought.value)) {
            all.add(&sought.label, FactPattern { key, value });
        }
    }
    all
}

impl ProgramInterpreter<'_> {
    /// Returns whether this advance has bound a name anew, so that the run has not looked up facts with its value.
    pub(super) fn is_new(&self, expression: &TextExpression) -> bool {
        let TextExpression::Bound(name) = expression else { return false };
        let bound = self.bindings.get(&**name);
        bound.is_some() && bound != self.environment.execution.bindings.get(&**name)
    }
}
