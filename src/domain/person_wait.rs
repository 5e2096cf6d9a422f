//! The waits of a run that a person can end: for answers and approvals, for signals, and of agents that are held or parked.

use strum::{IntoStaticStr, VariantNames};

use super::agent::{Agent, TurnHold};
use super::awaited_signal::AwaitedSignal;
use super::id::AgentId;
use super::run::{Run, RunStatus};
use super::time::Timestamp;

/// A wait that a person can end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonWait {
    /// The agent that waits.
    pub agent: AgentId,
    /// The time at which the wait began.
    pub since: Timestamp,
    /// The time at which it ends in any case; `None` for no limit.
    pub until: Option<Timestamp>,
    /// The subject of the wait.
    pub subject: PersonWaitSubject,
}

/// The subject of such a wait.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum PersonWaitSubject {
    /// The answer to a question.
    Answer {
        /// The name of the question.
        node: String,
        /// The text of the question.
        question: String,
    },
    /// The approval of a tool call.
    Approval {
        /// The name of the approval.
        name: String,
        /// The call in short.
        call: String,
    },
    /// A signal that its program waits for.
    Signal(AwaitedSignal),
    /// The person who holds the agent.
    Held,
    /// Whatever keeps the agent from going on. It goes on when the run is resumed.
    Parked {
        /// The reason.
        reason: String,
    },
}

impl PersonWaitSubject {
    /// The names of all subjects.
    pub const NAMES: &'static [&'static str] = Self::VARIANTS;

    /// Returns its name for programs.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

/// Returns the waits of a run that a person can end, the longest first; none of a run that has ended.
pub fn person_waits(run: &Run) -> Vec<PersonWait> {
    match run.status {
        RunStatus::Running | RunStatus::Paused => {
            let mut waits: Vec<PersonWait> = run.agents.values().flat_map(of_agent).collect();
            waits.sort_by_key(|wait| wait.since);
            waits
        }
        RunStatus::Completed | RunStatus::Failed => Vec::new(),
    }
}

fn of_agent(agent: &Agent) -> Vec<PersonWait> {
    let wait =
        |since, until, subject| PersonWait { agent: agent.id.clone(), since, until, subject };
    let mut waits = Vec::new();
    if let Some(asked) = agent.question() {
        let (node, question) = (asked.question.node.clone(), asked.question.text.clone());
        let until = asked.late.as_ref().map(|late| late.at);
        waits.push(wait(asked.since, until, PersonWaitSubject::Answer { node, question }));
    }
    waits.extend(agent.open_approvals().map(|asked| {
        let (name, call) = (asked.name(), asked.request.summary());
        wait(asked.since, None, PersonWaitSubject::Approval { name, call })
    }));
    if let Some(program) = agent.program_wait() {
        let signals = AwaitedSignal::all_in(&program.awaiting);
        let of_people = signals.into_iter().filter(AwaitedSignal::is_for_people);
        waits.extend(
            of_people.map(|signal| {
                wait(program.since, program.until, PersonWaitSubject::Signal(signal))
            }),
        );
    }
    if let Some(since) = agent.orders.held() {
        waits.push(wait(since, None, PersonWaitSubject::Held));
    }
    if let Some(TurnHold::Person { reason }) = &agent.hold {
        let subject = PersonWaitSubject::Parked { reason: reason.clone() };
        waits.push(wait(agent.since, None, subject));
    }
    waits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::apply::tests::scene::{Scene, tag};
    use crate::domain::transition::TagName;

    #[test]
    fn parked_agents_wait_for_a_person_until_the_run_ends() {
        let mut scene = Scene::begin();
        scene.take("main", tag(TagName::Fork, "NEXT.md", "WORK.md"));
        assert_eq!(person_waits(&scene.run), []);
        let mut agent = scene.agent("main.1").clone();
        agent.hold = Some(TurnHold::Person { reason: "broken".to_owned() });
        scene.run.agents.insert(agent.clone());
        let waits = person_waits(&scene.run);
        let [PersonWait { agent: id, since, subject, .. }] = &waits[..] else {
            panic!("{waits:?}")
        };
        assert_eq!((id, *since), (&agent.id, agent.since));
        let PersonWaitSubject::Parked { reason } = subject else { panic!("{subject:?}") };
        assert_eq!((reason.as_str(), subject.name()), ("broken", "parked"));
        scene.run.status = RunStatus::Completed;
        assert_eq!(person_waits(&scene.run), []);
    }
}
