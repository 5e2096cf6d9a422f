//! What all agents of a run share.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use actix::Addr;

use super::registry::Registry;
use super::runner::StepRunner;
use super::supervisor::Supervisor;
use crate::domain::id::RunId;
use crate::domain::settings::Model;
use crate::domain::time::Timestamp;
use crate::domain::transition::Variables;
use crate::language::source::Source;

/// The surroundings of an agent.
pub struct Context {
    /// The run.
    pub workflow: RunId,
    /// Values for placeholders of every state.
    pub variables: Variables,
    /// The model of states that name none.
    pub model: Option<Model>,
    /// The workflow's files.
    pub source: Arc<dyn Source>,
    /// Who answers.
    pub runner: Rc<dyn StepRunner>,
    /// The live picture.
    pub registry: Arc<Registry>,
    /// Who is reported to.
    pub supervisor: Addr<Supervisor>,
}

/// The time now.
#[must_use]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
