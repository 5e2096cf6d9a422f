//! The permissions that a turn asks for, judged before it starts.

use super::{AgentActor, TurnAssignment};
use crate::domain::turn_options::TurnOptions;
use crate::domain::widening::OptionWidening;
use crate::language::prompt::step::OptionSite;

impl AgentActor {
    /// Returns the options of a turn, those of the run among them.
    ///
    /// # Errors
    /// The reason why it must not start: it asks for more than the person who started the run allowed.
    pub(super) fn permitted_options(
        &self,
        assignment: &TurnAssignment,
        own: TurnOptions,
        site: &OptionSite,
    ) -> Result<TurnOptions, String> {
        let own = match &assignment.folder {
            Some(folder) => own.below(folder),
            None => own,
        };
        self.check_unpinned(assignment, &own)?;
        let options = own.or(&self.context.options);
        match self.context.ceiling.widenings(&options).into_iter().next() {
            None => Ok(options),
            Some(OptionWidening { key, part, message }) => {
                let place = site.place_of(key, part.as_deref());
                Err(format!("{place}: {key}: {message}"))
            }
        }
    }

    /// Checks that a state which is read afresh asks for no more than it did when the run began.
    fn check_unpinned(&self, assignment: &TurnAssignment, own: &TurnOptions) -> Result<(), String> {
        let ceiling = self.context.ceiling.without_consent();
        let Some(widening) = ceiling.widenings(own).into_iter().next() else { return Ok(()) };
        let Ok(source) = self.context.source_of(assignment.folder.as_ref()) else { return Ok(()) };
        let evaluator = assignment.proposal.as_ref().map(|proposal| &proposal.evaluator);
        let file = evaluator.unwrap_or(&assignment.state);
        if source.is_as_pinned(file) {
            return Ok(());
        }
        let (path, key) = (source.path(file), widening.key);
        Err(format!(
            "{path}: {key}: this widens permissions in a file that was changed since the run began; use the new file with --migrate, or leave the key out"
        ))
    }
}
