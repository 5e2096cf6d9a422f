//! Checks the options of turns.
//!
//! It finds missing files, probably misspelt models, and permissions that a starter has to grant.

use super::FolderDiagnostics;
use crate::command_prompt;
use crate::manifest;
use crate::position::SourcePlace;
use crate::program::checked_program::InstructionKind;
use crate::prompt::widenings::{FoundWidening, in_options, in_outline};
use crate::prompt::workflow_map::WorkflowMap;
use crate::turn_options::model_hint;
use crate::turn_options::{OptionFault, OptionPlaces, embed_files, tool_name_hints};
use raymond_model::id::StateName;
use raymond_model::model::ModelName;
use raymond_model::turn_options::TurnOptions;

impl FolderDiagnostics<'_> {
    /// Reports the mistakes in the options of the prompts, and of evaluators.
    pub(super) fn options(&mut self, workflow_map: &WorkflowMap) {
        for (name, prompt) in workflow_map.prompts().chain(&workflow_map.evaluators) {
            self.model(name, prompt.frontmatter.model.as_ref(), prompt.places.model);
            self.option_files(name, &prompt.frontmatter.options, &prompt.places.options, "RF002");
            let (word, place) = &prompt.first_word;
            let own = prompt.frontmatter.options.run_command;
            let switch =
                prompt.places.options.of("run_command", None).filter(|_| own == Some(true));
            self.command(name, (word, switch.unwrap_or(*place)), own);
        }
        self.commands_of_programs(workflow_map);
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
    fn command(&mut self, name: &StateName, (text, at): (&str, SourcePlace), own: Option<bool>) {
        let switch = own.or(self.runs_commands.then_some(false));
        if let Some(message) = command_prompt::warning(text, switch) {
            self.warning(name, at, command_prompt::CODE, message);
        }
    }

    /// Warns of the prompts that programs send to their roles. Only some prompts of a role may be commands.
    fn commands_of_programs(&mut self, workflow_map: &WorkflowMap) {
        for (name, state) in &workflow_map.states {
            let Some(program) = state.program() else { continue };
            let all = program.instructions();
            let sent = all.filter_map(|one| match &one.kind {
                InstructionKind::Send(send) => Some((send.role, &*send.template.pieces[0], one.at)),
                _ => None,
            });
            let sent: Vec<(usize, &str, SourcePlace)> = sent.collect();
            for (role, text, at) in &sent {
                let own = program.roles[*role].options.run_command;
                let mut of_role = sent.iter().filter(|other| other.0 == *role);
                if !of_role.any(|other| command_prompt::warning(other.1, own).is_none())
                    || own.is_none()
                {
                    self.command(name, (text, *at), own);
                }
            }
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
