//! The worktrees of a run's agents: what their branches are called, and when one may go.
//!
//! Nobody's work may be lost, so a tree goes only where all of it is somewhere else: in a commit that
//! another branch holds, or, where that is asked for, in one that was made to keep it.

use super::id::{AgentId, RunId};

/// The namespace of the branches, and of the refs that keep what a removed worktree held.
const SPACE: &str = "raymond";

/// The branch of an agent's worktree.
///
/// # Errors
/// Why git would not take a branch of the run's name, and what to do.
pub fn branch(run: &RunId, agent: &AgentId) -> Result<String, String> {
    let id = run.as_str();
    let wrong = if id.contains("..") {
        "has `..` in it"
    } else if id.ends_with(".lock") {
        "ends in `.lock`"
    } else {
        return Ok(format!("{SPACE}/{id}/{}", last(agent)));
    };
    Err(format!(
        "git takes no branch {SPACE}/{id}/{agent}, because the run's id {wrong}: choose another --id"
    ))
}

/// The ref that keeps what an agent's worktree held when it was removed; `number` counts those before it.
#[must_use]
pub fn keeping(run: &RunId, agent: &AgentId, number: u32) -> String {
    let name = format!("refs/{SPACE}/{run}/{}", last(agent));
    if number == 0 { name } else { format!("{name}-{number}") }
}

/// An agent as the last part of a branch's name, which has no `~` in it.
fn last(agent: &AgentId) -> String {
    agent.file_name().replace('~', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: &str) -> RunId {
        RunId::parse(id).expect("an id")
    }

    #[test]
    fn a_branch_has_the_names_of_the_run_and_of_the_agent() {
        let agent = AgentId::main().child(2);
        assert_eq!(branch(&run("tour-1.x"), &agent), Ok("raymond/tour-1.x/main.2".to_owned()));
        let far = (0..200).fold(AgentId::main(), |agent, _| agent.child(1));
        let name = branch(&run("r"), &far).expect("a branch");
        assert!(!name.contains('~') && name.len() < 120, "{name}");
        for (id, wrong) in [("a..b", "has `..` in it"), ("a.lock", "ends in `.lock`")] {
            let why = branch(&run(id), &agent).expect_err("refused");
            assert!(why.contains(wrong) && why.ends_with("choose another --id"), "{why}");
        }
    }

    #[test]
    fn what_is_kept_again_has_a_ref_of_its_own() {
        let keeping = |number| keeping(&run("r"), &AgentId::main(), number);
        assert_eq!(keeping(0), "refs/raymond/r/main");
        assert_eq!(keeping(2), "refs/raymond/r/main-2");
    }
}
