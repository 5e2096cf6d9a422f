//! Workflows for the fake that answers with its prompt: the text of each state is its transition.

use crate::Fallible;
use crate::bench_folder::{BenchFolder, WorkflowFolder};

/// Writes a workflow of one agent that goes through so many states; the last one ends it.
pub(crate) fn alone(place: &BenchFolder, steps: usize) -> Fallible<WorkflowFolder> {
    switching(place, steps, ["", ""])
}

/// Writes the same workflow, with two kinds of frontmatter in turn.
pub(crate) fn switching(
    place: &BenchFolder,
    steps: usize,
    heads: [&str; 2],
) -> Fallible<WorkflowFolder> {
    let workflow = place.workflow()?;
    states(&workflow, "START.md", steps, heads)?;
    Ok(workflow)
}

/// Writes a workflow of parallel agents, each a chain of so many states. Also returns the number of steps:
/// one more for each agent that is forked, and the end of the agent that forks.
pub(crate) fn beside(
    place: &BenchFolder,
    agents: usize,
    each: usize,
) -> Fallible<(WorkflowFolder, usize)> {
    let workflow = place.workflow()?;
    states(&workflow, "S1.md", each, ["", ""])?;
    for agent in 1..=agents {
        let name = if agent == 1 { "START.md".to_owned() } else { format!("F{agent}.md") };
        let next = if agent == agents { "END.md".to_owned() } else { format!("F{}.md", agent + 1) };
        workflow.write(&name, &format!("<fork next=\"{next}\">S1.md</fork>"))?;
    }
    workflow.write("END.md", "<result>all are on their way</result>")?;
    Ok((workflow, agents * each + agents + 1))
}

/// The number of agents that are forked in one call. The states of the call are used again, because a workflow has
/// fewer files than the parent has children.
const FORKS_PER_CALL: usize = 100;

/// Writes a workflow of a parent that forks so many agents one after another, each with one turn. Also
/// returns the number of steps.
pub(crate) fn forked(place: &BenchFolder, agents: usize) -> Fallible<(WorkflowFolder, usize)> {
    let workflow = place.workflow()?;
    workflow.write("WORKER.md", "<result>done</result>")?;
    for fork in 1..=FORKS_PER_CALL {
        let next =
            if fork == FORKS_PER_CALL { "BACK.md".to_owned() } else { format!("F{}.md", fork + 1) };
        workflow
            .write(&format!("F{fork}.md"), &format!("<fork next=\"{next}\">WORKER.md</fork>"))?;
    }
    workflow.write("BACK.md", "<result>forked</result>")?;
    let calls = agents / FORKS_PER_CALL;
    for call in 1..=calls {
        let name = if call == 1 { "START.md".to_owned() } else { format!("C{call}.md") };
        let next = if call == calls { "END.md".to_owned() } else { format!("C{}.md", call + 1) };
        workflow.write(&name, &format!("<call return=\"{next}\">F1.md</call>"))?;
    }
    workflow.write("END.md", "<result>all are forked</result>")?;
    Ok((workflow, 2 * agents + 2 * calls + 1))
}

fn states(workflow: &WorkflowFolder, first: &str, steps: usize, heads: [&str; 2]) -> Fallible<()> {
    for step in 1..=steps {
        let name = if step == 1 { first.to_owned() } else { format!("S{step}.md") };
        let text = if step == steps {
            "<result>done</result>".to_owned()
        } else {
            format!("<goto>S{}.md</goto>", step + 1)
        };
        workflow.write(&name, &format!("{}{text}", heads[step % 2]))?;
    }
    Ok(())
}
