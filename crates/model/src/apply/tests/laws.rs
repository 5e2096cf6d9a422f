//! Invariants of every run, however chance drives it and whatever it is offered besides.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::budget::OpenCalls;
use crate::event::AgentFailed;
use crate::settings::forked_count;
use crate::tests::plausible::{Journal, pushes, states, transitions};
use crate::turn::TurnCost;

/// Returns the cost of all agents, live and finished.
fn cost_of_agents(run: &Run) -> Usd {
    let live = run.agents.values().map(|agent| agent.cost_usd);
    let mut sum = Usd::ZERO;
    live.chain(run.finished.iter().map(|agent| agent.cost_usd)).for_each(|cost| sum += cost);
    sum
}

/// Returns the ends of the agents, regardless of later notifications.
fn ends(run: &Run) -> Vec<(&AgentId, &AgentEnding, Usd)> {
    run.finished.iter().map(|ended| (&ended.id, &ended.ending, ended.cost_usd)).collect()
}

/// Returns the agents that differ: changed, born or ended.
fn changed(before: &Run, after: &Run) -> BTreeSet<AgentId> {
    let all = before.agents.keys().chain(after.agents.keys());
    all.filter(|id| before.agents.get(id) != after.agents.get(id)).cloned().collect()
}

/// Returns the agents a record may change: the one it names, and the child it creates.
fn may_change(before: &Run, event: &Event) -> BTreeSet<AgentId> {
    let mut named: BTreeSet<AgentId> = event.agent().cloned().into_iter().collect();
    if let Event::StepFinished(step) = event
        && step.transition.tag() == TagName::Fork
    {
        let parent = &before.agents[&step.turn.agent];
        let born = u32::try_from(forked_count(&step.children)).expect("a few");
        named.extend((1..=born).map(|number| parent.id.child(parent.forked_count + number)));
    }
    let calls = OpenCalls::of(&before.agents, &before.ended_calls);
    let around = event.agent().map(|agent| calls.around(agent)).unwrap_or_default();
    named.extend(around.into_iter().map(|call| call.caller.clone()));
    named.extend(of_forks(before, event));
    named.extend(of_programs(before, event));
    if let Event::RunResumed { .. } = event {
        let parked = before.agents.values().filter(|agent| agent.parked_reason().is_some());
        named.extend(parked.map(|agent| agent.id.clone()));
    }
    if let Event::AgentFailed(failure) = event
        && failure.ends_run
    {
        named.extend(before.agents.keys().cloned());
    }
    named
}

/// Returns the other agents that a record about a forked agent changes: the parent, which counts the end, and the
/// agents that a join stopped.
fn of_forks(before: &Run, event: &Event) -> BTreeSet<AgentId> {
    if let Event::JoinFinished(joined) = event {
        return joined.stopped.iter().map(|stopped| stopped.agent.clone()).collect();
    }
    let parent = event.agent().and_then(|id| AgentId::parse(id.parent()?).ok());
    parent.filter(|parent| before.agents.contains_key(parent)).into_iter().collect()
}

/// Returns the agents that a record changes with its agent's program: both sides of a request, those that are told
/// of an answer or an end, and those whose work is no longer wanted.
fn of_programs(before: &Run, event: &Event) -> BTreeSet<AgentId> {
    let mut named = BTreeSet::new();
    if let Event::FactsSeen { .. } = event {
        named.extend(
            before
                .agents
                .values()
                .filter(|subject| subject.program().is_some())
                .map(|subject| subject.id.clone()),
        );
    }
    let Some(subject) = event.agent().and_then(|id| before.agents.get(id)) else { return named };
    if let Some(program) = subject.program() {
        named.extend(program.handles.values().cloned());
    }
    if matches!(event, Event::RoleRequested(_) | Event::RoleDelegated(_)) {
        named.insert(subject.id.child(subject.forked_count + 1));
    }
    let parent = subject.id.parent().map(agent_id);
    let waits = |parent: &AgentId| {
        let parent = before.agents.get(parent);
        parent.is_some_and(|parent| {
            subject.mailbox().is_some() || parent.awaited_agent() == Some(&subject.id)
        })
    };
    named.extend(parent.filter(waits));
    named
}

