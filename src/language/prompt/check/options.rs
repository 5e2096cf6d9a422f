//! Checks the options of turns.
//!
//! It finds missing files, probably misspelt models, and permissions that a starter has to grant.

use super::FolderDiagnostics;
use crate::domain::id::StateName;
use crate::domain::model::ModelName;
use crate::domain::turn_options::TurnOptions;
use crate::language::manifest;
use crate::language::model_hint::model_hint;
use crate::language::position::SourcePlace;
use crate::language::prompt::widenings::{FoundWidening, in_options, in_outline};
use crate::language::prompt::workflow_map::{FolderPrompt, WorkflowMap};
use crate::language::turn_options::{OptionFault, OptionPlaces, embed_files, tool_name_hints};

impl FolderDiagnostics<'_> {
    /// Reports the mistakes in the options of the prompts, and of evaluators.
    pub(super) fn options(&mut self, workflow_map: &WorkflowMap) {
        for (name, prompt) in workflow_map.prompts().chain(&workflow_map.evaluators) {
            self.model(name, prompt.frontmatter.model.as_ref(), prompt.places.model);
            self.option_files(name, &prompt.frontmatter.options, &prompt.places.options, "RF002");
            self.command(name, prompt);
        }
        let found = in_outline(workflow_map, self.source, &self.ceiling);
        self.widenings(found);
    }

    /// Reports the mistakes in the options of the manifest.
    pub(super) fn options_of_manifest(
        &mut self,
        name: &StateName,
        examined: &manifest::ExaminedManifest,
    ) {
        let (options, places) = (&examined.manifest.options, &examined.options);
        self.model(name, examined.manifest.model.as_ref(), examined.model);
        self.option_files(name, options, places, "RF003");
        let found = in_options(name, options, places, self.source, &self.ceiling);
        self.widenings(found);
    }

    /// Warns of a prompt that looks like a command and is sent as text, and of a prompt that cannot be a command.
    fn command(&mut self, name: &StateName, prompt: &FolderPrompt) {
        let (word, place) = &prompt.first_word;
        match prompt.frontmatter.options.run_command {
            None if is_command(word) && !self.runs_commands => {
                let message = format!(
                    "the prompt begins with `{word}` and is sent as text; set `run_command: true` to run the command or skill, or `run_command: false` if it is text"
                );
                self.warning(name, *place, "RF407", message);
            }
            Some(true) if !is_command(word) && !word.starts_with("{{") => {
                let place = prompt.places.options.of("run_command", None).unwrap_or(*place);
                let message = "`run_command` has no effect, because the prompt does not begin with a command such as /review";
                self.warning(name, place, "RF407", message.to_owned());
            }
            _ => {}
        }
    }

    /// Warns of permissions that a starter has to grant.
    fn widenings(&mut self, found: Vec<FoundWidening>) {
        for FoundWidening { file, place, message } in found {
            self.warning(&file, place, "RF404", message);
        }
    }

    /// Reports files that options name and that cannot be used.
    fn option_files(
        &mut self,
        name: &StateName,
        options: &TurnOptions,
        places: &OptionPlaces,
        code: &'static str,
    ) {
        for fault in embed_files(&mut options.clone(), places, self.source) {
            self.error(name, fault.at, code, fault.message);
        }
        for model in options.fallback_model.iter().flatten() {
            let place = places.of("fallback_model", Some(model.as_str()));
            self.model(name, Some(model), place);
        }
        for OptionFault { at, message } in tool_name_hints(options, places) {
            self.warning(name, at, "RF405", message);
        }
    }

    /// Warns of a model that has no known name.
    pub(super) fn model(
        &mut self,
        name: &StateName,
        model: Option<&ModelName>,
        place: Option<SourcePlace>,
    ) {
        if let Some(hint) = model.and_then(model_hint) {
            self.warning(name, place.unwrap_or(SourcePlace::START), "RF403", hint);
        }
    }
}

/// Returns whether Claude Code would take a word for a command: a slash and a name, without a further slash as in a path.
fn is_command(word: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
    word.strip_prefix('/').is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_of_name)
    })
}
