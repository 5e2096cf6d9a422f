//! The place where a run branches off, and what of the other run stays there.

use std::path::Path;

use super::error::Error;
use crate::domain::causal_cut::CutSeed;
use crate::domain::id::{AgentId, RunId};
use crate::domain::run::Run;
use crate::runtime::error::BranchError;
use crate::store::Error as StoreError;
use crate::store::journal_cut::{CutSearch, JournalCut, find_causal_cut, find_cut};
use crate::store::layout::{RunDir, RunsRoot};
use crate::store::view::load_view;

/// The place where a run branches off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchPoint {
    /// After the last durable record.
    Now,
    /// After the record with this number.
    Record(u64),
    /// Before an agent's step, without what follows from it.
    Step {
        /// The agent.
        agent: AgentId,
        /// The number of the step, from 1.
        step: u64,
    },
    /// Before the first step in one of these states, without what follows from it.
    States {
        /// The agent; `None` for each.
        agent: Option<AgentId>,
        /// The states.
        states: Vec<String>,
    },
}

/// The place where a run branches off, as it was found.
#[derive(Debug)]
pub struct FoundBranch {
    /// The run that is branched off.
    pub source: RunId,
    /// The place.
    pub cut: JournalCut,
    /// The agent before whose step it branches off, and the number of the step.
    pub step: Option<(AgentId, u64)>,
    /// The run as it is by now.
    pub present: Run,
}

impl FoundBranch {
    /// Returns the agent before whose step it branches off, if it is one.
    pub fn replied_agent(&self) -> Option<&AgentId> {
        self.step.as_ref().map(|(agent, _)| agent)
    }

    /// Returns the number of later records that stay.
    pub fn kept(&self) -> u64 {
        self.cut.kept.iter().map(|batch| batch.len() as u64).sum()
    }

    /// Returns the number of records that are left out.
    pub fn left_out(&self) -> u64 {
        self.present.seq.saturating_sub(self.cut.seq + self.kept())
    }
}

/// Finds the place where a run branches off.
///
/// # Errors
/// [`BranchError`] if there is none, or the run cannot be read.
pub fn find_branch(
    root: &RunsRoot,
    source: &RunId,
    point: &BranchPoint,
) -> Result<FoundBranch, Error> {
    let present = load_view(root, source)?.run;
    if present.workflow_id != *source {
        // Its seal is that of the other run, so nothing says what a person has confirmed here.
        let (id, of) = (source.clone(), present.workflow_id);
        return Err(StoreError::Copied { id, of }.into());
    }
    let cut = match search(&root.run(source), point)? {
        CutSearch::Found(cut) => *cut,
        CutSearch::Missing { last } => return Err(missing(&present, point, last).into()),
        CutSearch::Refused { seq, refused } => {
            let why = refused.to_string();
            return Err(BranchError::Refused { run: source.clone(), seq, why }.into());
        }
    };
    let (run, here) = (source.clone(), cut.seq);
    if let BranchPoint::Record(seq) = point
        && here != *seq
    {
        return Err(BranchError::WithinStep { run, seq: *seq, after: here }.into());
    }
    if cut.run.agents.is_empty() {
        return Err(BranchError::NothingLives { run, seq: here }.into());
    }
    let step = match point {
        BranchPoint::Step { agent, step } => Some((agent.clone(), *step)),
        BranchPoint::Now | BranchPoint::Record(_) | BranchPoint::States { .. } => None,
    };
    Ok(FoundBranch { source: run, cut, step, present })
}

fn search(dir: &RunDir, point: &BranchPoint) -> Result<CutSearch, Error> {
    let at = |seq: u64| move |run: &Run| run.seq >= seq;
    let search = match point {
        BranchPoint::Now => {
            let mut last = 0;
            find_cut(dir, |run| {
                last = run.seq;
                false
            })?;
            find_cut(dir, at(last))
        }
        BranchPoint::Record(seq) => find_cut(dir, at(*seq)),
        BranchPoint::Step { agent, step } => {
            find_causal_cut(dir, vec![CutSeed::Step { agent: agent.clone(), step: *step }])
        }
        BranchPoint::States { agent, states } => {
            let seed =
                |state: &String| CutSeed::State { agent: agent.clone(), state: state.clone() };
            find_causal_cut(dir, states.iter().map(seed).collect())
        }
    };
    Ok(search?)
}

/// Returns the error for a place that is not there; `last` is the last record.
fn missing(present: &Run, point: &BranchPoint, last: u64) -> BranchError {
    let run = present.workflow_id.clone();
    match point {
        BranchPoint::Now => BranchError::NothingLives { run, seq: last },
        BranchPoint::Record(seq) => BranchError::NoRecord { run, seq: *seq, last },
        BranchPoint::Step { agent, .. } if !has_lived(present, agent) => {
            BranchError::NoAgent { run, agent: agent.clone() }
        }
        BranchPoint::Step { agent, step } => {
            BranchError::NoStep { run, agent: agent.clone(), step: *step }
        }
        BranchPoint::States { agent, states } => {
            let folder = Path::new(&present.scope_dir);
            if let Some(file) = states.iter().find(|state| !folder.join(state).exists()) {
                let folder = present.scope_dir.clone();
                return BranchError::NoFile { file: file.clone(), folder };
            }
            let agents = match agent {
                Some(agent) => format!("{agent} of {run} was never"),
                None => format!("no agent of {run} was"),
            };
            BranchError::NoState { agents, states: states.join(", ") }
        }
    }
}

fn has_lived(run: &Run, agent: &AgentId) -> bool {
    run.agents.contains_key(agent) || run.finished.iter().any(|ended| ended.id == *agent)
}