/// Checks the changes that an accepted record made to a run.
fn check_accepted(before: &Run, record: &Record, after: &Run) -> Result<(), TestCaseError> {
    let (changed, allowed) = (changed(before, after), may_change(before, &record.event));
    prop_assert!(changed.is_subset(&allowed), "{changed:?} changed by {record:?}");
    prop_assert_eq!(after.seq, before.seq + 1);
    prop_assert_eq!(cost_of_agents(after), after.total_cost_usd);
    prop_assert!(ends(after).starts_with(&ends(before)));
    prop_assert_eq!(after.agents.is_empty(), !after.can_resume());
    for (owner, share) in &after.shares {
        let live = after.agents.keys().filter(|agent| agent.is_within(owner)).count();
        prop_assert_eq!(share.live as usize, live, "in the share of {}", owner);
        prop_assert!(live > 0 && share.spent_usd <= after.total_cost_usd);
    }
    Ok(())
}

/// Returns events about agents that may or may not live, at turns that may or may not be due.
fn any_event() -> impl Strategy<Value = Event> {
    let agents = proptest::sample::select(&["main", "main.1", "main.2", "main.1.1", "main.7"][..]);
    let turn = (agents, 0u64..5, 0u32..3).prop_map(|(agent, step, turn)| TurnId {
        agent: agent_id(agent),
        step,
        turn,
    });
    let session = proptest::option::of("s[0-9]").prop_map(|id| id.map(|id| SessionId::new(&id)));
    let pieces = (turn, states(), transitions(), session, 0u32..100, 0..5u8);
    pieces.prop_map(|(turn, state, transition, session, cents, kind)| {
        let cost_usd = Usd::from_dollars(f64::from(cents) / 100.0);
        let at = session.is_some().then_some(Timestamp(u64::MAX));
        let (text, message) = (String::new(), None);
        match kind {
            0 | 1 => Event::StepFinished(StepFinished {
                turn,
                state,
                transition,
                implicit: false,
                overruled: None,
                without_turn: false,
                evaluator: None,
                cost: TurnCost { amount: cost_usd, ..TurnCost::default() },
                session_id: SessionId::new("s"),
                message,
                shown: Vec::new(),
                new_session: session,
                options: Box::default(),
                children: Vec::new(),
                call_budget_usd: cents.is_multiple_of(2).then_some(cost_usd),
                restarted: None,
            }),
            2 => Event::TurnRejected(TurnRejected {
                turn,
                state,
                violation: text.clone(),
                reminder: text,
                cost: TurnCost { amount: cost_usd, ..TurnCost::default() },
                message,
            }),
            3 => Event::TurnFailed(TurnFailed {
                turn,
                state,
                cause: FailureCause::Crash,
                message: text,
                cost: TurnCost { amount: cost_usd, ..TurnCost::default() },
                session,
                not_before: at,
                counts: true,
            }),
            _ => Event::AgentFailed(AgentFailed {
                turn,
                state,
                cause: FailureCause::Crash,
                error: text,
                cost: TurnCost { amount: cost_usd, ..TurnCost::default() },
                ends_run: cents % 2 == 0,
            }),
        }
    })
}

