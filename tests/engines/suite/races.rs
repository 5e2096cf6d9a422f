//! What happens at the same moment: threads with two connections.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

use raymond::engine::shared_log::{RunLease, Withdrawal};
use raymond::engine::{Engine, EngineError};

use crate::support::{
    LONG, OneRequest as _, key, lines, names, new_run, receive, reply, request, served_host,
    started_run, take_over, texts, wait_until,
};

/// Appends lines until somebody says that it is enough or the lease is refused; returns those that were acknowledged.
fn append_until(
    engine: &dyn Engine,
    lease: &RunLease,
    name: &str,
    enough: &AtomicBool,
) -> Vec<(u64, String)> {
    let mut acknowledged = Vec::new();
    let mut last = 1;
    for number in 0.. {
        if enough.load(Ordering::Relaxed) {
            break;
        }
        let text = format!("{name}-{number}");
        match engine.append(lease, &lines(last + 1, &[&text])) {
            Ok(()) => {
                last += 1;
                acknowledged.push((last, text));
            }
            // Another thread was first.
            Err(EngineError::Damaged { .. }) => {
                let later = engine.read(&lease.run, last, usize::MAX).expect("a log");
                last = later.last().map_or(last, |line| line.seq);
            }
            Err(EngineError::TakenOver { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    acknowledged
}

/// Checks that a log has all acknowledged lines in their places, and nothing twice.
fn assert_holds(engine: &dyn Engine, lease: &RunLease, acknowledged: &[(u64, String)]) {
    let log = engine.read(&lease.run, 0, usize::MAX).expect("a log without a gap");
    for (seq, text) in acknowledged {
        let place = usize::try_from(*seq).expect("a place") - 1;
        assert_eq!(&log[place].text, text, "record {seq}");
    }
    let different: BTreeSet<&str> = log.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(different.len(), log.len(), "a line is there twice");
    assert_eq!(log.len(), acknowledged.len() + 1, "a line is there that nobody was told of");
}

pub(crate) fn appends_at_the_same_moment_make_one_history(one: &dyn Engine, other: &dyn Engine) {
    let lease = started_run(one);
    let enough = AtomicBool::new(false);
    let acknowledged = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for (number, engine) in [one, other, one, other, one, other].into_iter().enumerate() {
            let (lease, enough, acknowledged) = (&lease, &enough, &acknowledged);
            scope.spawn(move || {
                let mine = append_until(engine, lease, &format!("t{number}"), enough);
                acknowledged.lock().expect("a list").extend(mine);
            });
        }
        wait_until("a hundred lines", || one.read(&lease.run, 100, 1).expect("a log").len() == 1);
        enough.store(true, Ordering::Relaxed);
    });
    assert_holds(one, &lease, &acknowledged.into_inner().expect("a list"));
}

pub(crate) fn an_old_lease_never_writes_after_a_new_lease(one: &dyn Engine, other: &dyn Engine) {
    let old = started_run(one);
    let enough = AtomicBool::new(false);
    let new = Mutex::new(None);
    let acknowledged = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for number in 0..4 {
            let (old, enough, acknowledged) = (&old, &enough, &acknowledged);
            scope.spawn(move || {
                let mine = append_until(one, old, &format!("old{number}"), enough);
                acknowledged.lock().expect("a list").extend(mine);
            });
        }
        wait_until("some lines", || one.read(&old.run, 20, 1).expect("a log").len() == 1);
        let lease = take_over(other, &old);
        // From here on no line of the old lease comes.
        let before = texts(other, &old.run).len();
        for number in 0..4 {
            let (lease, enough, acknowledged) = (&lease, &enough, &acknowledged);
            let lease = lease.clone();
            scope.spawn(move || {
                let mine = append_until(other, &lease, &format!("new{number}"), enough);
                acknowledged.lock().expect("a list").extend(mine);
            });
        }
        wait_until("lines of the new lease", || {
            other.read(&old.run, before as u64 + 20, 1).expect("a log").len() == 1
        });
        enough.store(true, Ordering::Relaxed);
        *new.lock().expect("a place") = Some((lease, before));
    });
    let (lease, before) = new.into_inner().expect("a place").expect("a lease");
    assert_holds(other, &lease, &acknowledged.into_inner().expect("a list"));
    let log = texts(other, &old.run);
    assert!(log[1..before].iter().all(|text| text.starts_with("old")), "{log:?}");
    assert!(log[before..].iter().all(|text| text.starts_with("new")), "{log:?}");
}

