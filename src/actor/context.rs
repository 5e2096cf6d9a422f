//! What all agents of a run share.

use std::cell::RefCell;
use std::collections::HashSet;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use actix::Recipient;
use serde_json::{Map, Value};

use super::adviser::Adviser;
use super::definitions::Definitions;
use super::message::{AgentDown, ErrandDone, Throttled, TurnReported};
use super::performer::Performer;
use super::programs::Programs;
use super::registry::Registry;
use super::runner::StepRunner;
use crate::domain::fan_out::Forking;
use crate::domain::id::{Folder, RunId};
use crate::domain::model::ModelName;
use crate::domain::transition::Variables;
use crate::domain::turn_options::{OnDenied, TurnOptions};
use crate::domain::widening::PermissionCeiling;
use crate::language::prompt::step::Unfilled;
use crate::language::source::{self, Source};

/// The surroundings of an agent.
pub struct Context {
    /// The run.
    pub workflow: RunId,
    /// Values for placeholders of every state.
    pub variables: Variables,
    /// The model of states that name none.
    pub model: Option<ModelName>,
    /// The options of states that name none.
    pub options: TurnOptions,
    /// The permissions that no state may exceed.
    pub ceiling: PermissionCeiling,
    /// The consequence of a refused tool, where the state does not say.
    pub on_denied: OnDenied,
    /// The workflow's files.
    pub source: Arc<dyn Source>,
    /// Who answers.
    pub runner: Rc<dyn StepRunner>,
    /// Who performs the operations of graphs.
    pub performer: Rc<dyn Performer>,
    /// The graphs.
    pub programs: Programs,
    /// The programs.
    pub definitions: Definitions,
    /// What graphs know of their surroundings: `PWD`, `HOME`.
    pub builtins: Map<String, Value>,
    /// The live picture.
    pub registry: Arc<Registry>,
    /// The plug-ins that have a say.
    pub advisers: Vec<Adviser>,
    /// The directory of the files with what joins have brought.
    pub results: PathBuf,
    /// How agents are forked.
    pub forking: Forking,
    /// Who is reported to.
    pub supervisor: Superior,
    /// The unfilled placeholders that someone has been warned of.
    pub warned: RefCell<HashSet<Unfilled>>,
}

impl Context {
    /// The files an agent sees: the workflow's, or those of a folder below.
    ///
    /// # Errors
    /// [`source::Error`] if there is no such folder.
    pub(super) fn source_of(
        &self,
        folder: Option<&Folder>,
    ) -> Result<Arc<dyn Source>, source::Error> {
        folder.map_or_else(|| Ok(Arc::clone(&self.source)), |folder| self.source.within(folder))
    }

    /// Those of the unfilled placeholders that nobody has been warned of yet.
    pub(super) fn news_of(&self, unfilled: Vec<Unfilled>) -> Vec<Unfilled> {
        let mut warned = self.warned.borrow_mut();
        unfilled.into_iter().filter(|one| warned.insert(one.clone())).collect()
    }
}

/// The supervisor as an agent sees it: what it can be told, and nothing else.
pub struct Superior {
    /// Takes reports.
    pub reports: Recipient<TurnReported>,
    /// Learns what came of errands.
    pub errands: Recipient<ErrandDone>,
    /// Learns what the API asks for.
    pub throttles: Recipient<Throttled>,
    /// Notices deaths.
    pub deaths: Recipient<AgentDown>,
}