proptest! {
    #[test]
    fn replaying_records_gives_same_run(pushes in pushes(40)) {
        let journal = Journal::of(&pushes);
        let mut records = journal.records();
        let (mut run, _) = begin(records.next().expect("a first record")).expect("a start");
        for (seq, record) in (2..).zip(records) {
            prop_assert_eq!(record.seq, seq);
            prop_assert!(apply(&mut run, record).is_ok());
        }
        prop_assert_eq!(run, journal.run);
    }

    #[test]
    fn record_changes_only_agents_it_names(pushes in pushes(40)) {
        let journal = Journal::of(&pushes);
        for (before, record) in &journal.records {
            if let Some(before) = before {
                let mut after = before.clone();
                apply(&mut after, record).expect("it could happen");
                check_accepted(before, record, &after)?;
            }
        }
    }

    #[test]
    fn effects_name_only_agents_of_their_record(pushes in pushes(40)) {
        for (before, record) in Journal::of(&pushes).records {
            let Some(mut run) = before else { continue };
            let allowed = may_change(&run, &record.event);
            let resumed = matches!(record.event, Event::RunResumed { .. });
            for effect in apply(&mut run, &record).expect("it could happen") {
                match effect {
                    Effect::Proceed(id)
                    | Effect::Ask(id)
                    | Effect::StopAgent(id)
                    | Effect::AwaitApproval(id)
                    | Effect::TellApproval { agent: id, .. }
                    | Effect::TellMessage { agent: id, .. } => {
                        prop_assert!(run.agents.contains_key(&id));
                        prop_assert!(resumed || allowed.contains(&id));
                    }
                    Effect::Retire(id) | Effect::Discard(id) => {
                        prop_assert!(!run.agents.contains_key(&id));
                    }
                    Effect::Warn { agent, .. } => prop_assert!(allowed.contains(&agent)),
                    Effect::End | Effect::Abort => prop_assert!(run.agents.is_empty()),
                    Effect::Hold | Effect::Stop => prop_assert_eq!(&allowed, &BTreeSet::new()),
                    Effect::AwaitLimit => prop_assert!(run.limited_until.is_some()),
                }
            }
        }
    }

    #[test]
    fn no_two_agents_share_a_session(pushes in pushes(40)) {
        let run = Journal::of(&pushes).run;
        let sessions: BTreeSet<_> = run.agents.values().map(|agent| &agent.session.id).collect();
        prop_assert_eq!(sessions.len(), run.agents.len());
    }

    #[test]
    fn repeated_record_is_refused(pushes in pushes(25)) {
        for (before, record) in Journal::of(&pushes).records {
            let Some(mut run) = before else { continue };
            apply(&mut run, &record).expect("it could happen");
            let goes_on = matches!(&record.event, Event::TurnFailed(e) if e.session.is_none())
                || matches!(
                    &record.event,
                    Event::AgentParked(_)
                        | Event::TurnHeld(_)
                        | Event::RoleRequested(_)
                        | Event::ProgramLogged(_)
                );
            if record.event.agent().is_some() && !goes_on {
                let after = run.clone();
                let repeated = Record { seq: run.seq + 1, ..record };
                prop_assert!(apply(&mut run, &repeated).is_err());
                prop_assert_eq!(run, after);
            }
        }
    }

    #[test]
    fn arbitrary_record_is_applied_completely_or_not_at_all(
        pushes in pushes(12),
        events in proptest::collection::vec((any_event(), any::<bool>(), any::<u64>()), 1..40),
    ) {
        let mut run = Journal::of(&pushes).run;
        for (event, next, number) in events {
            let seq = if next { run.seq + 1 } else { number };
            let record = Record { kept_session: None, seq, at: Timestamp(number), folder: None, snapshot: None, placed: Vec::new(), event };
            let before = run.clone();
            if apply(&mut run, &record).is_ok() {
                check_accepted(&before, &record, &run)?;
            } else {
                prop_assert_eq!(run.clone(), before);
            }
        }
    }

    #[test]
    fn arbitrary_event_is_refused_as_first_record(event in any_event(), seq in any::<u64>()) {
        let record = Record { kept_session: None, seq, at: Timestamp(0), folder: None, snapshot: None, placed: Vec::new(), event };
        prop_assert!(begin(&record).is_err());
    }
}
