//! The decisions of a run: each call, judged by the lease it comes with; its commands, and its lease.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::answered_list::{ANSWERED, WITHDRAWN, queue_key};
use super::run_calls::{
    CarriedCommand, CarriedContent, LeasedDeed, RunAnswer, RunCall, RunLook, RunTopic,
};
use super::run_log::{HEAD, RunHead, TERMS};
use super::state::{FACTS, IndexCall, IndexedRun, ObjectEffect, ObjectState, Undecided};
use super::{run_log, run_mail};

/// Changes a run by several calls, one after the other. All missing values are reported together: the calls after an
/// undecided call mostly lack the same values as they would after a decided call.
pub(super) fn decide_all(
    run: &str,
    calls: &[RunCall],
    state: &mut ObjectState<'_>,
) -> Result<Vec<RunAnswer>, Undecided> {
    let (mut answers, mut lacks) = (Vec::with_capacity(calls.len()), Vec::new());
    for call in calls {
        match decide(run, call, state) {
            Ok(answer) => answers.push(answer),
            Err(Undecided::Lacks(keys)) => lacks.extend(keys),
            // What an undecided call leaves behind may be the reason.
            Err(Undecided::Damaged(_)) if !lacks.is_empty() => {}
            Err(damaged @ Undecided::Damaged(_)) => return Err(damaged),
        }
    }
    if lacks.is_empty() {
        return Ok(answers);
    }
    lacks.sort_unstable();
    lacks.dedup();
    Err(Undecided::Lacks(lacks))
}

/// Changes a run.
pub(super) fn decide(
    run: &str,
    call: &RunCall,
    state: &mut ObjectState<'_>,
) -> Result<RunAnswer, Undecided> {
    if let RunCall::Create { terms, holder, lease_ms, lines } = call {
        return create(run, terms, lines, holder, *lease_ms, state);
    }
    let is_facts = run == FACTS;
    let there = RunHead::load(state)?.or_else(|| is_facts.then(RunHead::default));
    let Some(mut head) = there else { return Ok(RunAnswer::NoSuchRun) };
    let answer = match call {
        RunCall::AppendFact { change } if is_facts => {
            run_log::append_fact(&mut head, change, state)?
        }
        RunCall::AppendFact { .. } => {
            return Ok(RunAnswer::Unfit { why: "a run does not have its own facts".to_owned() });
        }
        RunCall::Create { .. } => RunAnswer::RunExists,
        RunCall::Claim { holder, lease_ms } => {
            return claim(run, holder, *lease_ms, head, state);
        }
        RunCall::RunOut { lease } => {
            run_out(&mut head, *lease);
            RunAnswer::Done
        }
        RunCall::Leased { epoch, .. } if *epoch != head.epoch => return Ok(RunAnswer::TakenOver),
        RunCall::Leased { deed, .. } => leased(run, &mut head, deed, state)?,
        RunCall::Requests { by, .. } | RunCall::Begin { by, .. } | RunCall::Reply { by, .. }
            if head.is_fenced(by) =>
        {
            return Ok(RunAnswer::Fenced);
        }
        RunCall::Requests { by, received, is_first, limit } => {
            return run_mail::requests(by, received, *is_first, *limit, state);
        }
        RunCall::Begin { by, keys } => return run_mail::begin(by, keys, state),
        RunCall::Reply { by, replies } => {
            run_mail::host_reply(&mut head, by, replies, state)?;
            RunAnswer::Done
        }
        RunCall::Fence { host, oldest_valid } => {
            head.fence(host, *oldest_valid);
            RunAnswer::Done
        }
        RunCall::LeaveCommand { command } => {
            leave(&mut head, command, state)?;
            RunAnswer::Done
        }
        RunCall::Ask { question } => {
            run_mail::ask(run, &mut head, question, state)?;
            RunAnswer::Done
        }
        RunCall::EndQuestion { key } => {
            run_mail::end(key, state)?;
            RunAnswer::Done
        }
        RunCall::Watch { awakeable, topic, seen } => {
            match topic {
                RunTopic::Mail => head.mail.watch(awakeable, *seen, state),
                RunTopic::Lines => head.lines.watch(awakeable, *seen, state),
            }
            RunAnswer::Done
        }
    };
    head.save(state)?;
    Ok(answer)
}

