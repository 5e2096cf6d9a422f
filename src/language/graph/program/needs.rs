//! What a graph needs besides itself: Claude Code, further agents.

use super::{Act, Action, Node, Program, Spawn, SpawnTask};

impl Program {
    /// Whether one of its nodes asks Claude Code, itself or by a further agent.
    #[must_use]
    pub fn asks_claude(&self) -> bool {
        let refers = |node: &Node| matches!(node, Node::Reference { .. });
        let asks = |act: &Act| {
            matches!(
                act,
                Act::Reference { .. } | Act::Spawn(_) | Act::World { prompt: Some(_), .. }
            )
        };
        self.nodes.values().any(refers) || self.acts(asks)
    }

    /// Whether one of its nodes starts a further agent in a state of its own, which may ask people.
    #[must_use]
    pub fn starts_agents(&self) -> bool {
        self.acts(|act| matches!(act, Act::Spawn(Spawn { task: SpawnTask::State { .. }, .. })))
    }

    /// Whether one of its consequences is like that.
    fn acts(&self, is: impl Fn(&Act) -> bool + Copy) -> bool {
        self.nodes.values().any(|node| match node {
            Node::Action { actions, .. } => actions.iter().any(|action| action.has(is)),
            Node::UserPrompt(prompt) => {
                let mut actions = prompt.responses.values().flat_map(|one| &one.consequence);
                actions.any(|action| action.has(is))
            }
            Node::Conditional { .. } | Node::ValidationGate { .. } | Node::Reference { .. } => {
                false
            }
        })
    }
}

impl Action {
    fn has(&self, is: impl Fn(&Act) -> bool + Copy) -> bool {
        match &self.act {
            Act::ForEach { actions, .. } => actions.iter().any(|action| action.has(is)),
            act => is(act),
        }
    }
}
