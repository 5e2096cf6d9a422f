//! The decisions about the lease of a run. It runs out by the timers of the server.

use std::time::Duration;

use super::effect::ObjectEffect;
use super::index_calls::{IndexCall, IndexedRun};
use super::run_calls::{RunAnswer, RunCall};
use super::run_head::{RunHead, TERMS};
use super::run_log;
use super::state::{ObjectState, Undecided};

/// Creates a run, or finds that this very call has created it already.
pub(super) fn create(
    run: &str,
    (terms, lines): (&str, &[String]),
    (holder, lease_ms): (&str, u64),
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
pub(super) fn claim(
    run: &str,
    (holder, lease_ms): (&str, u64),
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

/// Extends a lease. One that was given back stays so.
pub(super) fn renew(head: &mut RunHead, lease_ms: u64, state: &mut ObjectState<'_>) {
    if head.holder.is_some() {
        extend(head, lease_ms, state);
    }
}

/// Gives a lease back.
pub(super) fn release(run: &str, head: &mut RunHead, has_ended: bool, state: &mut ObjectState<'_>) {
    (head.holder, head.has_run_out, head.has_ended) = (None, false, has_ended);
    head.lease += 1;
    index(run, left(head), state);
    head.lines.tell(head.lines.news + 1, state);
}

/// Ends a lease whose time is over.
pub(super) fn run_out(head: &mut RunHead, lease: u64) {
    head.has_run_out |= head.lease == lease && head.holder.is_some();
}

/// Returns a run as its index has it when nobody has its lease.
pub(super) fn left(head: &RunHead) -> IndexedRun {
    IndexedRun::Left { last: head.last, has_ended: head.has_ended }
}

pub(super) fn index(run: &str, indexed: IndexedRun, state: &mut ObjectState<'_>) {
    let call = IndexCall::SetRun { run: run.to_owned(), state: indexed };
    state.effect(ObjectEffect::Index(call));
}

fn extend(head: &mut RunHead, lease_ms: u64, state: &mut ObjectState<'_>) {
    head.lease += 1;
    head.has_run_out = lease_ms == 0;
    if lease_ms > 0 {
        let time = Duration::from_millis(lease_ms);
        state.effect(ObjectEffect::OwnRunAfter(RunCall::RunOut { lease: head.lease }, time));
    }
}