/// Does what the newest supervisor asks for.
fn leased(
    run: &str,
    head: &mut RunHead,
    deed: &LeasedDeed,
    state: &mut ObjectState<'_>,
) -> Result<RunAnswer, Undecided> {
    match deed {
        LeasedDeed::Renew { lease_ms } => renew(head, *lease_ms, state),
        LeasedDeed::Release { has_ended } => release(run, head, *has_ended, state),
        LeasedDeed::Append { first, lines } => {
            let answer = run_log::append(head, *first, lines, state)?;
            if head.holder.is_none() && answer == RunAnswer::Done {
                index(run, left(head), state);
            }
            return Ok(answer);
        }
        LeasedDeed::SetTerms { terms } => state.set(TERMS, terms)?,
        LeasedDeed::RemoveCommand { name } => remove(name, state)?,
        LeasedDeed::Send { requests, by, is_again } => {
            run_mail::send(run, head, requests, by, *is_again, state)?;
        }
        LeasedDeed::Sent => return Ok(RunAnswer::Keys(run_mail::sent(head, state)?)),
        LeasedDeed::Withdraw { key } => {
            return Ok(RunAnswer::Fate(run_mail::withdraw(head, key, state)?));
        }
        LeasedDeed::Replies { received, limit } => {
            return run_mail::replies(head, received, *limit, state);
        }
        LeasedDeed::Forget { keys, by } => run_mail::forget(head, keys, by, state)?,
        LeasedDeed::ChangeFact { .. } => {}
        LeasedDeed::ForgetAll { by } => run_mail::forget_all(run, head, by, state)?,
    }
    Ok(RunAnswer::Done)
}

/// Answers a question.
pub(super) fn look(look: &RunLook, state: &ObjectState<'_>) -> Result<RunAnswer, Undecided> {
    let Some(head) = RunHead::load(state)? else { return Ok(RunAnswer::NoSuchRun) };
    Ok(match look {
        RunLook::Lines { after, limit } => run_log::read(&head, *after, *limit, state)?,
        RunLook::Terms => RunAnswer::Terms(state.get_or_default(TERMS)?),
        RunLook::Commands => waiting(state)?,
        RunLook::Begun => RunAnswer::Keys(run_mail::begun(&head, state)?),
        RunLook::QuestionReply { key } => RunAnswer::QuestionReply(run_mail::reply(key, state)?),
        RunLook::Summary => RunAnswer::Summary {
            last: head.last,
            has_ended: head.has_ended,
            is_abandoned: head.holder.is_some() && head.has_run_out && !head.has_ended,
            holder: head.holder.filter(|_| !head.has_run_out),
        },
    })
}

/// Returns the number of the news that somebody has to wait behind; as an error that of news that were not seen. Of a
/// log the records are seen, of the mail its news. A run that is not there has none.
pub(super) fn to_wait(
    topic: RunTopic,
    seen: u64,
    state: &ObjectState<'_>,
) -> Result<Result<u64, u64>, Undecided> {
    let head = RunHead::load(state)?.unwrap_or_default();
    let (news, is_seen) = match topic {
        RunTopic::Mail => (head.mail.news, seen == head.mail.news),
        RunTopic::Lines => (head.lines.news, head.last <= seen),
    };
    Ok(if is_seen { Ok(news) } else { Err(news) })
}

/// Returns the keys that a call needs for certain, so that they are loaded at once.
pub(super) fn first_keys(call: &RunCall) -> Vec<String> {
    let mut keys = vec![HEAD.to_owned()];
    match call {
        RunCall::Leased { deed, .. } => match deed {
            LeasedDeed::Append { first, .. } => keys.push(run_log::chunk_key(*first)),
            LeasedDeed::Send { requests, .. } => {
                keys.extend(requests.iter().map(|request| queue_key(&request.host)));
                keys.extend([ANSWERED, WITHDRAWN].map(str::to_owned));
            }
            LeasedDeed::Replies { .. } => keys.push(ANSWERED.to_owned()),
            LeasedDeed::Forget { .. } | LeasedDeed::Withdraw { .. } => {
                keys.extend([ANSWERED, WITHDRAWN].map(str::to_owned));
            }
            _ => {}
        },
        RunCall::AppendFact { change } => keys.push(run_log::chunk_key(change.after + 1)),
        RunCall::Requests { by, .. } | RunCall::Begin { by, .. } => {
            keys.push(queue_key(by.host.as_str()));
        }
        RunCall::Reply { by, .. } => {
            keys.extend([queue_key(by.host.as_str()), ANSWERED.to_owned()]);
        }
        _ => {}
    }
    keys
}

// The decisions about the commands that wait for a run.

const COMMANDS: &str = "commands";

/// The most names of removed commands that are known. A call that was cut off, and comes late, finds its name taken.
const REMOVED: usize = 500;

/// The names of commands.
#[derive(Debug, Default, Serialize, Deserialize)]
struct CommandNames {
    waiting: BTreeSet<String>,
    removed: VecDeque<String>,
}

fn key(name: &str) -> String {
    format!("command/{name}")
}

