//! Agents that are forked together and waited for.

use proptest::prelude::*;
use proptest::sample::select;

use super::{Journal, states};
use crate::agent::AgentOptions;
use crate::decide::finish_join;
use crate::id::{Folder, SessionId};
use crate::join::{Join, JoinCondition, JoinFallback, UnjoinedPolicy};
use crate::settings::{ChildSpec, ForkGroup};
use crate::tests::scene;

pub(super) fn joins() -> impl Strategy<Value = Join> {
    let otherwise = || {
        prop_oneof![
            Just(JoinFallback::Fail),
            Just(JoinFallback::Keep),
            states().prop_map(JoinFallback::State)
        ]
    };
    let need = select(
        &[JoinCondition::All, JoinCondition::Any, JoinCondition::Count(1), JoinCondition::Count(2)]
            [..],
    );
    let rest = select(&[UnjoinedPolicy::Leave, UnjoinedPolicy::Stop][..]);
    let timeout = proptest::option::of(0u64..5000);
    (need, timeout, otherwise(), otherwise(), rest).prop_map(
        |(need, timeout_ms, on_timeout, on_failure, rest)| Join {
            need,
            timeout_ms,
            on_timeout,
            on_failure,
            rest,
        },
    )
}

impl Journal {
    /// Returns the children of a fork that is more than plain.
    pub fn fork_groups(&self, cents: u32) -> Vec<ForkGroup> {
        let child = |state: &str, number: u32| ChildSpec {
            session: SessionId::new(&format!("b{}-{state}-{number}", self.run.seq + 1)),
            cwd: number.is_multiple_of(2).then(|| Folder::parse("x/y").expect("a folder")),
            variables: scene::variables(&[("item", &number.to_string())]),
        };
        let group = |state: &str, many: u32| ForkGroup {
            state: scene::state(state),
            scope: None,
            options: AgentOptions { worktree: many == 2, ..AgentOptions::default() },
            base: None,
            not_before: None,
            agents: (0..many).map(|number| child(state, number)).collect(),
        };
        match cents % 5 {
            0 => vec![group("A.md", 3)],
            1 => vec![group("A.md", 2), group("B.md", 1)],
            _ => Vec::new(),
        }
    }

    /// Resumes all agents whose join is decided.
    pub fn join(&mut self, chance: f64) {
        let waiting = self.run.agents.values().filter(|agent| agent.pending_join().is_some());
        let waiting: Vec<_> = waiting.map(|agent| agent.id.clone()).collect();
        for id in waiting {
            let Some(agent) = self.run.agents.get(&id) else { continue };
            for event in finish_join(&self.run, agent, self.now(), &|_| chance < 0.5) {
                self.record(event);
            }
        }
    }
}