pub(crate) fn one_of_many_claims_wins(one: &dyn Engine, other: &dyn Engine) {
    let lease = started_run(one);
    one.release_run(&lease, false).expect("it is given back");
    let start = Barrier::new(8);
    let won = AtomicUsize::new(0);
    thread::scope(|scope| {
        for number in 0..8 {
            let (start, won, run) = (&start, &won, &lease.run);
            let engine = if number % 2 == 0 { one } else { other };
            scope.spawn(move || {
                start.wait();
                match engine.claim_run(run, &format!("holder-{number}"), LONG) {
                    Ok(lease) => {
                        assert_eq!(lease.epoch, 2);
                        won.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(EngineError::Supervised { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            });
        }
    });
    assert_eq!(won.into_inner(), 1);
}

pub(crate) fn one_of_many_creators_wins(one: &dyn Engine, other: &dyn Engine) {
    let new = new_run(&["a", "b"]);
    let start = Barrier::new(8);
    let won = AtomicUsize::new(0);
    thread::scope(|scope| {
        for number in 0..8 {
            let (start, won, new) = (&start, &won, &new);
            let engine = if number % 2 == 0 { one } else { other };
            scope.spawn(move || {
                start.wait();
                match engine.create_run(new, &format!("holder-{number}"), LONG) {
                    Ok(_) => _ = won.fetch_add(1, Ordering::Relaxed),
                    Err(EngineError::RunExists { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            });
        }
    });
    assert_eq!(won.into_inner(), 1);
    assert_eq!(texts(one, &new.run), ["a", "b"]);
}

pub(crate) fn a_withdrawn_request_never_starts(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    for round in 0..60 {
        let name = format!("turn-{round}");
        let key = key(&lease, &name);
        one.send(&lease, &[request(&lease, &claim, &name)]).expect("it is sent");
        let start = Barrier::new(2);
        let (fate, may_begin) = thread::scope(|scope| {
            let begin = scope.spawn(|| {
                start.wait();
                other.may_begin(&claim, &key).expect("an answer")
            });
            start.wait();
            let fate = one.withdraw(&lease, &key).expect("a fate");
            (fate, begin.join().expect("an answer"))
        });
        let expected = if may_begin { Withdrawal::Begun } else { Withdrawal::NotBegun };
        assert_eq!(fate, expected, "round {round}");
        assert_eq!(one.withdraw(&lease, &key), Ok(expected), "it is told the same again");
        assert_eq!(other.may_begin(&claim, &key), Ok(may_begin), "so is the host");
    }
}

pub(crate) fn a_reply_and_a_withdrawal_agree(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    for round in 0..60 {
        let name = format!("turn-{round}");
        let key = key(&lease, &name);
        one.send(&lease, &[request(&lease, &claim, &name)]).expect("it is sent");
        assert_eq!(other.may_begin(&claim, &key), Ok(true));
        let start = Barrier::new(2);
        let fate = thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                other.reply_to(&claim, &reply(&lease, &name)).expect("it is taken or dropped");
            });
            start.wait();
            one.withdraw(&lease, &key).expect("a fate")
        });
        let replies = one.replies(&lease, &[], 10).expect("replies");
        let answered = names(&replies, |reply| &reply.key);
        match fate {
            Withdrawal::Answered | Withdrawal::Begun => {
                assert_eq!(answered, [name], "round {round}: {fate:?}");
            }
            Withdrawal::NotBegun => panic!("round {round}: it had been begun"),
        }
        one.forget(&lease, &[key]).expect("it is over");
    }
}

pub(crate) fn each_request_is_sent_once(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    let all: Vec<String> = (0..40).map(|number| format!("turn-{number}")).collect();
    thread::scope(|scope| {
        for number in 0..6 {
            let (lease, claim, all) = (&lease, &claim, &all);
            let engine = if number % 2 == 0 { one } else { other };
            scope.spawn(move || {
                let mut mine = all.clone();
                mine.rotate_left(number * 7);
                for part in mine.chunks(8) {
                    let requests: Vec<_> =
                        part.iter().map(|name| request(lease, claim, name)).collect();
                    engine.send(lease, &requests).expect("they are sent");
                }
            });
        }
    });
    let mut received = receive(other, &claim, &[]);
    received.sort_by_key(|name| {
        name.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0)
    });
    assert_eq!(received, all);
}
