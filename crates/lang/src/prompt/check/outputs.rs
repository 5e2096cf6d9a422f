//! Checks outputs.
//!
//! It finds wrong schemas, rules with names that a schema does not have, answers that lead nowhere, and fields of an
//! answer that no output has.

use std::collections::{BTreeMap, BTreeSet};

use super::FolderDiagnostics;
use crate::output::{
    OutputKey, OutputSchema, RESULT, RuleGaps, SchemaError, SchemaField, divisions,
};
use crate::position::SourcePlace;
use crate::prompt::workflow_map::{FolderPrompt, WorkflowMap};
use raymond_model::id::StateName;

/// The states whose answers a state may be given as `{{result}}`.
#[derive(Debug, Clone, Default)]
pub(super) struct ResultOrigins<'workflow_map> {
    /// The states with an output.
    answers: BTreeSet<&'workflow_map StateName>,
    /// True if there may be other origins.
    has_others: bool,
}

impl FolderDiagnostics<'_> {
    /// Reports the problems of all states' outputs.
    pub(super) fn outputs(&mut self, workflow_map: &WorkflowMap) {
        for (name, prompt) in workflow_map.prompts() {
            let Some(key) = &prompt.frontmatter.output else { continue };
            match key.load(self.source) {
                Ok(contract) if prompt.errors.is_empty() => {
                    let gaps = RuleGaps::find(&contract.schema, &contract.rules);
                    self.gaps(name, prompt, key, gaps);
                }
                Ok(_) => {}
                Err(SchemaError { file, error }) => {
                    let place = SourcePlace { line: error.line, column: error.column };
                    self.error(file.as_ref().unwrap_or(name), place, "RF501", error.message);
                }
            }
        }
    }

    fn gaps(&mut self, name: &StateName, prompt: &FolderPrompt, key: &OutputKey, gaps: RuleGaps) {
        let place = |index: usize| {
            let when = prompt.places.whens.get(index).copied().flatten();
            when.or_else(|| Some(prompt.places.entries.get(index)?.entry)).unwrap_or(key.place)
        };
        for (index, message) in gaps.mistakes {
            self.error(name, place(index), "RF502", message);
        }
        if let Some(answer) = gaps.uncovered {
            let message = format!(
                "an answer with {answer} leads nowhere; add an entry for it, or one without `when` at the end"
            );
            self.error(name, prompt.places.policy.unwrap_or(key.place), "RF503", message);
        }
        for index in gaps.impossible {
            let message =
                "no answer that the schema allows has these values, so this entry is never taken";
            self.error(name, place(index), "RF502", message.to_owned());
        }
        for index in gaps.unused {
            let message =
                "this entry is never taken: an earlier entry covers each of its answers".to_owned();
            self.warning(name, place(index), "RF504", message);
        }
    }

    /// Adds the fields of known placeholders to the known names, and reports the fields that no output has.
    pub(super) fn fields(
        &mut self,
        name: &StateName,
        prompt: &FolderPrompt,
        known: &mut BTreeSet<String>,
        (workflow_map, origins): (&WorkflowMap, Option<&ResultOrigins<'_>>),
    ) {
        for (placeholder, place) in &prompt.placeholders {
            if known.contains(placeholder) {
                continue;
            }
            let mut divisions = divisions(placeholder).rev();
            let Some((root, path)) = divisions.find(|(root, _)| known.contains(*root)) else {
                continue;
            };
            if let Some(origins) = origins.filter(|_| root == RESULT)
                && let Some(why) = self.missing(path, workflow_map, origins)
            {
                let message = format!("nothing fills {{{{{placeholder}}}}}: {why}");
                self.warning(name, *place, "RF401", message);
            }
            known.insert(placeholder.clone());
        }
    }

    /// Returns why a field is in none of the answers that a state may be given, if that is known.
    fn missing(
        &self,
        path: &str,
        workflow_map: &WorkflowMap,
        origins: &ResultOrigins<'_>,
    ) -> Option<String> {
        if origins.has_others || origins.answers.is_empty() {
            return None;
        }
        let mut hint = None;
        for &state in &origins.answers {
            let key = workflow_map.states.get(state)?.prompt()?.frontmatter.output.as_ref()?;
            let schema: OutputSchema = key.load(self.source).ok()?.schema;
            match schema.field(path) {
                SchemaField::Known { .. } | SchemaField::Open => return None,
                SchemaField::Missing { similar } => hint = hint.or(similar.map(str::to_owned)),
            }
        }
        let states: Vec<&str> = origins.answers.iter().map(|state| state.as_str()).collect();
        let hint = hint.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        Some(format!("the output of {} has no such field{hint}", states.join(" or ")))
    }
}

/// Returns for each state the states whose answers it may be given as `{{result}}`.
pub(super) fn origins(workflow_map: &WorkflowMap) -> BTreeMap<&StateName, ResultOrigins<'_>> {
    let mut origins: BTreeMap<&StateName, ResultOrigins<'_>> = BTreeMap::new();
    for (name, prompt) in workflow_map.texts() {
        let has_output = prompt.frontmatter.output.is_some();
        for way in &prompt.ways {
            let Some(target) = way.transition.target() else { continue };
            let entered = origins.entry(target).or_default();
            if has_output && !way.is_of_join() {
                entered.answers.insert(name);
            } else {
                entered.has_others |=
                    way.is_of_join() || way.transition.variables().contains_key(RESULT);
            }
            if let Some((_, return_to)) = way.call() {
                let returned = origins.entry(return_to).or_default();
                returned.returns(workflow_map, target);
            }
        }
        for shown in prompt.shown.iter().filter_map(|shown| shown.transition.as_ref().ok()) {
            if let Some(target) = shown.target().filter(|_| shown.variables().contains_key(RESULT))
            {
                origins.entry(target).or_default().has_others = true;
            }
        }
    }
    origins
}

impl<'workflow_map> ResultOrigins<'workflow_map> {
    /// Adds the results that a subroutine beginning in a state may return.
    fn returns(
        &mut self,
        workflow_map: &'workflow_map WorkflowMap,
        target: &'workflow_map StateName,
    ) {
        for state in workflow_map.level([target]) {
            match workflow_map.states.get(state).and_then(|state| state.prompt()) {
                Some(prompt) if !prompt.may_end() => {}
                Some(prompt) if prompt.frontmatter.output.is_some() => {
                    self.answers.insert(state);
                }
                Some(_) | None => self.has_others = true,
            }
        }
    }
}
