//! A workflow in which one agent becomes many, and all of them wait in the same state.
//!
//! Each agent forks half of those it stands for and continues as the other half, and all go down the same
//! number of levels. Each agent has a permit, so none delays the creation of another. Then the last state can
//! be made one in which all agents loop.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::Fallible;
use crate::bench_folder::{BenchFolder, WorkflowFolder};

const LAST: &str = "LAST.md";
const REPLIES: &str = "replies.yaml";

/// The workflow, and its size.
#[derive(Debug)]
pub(crate) struct ForkTree {
    pub(crate) workflow: WorkflowFolder,
    /// The number of steps until all agents wait.
    pub(crate) steps: usize,
}

/// The part of the tree below one agent: the number of levels, and of agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ForkTreeNode {
    levels: u32,
    agents: usize,
}

impl ForkTreeNode {
    /// Returns the next node of this agent, and the node of its child if it has one.
    fn next(self) -> Option<(Self, Option<Self>)> {
        let levels = self.levels.checked_sub(1)?;
        let forked = self.agents / 2;
        let node = |agents| Self { levels, agents };
        Some((node(self.agents - forked), (forked > 0).then(|| node(forked))))
    }

    fn state(self) -> String {
        if self.levels == 0 {
            LAST.to_owned()
        } else {
            format!("L{}N{}.md", self.levels, self.agents)
        }
    }

    fn reply(self) -> Option<String> {
        Some(match self.next()? {
            (next, None) => format!("<goto>{}</goto>", next.state()),
            (next, Some(child)) => {
                format!("<fork next=\"{}\">{}</fork>", next.state(), child.state())
            }
        })
    }

    fn steps(self) -> usize {
        let below =
            |(next, child): (Self, Option<Self>)| 1 + next.steps() + child.map_or(0, Self::steps);
        self.next().map_or(0, below)
    }

    /// Adds this node and all different ones below, without the last, to `found`.
    fn all(self, found: &mut BTreeSet<Self>) {
        if let Some((next, child)) = self.next()
            && found.insert(self)
        {
            next.all(found);
            if let Some(child) = child {
                child.all(found);
            }
        }
    }
}

/// Writes the workflow with its scripted replies.
pub(crate) fn grow(place: &BenchFolder, agents: usize) -> Fallible<ForkTree> {
    let workflow = place.workflow()?;
    let top = ForkTreeNode { levels: agents.next_power_of_two().trailing_zeros(), agents };
    let mut nodes = BTreeSet::new();
    top.all(&mut nodes);
    let mut replies = format!("{LAST}:\n  - {{ reply: never, delay: 20m, repeat: true }}\n");
    workflow.write(LAST, "Wait here.")?;
    for (node, reply) in nodes.into_iter().filter_map(|node| Some((node, node.reply()?))) {
        let state = if node == top { "START.md".to_owned() } else { node.state() };
        workflow.write(&state, "Fork.")?;
        writeln!(replies, "{state}:\n  - {{ reply: '{reply}', repeat: true }}")?;
    }
    workflow.write(REPLIES, &replies)?;
    Ok(ForkTree { workflow, steps: top.steps() })
}

impl ForkTree {
    /// Makes the last state a loop, from the next start on.
    pub(crate) fn loop_in_last_state(&self) -> Fallible<()> {
        let reply = format!("<goto>{LAST}</goto>");
        self.workflow
            .write(REPLIES, &format!("{LAST}:\n  - {{ reply: '{reply}', repeat: true }}\n"))
    }
}
