//! The context that all agents of a run share.

use std::cell::RefCell;
use std::collections::HashSet;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use actix::Recipient;
use serde_json::{Map, Value};

use super::activity_executor::ActivityExecutor;
use super::interceptor::PluginInterceptor;
use super::message::{
    ActivityDone, AgentDown, ApiThrottled, ApprovalRequested, MessageRead, TurnReplied,
    TurnReported,
};
use super::registry::AgentRegistry;
use super::runner::StepRunner;
use crate::domain::agent::Agent;
use crate::domain::fork::ForkSettings;
use crate::domain::id::Folder;
use crate::domain::turn::{FailureCause, TurnFailure};
use crate::domain::widening::PermissionCeiling;
use crate::language::prompt::step::UnfilledPlaceholder;
use crate::language::resume::workflow_cache::WorkflowCache;
use crate::language::source::{self, WorkflowSource};

/// The surroundings of an agent.
pub struct RunContext {
    /// The permissions that no state may exceed.
    pub ceiling: PermissionCeiling,
    /// The workflow's files.
    pub source: Arc<dyn WorkflowSource>,
    /// The runner that answers turns.
    pub runner: Rc<dyn StepRunner>,
    /// The executor of activities.
    pub performer: Rc<dyn ActivityExecutor>,
    /// The files of states that have been read.
    pub workflows: WorkflowCache,
    /// The built-in variables of graphs: `PWD`, `HOME`.
    pub builtins: Map<String, Value>,
    /// The live picture.
    pub registry: Arc<AgentRegistry>,
    /// The plug-ins that may change decisions.
    pub interceptors: Vec<PluginInterceptor>,
    /// The directory of the files with the results of joins.
    pub results: PathBuf,
    /// The settings of forks.
    pub forking: ForkSettings,
    /// The supervisor that agents report to.
    pub supervisor: SupervisorHandle,
    /// The unfilled placeholders that were warned of already.
    pub warned: RefCell<HashSet<UnfilledPlaceholder>>,
}

impl RunContext {
    /// Returns the files an agent sees: the workflow's, or those of a folder below.
    ///
    /// # Errors
    /// [`source::Error`] if there is no such folder.
    pub(super) fn source_of(
        &self,
        folder: Option<&Folder>,
    ) -> Result<Arc<dyn WorkflowSource>, source::Error> {
        folder.map_or_else(|| Ok(Arc::clone(&self.source)), |folder| self.source.within(folder))
    }

    /// Returns the files an agent sees.
    ///
    /// # Errors
    /// The failure of an agent whose folder is gone.
    pub(super) fn source_of_agent(
        &self,
        agent: &Agent,
    ) -> Result<Arc<dyn WorkflowSource>, TurnFailure> {
        let wrong =
            |error: source::Error| TurnFailure::new(FailureCause::Workflow, error.to_string());
        self.source_of(agent.folder().as_ref()).map_err(wrong)
    }

    /// Returns the unfilled placeholders that were not warned of yet.
    pub(super) fn take_unwarned(
        &self,
        unfilled: Vec<UnfilledPlaceholder>,
    ) -> Vec<UnfilledPlaceholder> {
        let mut warned = self.warned.borrow_mut();
        unfilled.into_iter().filter(|one| warned.insert(one.clone())).collect()
    }
}

/// The supervisor as an agent sees it: the messages that it takes.
pub struct SupervisorHandle {
    /// Takes reports.
    pub reports: Recipient<TurnReported>,
    /// Takes the replies of turns.
    pub replies: Recipient<TurnReplied>,
    /// Learns the outcome of activities.
    pub activities: Recipient<ActivityDone>,
    /// Learns of tool calls that need approval.
    pub approvals: Recipient<ApprovalRequested>,
    /// Learns of messages that running turns have read.
    pub read_messages: Recipient<MessageRead>,
    /// Learns of throttling by the API.
    pub throttles: Recipient<ApiThrottled>,
    /// Learns of actors that died.
    pub deaths: Recipient<AgentDown>,
}