/// Leaves a command, unless its name is or was taken.
fn leave(
    head: &mut RunHead,
    command: &CarriedCommand,
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    let mut names: CommandNames = state.get_or_default(COMMANDS)?;
    if names.removed.contains(&command.name) || !names.waiting.insert(command.name.clone()) {
        return Ok(());
    }
    state.set(&key(&command.name), &command.content)?;
    state.set(COMMANDS, &names)?;
    head.mail.add(state);
    Ok(())
}

/// Removes a command.
fn remove(name: &str, state: &mut ObjectState<'_>) -> Result<(), Undecided> {
    let mut names: CommandNames = state.get_or_default(COMMANDS)?;
    if names.waiting.remove(name) {
        names.removed.push_back(name.to_owned());
        if names.removed.len() > REMOVED {
            names.removed.pop_front();
        }
        state.clear(&key(name));
        state.set(COMMANDS, &names)?;
    }
    Ok(())
}

/// Returns the commands that wait, in the order of their names.
fn waiting(state: &ObjectState<'_>) -> Result<RunAnswer, Undecided> {
    let names: CommandNames = state.get_or_default(COMMANDS)?;
    state.need(names.waiting.iter().map(|name| key(name)))?;
    let mut commands = Vec::new();
    for name in names.waiting {
        // It may have been removed since the names were read.
        if let Some(content) = state.get::<CarriedContent>(&key(&name))? {
            commands.push(CarriedCommand { name, content });
        }
    }
    Ok(RunAnswer::Commands(commands))
}

// The decisions about the lease of a run. It runs out by the timers of the server.

/// Creates a run, or finds that this very call has created it already.
fn create(
    run: &str,
    terms: &str,
    lines: &[String],
    holder: &str,
    lease_ms: u64,
    state: &mut ObjectState<'_>,
) -> Result<RunAnswer, Undecided> {
    if let Some(mut head) = RunHead::load(state)? {
        let is_same = head.epoch == 1
            && head.holder.as_deref() == Some(holder)
            && state.get::<String>(TERMS)?.as_deref() == Some(terms)
            && run_log::begins_with(lines, state)?;
        if !is_same {
            return Ok(RunAnswer::RunExists);
        }
        extend(&mut head, lease_ms, state);
        head.save(state)?;
        return Ok(RunAnswer::Epoch(1));
    }
    let mut head = RunHead { epoch: 1, holder: Some(holder.to_owned()), ..RunHead::default() };
    index(run, IndexedRun::Held, state);
    state.set(TERMS, &terms)?;
    run_log::put(&mut head, lines, state)?;
    extend(&mut head, lease_ms, state);
    head.save(state)?;
    Ok(RunAnswer::Epoch(1))
}

/// Gives the lease to a supervisor, unless another one has it.
fn claim(
    run: &str,
    holder: &str,
    lease_ms: u64,
    mut head: RunHead,
    state: &mut ObjectState<'_>,
) -> Result<RunAnswer, Undecided> {
    match &head.holder {
        Some(other) if !head.has_run_out && other != holder => {
            return Ok(RunAnswer::Supervised { holder: other.clone() });
        }
        Some(_) => {}
        None => index(run, IndexedRun::Held, state),
    }
    head.epoch += 1;
    head.holder = Some(holder.to_owned());
    head.has_ended = false;
    extend(&mut head, lease_ms, state);
    head.save(state)?;
    Ok(RunAnswer::Epoch(head.epoch))
}

/// Extends a lease. A lease that was given back stays so.
fn renew(head: &mut RunHead, lease_ms: u64, state: &mut ObjectState<'_>) {
    if head.holder.is_some() {
        extend(head, lease_ms, state);
    }
}

/// Gives a lease back.
fn release(run: &str, head: &mut RunHead, has_ended: bool, state: &mut ObjectState<'_>) {
    (head.holder, head.has_run_out, head.has_ended) = (None, false, has_ended);
    head.lease += 1;
    index(run, left(head), state);
    head.lines.add(state);
}

/// Ends an expired lease.
fn run_out(head: &mut RunHead, lease: u64) {
    head.has_run_out |= head.lease == lease && head.holder.is_some();
}

/// Returns a run as its index has it when nobody has its lease.
fn left(head: &RunHead) -> IndexedRun {
    IndexedRun::Left { last: head.last, has_ended: head.has_ended }
}

fn index(run: &str, indexed: IndexedRun, state: &mut ObjectState<'_>) {
    let call = IndexCall::SetRun { run: run.to_owned(), state: indexed };
    state.effect(ObjectEffect::Index(call));
}

fn extend(head: &mut RunHead, lease_ms: u64, state: &mut ObjectState<'_>) {
    head.lease += 1;
    head.has_run_out = lease_ms == 0;
    if lease_ms > 0 {
        let time = Duration::from_millis(lease_ms);
        state.effect(ObjectEffect::CallSelfAfter(RunCall::RunOut { lease: head.lease }, time));
    }
}
