//! The differences of a killed and resumed run from one without a kill, and the sessions of the agents of a branch.

use std::collections::BTreeMap;

use super::agent::Agent;
use super::branch::BranchedAgent;
use super::id::{AgentId, SessionId, StepMode};
use super::observed_run::{ObservedEnding, ObservedRun};
use super::run::Run;
use super::session::SessionOrigin;
use super::tool_call::one_line;
use super::turn::FailureCause;

/// The most kills of one run. Of a longer one, records at equal distances are taken.
const MAX_KILLS: u64 = 200;

/// The endings of the agents of a run.
pub type AgentEndings = BTreeMap<AgentId, ObservedEnding>;

/// Returns the records after which a run of so many is killed.
pub fn killed_records(records: u64, is_paused: bool) -> impl Iterator<Item = u64> {
    let step = records.div_ceil(MAX_KILLS).max(1);
    // A run that is paused would go on beyond its pause if it were killed after that.
    let end = if is_paused { records } else { records + 1 };
    (1..end).step_by(usize::try_from(step).unwrap_or(usize::MAX))
}

/// Returns the first difference of a run that was killed and resumed from the same run without a kill. `again` are the
/// endings of a second run without one: results that differ there already are not compared.
pub fn resumed_difference(
    run: &ObservedRun,
    before: &ObservedRun,
    again: &AgentEndings,
) -> Option<String> {
    if let Some(agent) = run.agents.iter().find(|agent| !before.agents.contains(*agent)) {
        return Some(format!("the agent {agent} was not there before"));
    }
    before.endings.iter().find_map(|(agent, ending)| {
        let found = run.endings.get(agent);
        // The text of a failure may count what others had come to, which depends on the time.
        let is_result = matches!(ending, ObservedEnding::Result(_));
        let is_stable = is_result && again.get(agent) == Some(ending);
        let is_same =
            if is_stable { found == Some(ending) } else { kind(found) == kind(Some(ending)) };
        let (now, then) = (shown_ending(found), shown_ending(Some(ending)));
        (!is_same).then(|| format!("{agent} {now}, and without the kill it {then}"))
    })
}

/// Returns an ending in words.
fn shown_ending(ending: Option<&ObservedEnding>) -> String {
    match ending {
        None => "did not end".to_owned(),
        Some(ObservedEnding::Result(text)) => format!("ended with the result {}", one_line(text)),
        Some(ObservedEnding::Failure { cause, message, .. }) => {
            let cause = cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
            format!("failed{cause}: {}", one_line(message))
        }
    }
}

/// Returns the kind of an ending, and the cause of a failure.
fn kind(ending: Option<&ObservedEnding>) -> (&'static str, Option<FailureCause>) {
    match ending {
        None => ("none", None),
        Some(ObservedEnding::Result(_)) => ("result", None),
        Some(ObservedEnding::Failure { cause, .. }) => ("failure", *cause),
    }
}

// The agents of a run that branches off, each with its own sessions.

/// Returns the sessions of the agents of a branch.
pub fn branched_agents(
    run: &Run,
    mut new_session: impl FnMut() -> SessionId,
) -> Vec<BranchedAgent> {
    let mut branched = |agent: &Agent| BranchedAgent {
        agent: agent.id.clone(),
        sessions: (0..=agent.stack.len()).map(|_| new_session()).collect(),
    };
    run.agents.values().map(&mut branched).collect()
}

/// Returns the sessions that turns of a branch copy, each with its agent.
pub fn copied_sessions(run: &Run) -> impl Iterator<Item = (&AgentId, &SessionId)> {
    run.agents.unordered().flat_map(|agent| {
        let asks =
            agent.mailbox().is_some() || agent.current_state.steps() == Some(StepMode::Asked);
        let current = asks.then_some(&agent.session.origin);
        let returns = agent.stack.iter().filter_map(|frame| frame.unbegun.as_ref());
        current.into_iter().chain(returns).filter_map(|origin| match origin {
            SessionOrigin::Fresh | SessionOrigin::Rebuilt => None,
            SessionOrigin::Resumed => Some((&agent.id, &agent.session.id)),
            SessionOrigin::Branch { from, .. } => Some((&agent.id, from)),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str) -> ObservedEnding {
        ObservedEnding::Result(text.to_owned())
    }

    fn failure(message: &str) -> ObservedEnding {
        ObservedEnding::Failure { cause: Some(FailureCause::Crash), message: message.to_owned() }
    }

    fn run(endings: &[(&str, ObservedEnding)]) -> ObservedRun {
        let agent = |name: &&str| AgentId::parse(name).expect("an agent");
        let endings = endings.iter().map(|(name, ending)| (agent(name), ending.clone()));
        let endings: AgentEndings = endings.collect();
        let agents = endings.keys().cloned().collect();
        ObservedRun { agents, endings, ..ObservedRun::default() }
    }

    #[test]
    fn each_record_is_killed_after_or_some_of_many() {
        let records = |records, is_paused| killed_records(records, is_paused).collect::<Vec<_>>();
        assert_eq!((records(3, false), records(3, true)), (vec![1, 2, 3], vec![1, 2]));
        assert_eq!(records(0, false), Vec::<u64>::new());
        assert_eq!((records(401, false).len(), records(401, false)[1]), (134, 4));
    }

    #[test]
    fn other_agent_ending_or_stable_result_is_a_difference() {
        let before = run(&[("main", result("a"))]);
        let differs = |now: &ObservedRun, again: &ObservedRun| {
            resumed_difference(now, &before, &again.endings)
        };
        assert_eq!(differs(&before, &before), None);
        let other = run(&[("main", result("b"))]);
        let why = "main ended with the result b, and without the kill it ended with the result a";
        assert_eq!(differs(&other, &before).as_deref(), Some(why));
        assert_eq!(differs(&other, &other), None, "the result is not stable");
        let failed = run(&[("main", failure("x"))]);
        assert!(
            differs(&failed, &other).is_some_and(|why| why.starts_with("main failed (crash): x"))
        );
        let more = run(&[("main", result("a")), ("main.1", result("b"))]);
        assert!(differs(&more, &before).is_some_and(|why| why.contains("the agent main.1")));
        let killed = run(&[("main", failure("1 of 2"))]);
        assert_eq!(
            resumed_difference(&run(&[("main", failure("2 of 2"))]), &killed, &killed.endings),
            None
        );
    }
}
