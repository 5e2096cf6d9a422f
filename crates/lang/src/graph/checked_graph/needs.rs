//! The needs of a graph besides itself: Claude Code, further agents.

use super::{ActionKind, AgentSpawn, Graph, GraphAction, GraphNode, ParallelNode, SpawnTask};

impl Graph {
    /// Returns whether one of its nodes starts a further agent in a state of its own, which may ask people.
    pub fn starts_agents(&self) -> bool {
        let starts = |act: &ActionKind| {
            matches!(act, ActionKind::Spawn(AgentSpawn { task: SpawnTask::State { .. }, .. }))
        };
        let has_state = |node: &GraphNode| match node {
            GraphNode::Parallel(node) => {
                node.branches.iter().any(|one| matches!(one.task, SpawnTask::State { .. }))
            }
            _ => false,
        };
        self.nodes.values().any(|node| node.has_act(starts) || has_state(node))
    }
}

impl GraphNode {
    /// Returns whether it has Claude turns of its own. The turns of an agent that it starts in a state do
    /// not count.
    pub fn asks_claude(&self) -> bool {
        let asks = |act: &ActionKind| {
            matches!(
                act,
                ActionKind::Reference { .. }
                    | ActionKind::Prose { .. }
                    | ActionKind::Spawn(AgentSpawn { task: SpawnTask::Prompt { .. }, .. })
                    | ActionKind::SpawnParallel(_)
                    | ActionKind::World { prompt: Some(_), .. }
            )
        };
        let prompts = |node: &ParallelNode| {
            node.branches.iter().any(|one| matches!(one.task, SpawnTask::Prompt { .. }))
        };
        match self {
            Self::Reference { .. } => true,
            Self::Parallel(node) => prompts(node),
            Self::Action { .. }
            | Self::Conditional { .. }
            | Self::UserPrompt(_)
            | Self::ValidationGate { .. } => self.has_act(asks),
        }
    }

    /// Returns whether `is` is true of one of its consequences.
    fn has_act(&self, is: impl Fn(&ActionKind) -> bool + Copy) -> bool {
        match self {
            Self::Action { actions, .. } => actions.iter().any(|action| action.has_act(is)),
            Self::UserPrompt(prompt) => {
                let mut actions = prompt.responses.values().flat_map(|one| &one.consequence);
                actions.any(|action| action.has_act(is))
            }
            Self::Conditional { .. }
            | Self::ValidationGate { .. }
            | Self::Parallel(_)
            | Self::Reference { .. } => false,
        }
    }
}

impl GraphAction {
    fn has_act(&self, is: impl Fn(&ActionKind) -> bool + Copy) -> bool {
        match &self.act {
            ActionKind::ForEach { actions, .. } => actions.iter().any(|action| action.has_act(is)),
            act => is(act),
        }
    }
}
