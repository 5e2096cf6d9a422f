//! The arguments of `branch`.

use clap::Args;

use super::{DirArgs, NamedRunArgs, variable};
use crate::cli::options::RunOptions;
use crate::domain::id::{AgentId, RunId, StateKind, StateName};
use crate::runtime::branch::BranchPoint;

pub(super) const BRANCH_HELP: &str = "Examples:
  raymond branch RUN --edit REVIEW.md        again from the first step in REVIEW.md, with the file as it is now
  raymond branch RUN --at main.2#5           again from the fifth step of main.2
  raymond branch RUN --at 120 --model opus   again from after record 120, with another model
  raymond branch RUN --at 120 --var tone=dry --id second-try

The new run shares the records of the other one up to there, and nothing before is asked again. Agents that lived
there live in it, each in a session of its own that begins at the last message before. A turn that was running there
is asked again. The other run is not changed, and may be live. `raymond log RUN --json` shows the numbers of records,
`raymond show RUN AGENT` those of steps.";

/// Options of `branch`.
#[derive(Debug, Clone, Args)]
pub struct BranchArgs {
    /// The run.
    #[command(flatten)]
    pub named: NamedRunArgs,

    /// Branch off after this record, or before this step: 120, or main.2#5 [default: with --edit before the first step
    /// in that state, else now]
    #[arg(long, value_name = "RECORD|AGENT#STEP", value_parser = point)]
    pub at: Option<BranchPoint>,

    /// Take this file of the workflow as it is now; repeatable
    #[arg(long, value_name = "FILE")]
    pub edit: Vec<String>,

    /// Text for {{KEY}} in every state from now on; repeatable
    #[arg(long = "var", value_name = "KEY=VALUE", value_parser = variable)]
    pub variables: Vec<(String, String)>,

    /// Name the new run instead of letting raymond choose an id
    #[arg(long, value_parser = RunId::parse)]
    pub id: Option<RunId>,

    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,

    /// The options that each resume may change.
    #[command(flatten)]
    pub options: RunOptions,
}

impl BranchArgs {
    /// Returns the place where the run branches off.
    ///
    /// # Errors
    /// A sentence, if an edited file is no state, so that the place is not known.
    pub fn point(&self) -> Result<BranchPoint, String> {
        if let Some(point) = &self.at {
            return Ok(point.clone());
        }
        if self.edit.is_empty() {
            return Ok(BranchPoint::Now);
        }
        match self.edit.iter().find(|file| !is_state(file)) {
            None => Ok(BranchPoint::States(self.edit.clone())),
            Some(other) => Err(format!(
                "{other} is no state, so say where to branch off: --at RECORD, or --at AGENT#STEP"
            )),
        }
    }
}

/// Returns whether a file of a workflow is a state.
fn is_state(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    StateName::parse(name).is_ok_and(|name| StateKind::of(&name).is_some())
}

/// Reads a place: the number of a record, or an agent and its step.
fn point(text: &str) -> Result<BranchPoint, String> {
    if let Ok(seq) = text.parse::<u64>() {
        return if seq > 0 { Ok(BranchPoint::Record(seq)) } else { Err(wrong_point()) };
    }
    let (agent, step) = text.split_once('#').ok_or_else(wrong_point)?;
    let agent = AgentId::parse(agent).map_err(|error| error.to_string())?;
    let step = step.parse().ok().filter(|&step| step > 0).ok_or_else(wrong_point)?;
    Ok(BranchPoint::Step { agent, step })
}

fn wrong_point() -> String {
    "write the number of a record, such as 120, or an agent and its step, such as main.2#5"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_record_or_step_of_agent() {
        assert_eq!(point("120"), Ok(BranchPoint::Record(120)));
        let agent = AgentId::parse("main.2").expect("an id");
        assert_eq!(point("main.2#5"), Ok(BranchPoint::Step { agent, step: 5 }));
        for wrong in ["0", "main.2", "x#5", "main#0", "main#", ""] {
            assert!(point(wrong).is_err(), "{wrong}");
        }
    }
}
