//! What a graph needs besides itself: Claude Code, further agents.

use super::{Act, Action, Node, Program, Spawn, SpawnTask};

impl Program {
    /// Whether one of its nodes asks Claude Code, itself or by a further agent.
    #[must_use]
    pub fn asks_claude(&self) -> bool {
        let starts_agents = |act: &Act| matches!(act, Act::Spawn(_));
        self.nodes.values().any(|node| node.asks_claude() || node.acts(starts_agents))
    }

    /// Whether one of its nodes starts a further agent in a state of its own, which may ask people.
    #[must_use]
    pub fn starts_agents(&self) -> bool {
        let starts =
            |act: &Act| matches!(act, Act::Spawn(Spawn { task: SpawnTask::State { .. }, .. }));
        self.nodes.values().any(|node| node.acts(starts))
    }
}

impl Node {
    /// Returns whether it has turns of Claude Code that are its own: not those of a state that it starts an
    /// agent in.
    #[must_use]
    pub fn asks_claude(&self) -> bool {
        let asks = |act: &Act| {
            matches!(
                act,
                Act::Reference { .. }
                    | Act::Spawn(Spawn { task: SpawnTask::Prompt { .. }, .. })
                    | Act::World { prompt: Some(_), .. }
            )
        };
        matches!(self, Self::Reference { .. }) || self.acts(asks)
    }

    /// Returns whether one of its consequences is like that.
    fn acts(&self, is: impl Fn(&Act) -> bool + Copy) -> bool {
        match self {
            Self::Action { actions, .. } => actions.iter().any(|action| action.has(is)),
            Self::UserPrompt(prompt) => {
                let mut actions = prompt.responses.values().flat_map(|one| &one.consequence);
                actions.any(|action| action.has(is))
            }
            Self::Conditional { .. } | Self::ValidationGate { .. } | Self::Reference { .. } => {
                false
            }
        }
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
