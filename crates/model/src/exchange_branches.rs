//! The branches of a run in the repository by which its hosts exchange work.

use super::id::{AgentId, RunId};
use super::worktree;

/// The last part of the branch with the commit that a run began at.
const BASE: &str = "base";

/// The last part of the branch of a run's own directory.
const TRUNK: &str = "trunk";

/// Returns the branch of an agent's worktree, or of the run's own directory.
///
/// # Errors
/// The reason why git would refuse a branch with the run's name, and the remedy.
pub fn work_branch(run: &RunId, tree: Option<&AgentId>) -> Result<String, String> {
    match tree {
        Some(agent) => worktree::branch(run, agent),
        None => Ok(format!("{}{TRUNK}", run_branches(run)?)),
    }
}

/// Returns the branch with the commit that a run began at.
///
/// # Errors
/// The reason why git would refuse a branch with the run's name, and the remedy.
pub fn base_branch(run: &RunId) -> Result<String, String> {
    Ok(format!("{}{BASE}", run_branches(run)?))
}

/// Returns the beginning of the names of a run's branches.
///
/// # Errors
/// The reason why git would refuse a branch with the run's name, and the remedy.
pub fn run_branches(run: &RunId) -> Result<String, String> {
    let of_main = worktree::branch(run, &AgentId::main())?;
    Ok(of_main.trim_end_matches(AgentId::main().as_str()).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_of_a_run_have_a_common_beginning() {
        let run = RunId::parse("r").expect("an id");
        assert_eq!(base_branch(&run), Ok("raymond/r/base".to_owned()));
        assert_eq!(work_branch(&run, None), Ok("raymond/r/trunk".to_owned()));
        let child = AgentId::main().child(1);
        assert_eq!(work_branch(&run, Some(&child)), Ok("raymond/r/main.1".to_owned()));
        assert!(base_branch(&RunId::parse("a..b").expect("an id")).is_err());
    }
}
