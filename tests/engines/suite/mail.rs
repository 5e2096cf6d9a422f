//! Requests: each reaches its host, and one that was withdrawn is not begun.

use std::time::Duration;

use raymond::domain::host::HostStanding;
use raymond::engine::shared_log::{HostClaim, HostReply, HostRequest, Withdrawal};
use raymond::engine::{Engine, EngineError};

use crate::support::{
    OneRequest as _, key, later, names, receive, reply, report, request, served_host, started_run,
    take_over,
};

pub(crate) fn requests_come_once_and_in_order(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    assert_eq!(receive(other, &claim, &[]), Vec::<String>::new());
    one.send(&lease, &[]).expect("nothing");
    let sent = ["c", "a", "b"].map(|name| request(&lease, &claim, name));
    one.send(&lease, &sent).expect("they are sent");
    one.send(&lease, &[request(&lease, &claim, "0")]).expect("it is sent");
    let all = other.requests(&claim, &[], true, 100).expect("requests");
    assert_eq!(all[..3], sent);
    assert_eq!(names(&all, |request| &request.key), ["c", "a", "b", "0"]);
    assert_eq!(receive(other, &claim, &[]), ["c", "a", "b", "0"], "it has not received them");
    assert_eq!(receive(other, &claim, &[key(&lease, "a"), key(&lease, "c")]), ["b", "0"]);
    assert_eq!(receive(other, &claim, &[]), ["b", "0"]);
    assert_eq!(receive(other, &claim, &[key(&lease, "b"), key(&lease, "0")]), [""; 0]);
    assert_eq!(receive(other, &claim, &["unknown".to_owned()]), [""; 0]);
}

pub(crate) fn a_new_worker_gets_all_again(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    one.send(&lease, &["a", "b", "c"].map(|name| request(&lease, &claim, name))).expect("sent");
    let all: Vec<String> = ["a", "b", "c"].iter().map(|name| key(&lease, name)).collect();
    assert_eq!(receive(other, &claim, &all), [""; 0]);
    other.may_begin(&claim, &all[0]).expect("it is begun");
    other.reply_to(&claim, &reply(&lease, "b")).expect("it is answered");
    for _ in 0..2 {
        let first = other.requests(&claim, &[], true, 100).expect("requests");
        assert_eq!(names(&first, |request| &request.key), ["a", "c"]);
    }
    assert_eq!(receive(other, &claim, &all[..1]), ["c"]);
    let first = other.requests(&claim, &all[2..], true, 100).expect("requests");
    assert_eq!(names(&first, |request| &request.key), ["a"]);
}

pub(crate) fn requests_come_in_parts(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    let sent: Vec<String> = (10..30).map(|number| format!("turn-{number}")).collect();
    let requests: Vec<_> = sent.iter().map(|name| request(&lease, &claim, name)).collect();
    one.send(&lease, &requests).expect("they are sent");
    assert_eq!(received_in_parts(other, &claim), sent);
}

pub(crate) fn started_requests_come_again_in_parts(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    let sent: Vec<String> = (10..30).map(|number| format!("turn-{number}")).collect();
    let requests: Vec<_> = sent.iter().map(|name| request(&lease, &claim, name)).collect();
    one.send(&lease, &requests).expect("they are sent");
    let keys: Vec<String> = requests.iter().map(|request| request.key.clone()).collect();
    assert_eq!(received_in_parts(other, &claim), sent);
    assert_eq!(other.begin(&claim, &keys[..18]).expect("they are begun").len(), 18);
    assert_eq!(received_in_parts(other, &claim), sent, "the next worker takes all of them up");
    assert_eq!(receive(other, &claim, &[]), [""; 0]);
}

/// Returns the names of the requests that a new worker is given, a few at a time.
fn received_in_parts(engine: &dyn Engine, claim: &HostClaim) -> Vec<String> {
    let (mut received, mut last, mut is_first) = (Vec::new(), Vec::new(), true);
    loop {
        let part = engine.requests(claim, &last, is_first, 6).expect("requests");
        if part.is_empty() {
            return received;
        }
        assert!(part.len() <= 6);
        received.extend(names(&part, |request| &request.key));
        last = part.into_iter().map(|request| request.key).collect();
        is_first = false;
    }
}

pub(crate) fn a_request_is_sent_once(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    let first = request(&lease, &claim, "a");
    let changed = HostRequest { body: "{}".to_owned(), ..first.clone() };
    for sent in [&first, &first, &changed] {
        one.send(&lease, &[sent.clone(), request(&lease, &claim, "b")]).expect("it is sent");
    }
    let all = other.requests(&claim, &[], true, 100).expect("requests");
    assert_eq!(all, [first, request(&lease, &claim, "b")]);
    other.reply_to(&claim, &reply(&lease, "a")).expect("it is answered");
    one.send(&lease, &[changed]).expect("it comes late");
    assert_eq!(receive(other, &claim, &[]), ["b"]);
}

pub(crate) fn requests_for_an_earlier_epoch_are_not_seen(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    one.send(&lease, &[request(&lease, &claim, "a")]).expect("it is sent");
    let next =
        other.register_host(&claim.host, "another", &report(0), Duration::ZERO).expect("a claim");
    one.send(&lease, &[request(&lease, &claim, "b")]).expect("it comes late");
    one.send(&lease, &[request(&lease, &next, "c")]).expect("it is sent");
    assert_eq!(receive(other, &next, &[]), ["c"]);
    assert_eq!(other.may_begin(&next, &key(&lease, "a")), Ok(false), "it is for another epoch");
    other.reply_to(&next, &reply(&lease, "a")).expect("it is dropped");
    assert_eq!(one.replies(&lease, &[], 10), Ok(Vec::new()));
    assert_eq!(one.withdraw(&lease, &key(&lease, "a")), Ok(Withdrawal::NotBegun));
}

pub(crate) fn a_withdrawn_request_is_gone(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    let sent = ["a", "b"].map(|name| request(&lease, &claim, name));
    one.send(&lease, &sent).expect("they are sent");
    assert_eq!(one.withdraw(&lease, &sent[0].key), Ok(Withdrawal::NotBegun));
    assert_eq!(receive(other, &claim, &[]), ["b"]);
    assert_eq!(other.may_begin(&claim, &sent[0].key), Ok(false));
    one.send(&lease, &sent).expect("the answer was lost");
    assert_eq!(receive(other, &claim, &[]), ["b"], "it was withdrawn");
    let all = other.requests(&claim, &[], true, 100).expect("requests");
    assert_eq!(names(&all, |request| &request.key), ["b"]);
}

pub(crate) fn withdrawals_tell_what_was(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    one.send(&lease, &["a", "b", "c"].map(|name| request(&lease, &claim, name))).expect("sent");
    assert_eq!(other.may_begin(&claim, &key(&lease, "b")), Ok(true));
    assert_eq!(other.may_begin(&claim, &key(&lease, "b")), Ok(true), "it may be noted again");
    assert_eq!(other.may_begin(&claim, &key(&lease, "c")), Ok(true));
    other.reply_to(&claim, &reply(&lease, "c")).expect("it is answered");
    for (name, fate) in
        [("a", Withdrawal::NotBegun), ("b", Withdrawal::Begun), ("c", Withdrawal::Answered)]
    {
        for _ in 0..2 {
            assert_eq!(one.withdraw(&lease, &key(&lease, name)), Ok(fate), "{name}");
        }
    }
    other.reply_to(&claim, &reply(&lease, "b")).expect("it went on");
    let replies = one.replies(&lease, &[], 10).expect("replies");
    assert_eq!(names(&replies, |reply| &reply.key), ["c", "b"]);
    assert_eq!(one.withdraw(&lease, &key(&lease, "b")), Ok(Withdrawal::Answered));
}

pub(crate) fn a_later_supervisor_sends_what_was_withdrawn_again(
    one: &dyn Engine,
    other: &dyn Engine,
) {
    let (lease, claim) = (started_run(one), served_host(other));
    let sent = ["a", "b", "c"].map(|name| request(&lease, &claim, name));
    one.send(&lease, &sent[..2]).expect("they are sent");
    assert_eq!(receive(other, &claim, &[]), ["a", "b"]);
    assert_eq!(other.may_begin(&claim, &sent[1].key), Ok(true));
    for request in &sent {
        one.withdraw(&lease, &request.key).expect("a fate");
    }
    let next = take_over(other, &lease);
    let next_host =
        other.register_host(&claim.host, "another", &report(0), Duration::ZERO).expect("a claim");
    let again = ["a", "b", "c"].map(|name| request(&next, &next_host, name));
    other.send(&next, &again).expect("they are sent again");
    let all = other.requests(&next_host, &[], true, 10).expect("requests");
    assert_eq!(all, [again[0].clone(), again[2].clone()], "the other one had been begun");
    assert_eq!(other.may_begin(&next_host, &again[0].key), Ok(true));
    assert_eq!(other.may_begin(&next_host, &again[2].key), Ok(true));
}

pub(crate) fn what_was_sent_is_known_to_a_later_supervisor(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    let neighbour = started_run(one);
    let known = |engine: &dyn Engine, lease| {
        let mut keys = engine.sent(lease).expect("keys");
        keys.sort();
        keys
    };
    assert_eq!(known(one, &lease), [""; 0]);
    let sent = ["a", "b", "c", "d"].map(|name| request(&lease, &claim, name));
    one.send(&lease, &sent).expect("they are sent");
    one.send(&neighbour, &[request(&neighbour, &claim, "e")]).expect("it is sent");
    assert_eq!(other.may_begin(&claim, &sent[0].key), Ok(true));
    other.reply_to(&claim, &reply(&lease, "b")).expect("it is answered");
    assert_eq!(one.withdraw(&lease, &sent[2].key), Ok(Withdrawal::NotBegun));
    one.forget(&lease, &[sent[3].key.clone()]).expect("it is over");
    let next = take_over(other, &lease);
    assert_eq!(known(other, &next), [key(&lease, "a"), key(&lease, "b")]);
    assert_eq!(one.sent(&lease), Err(EngineError::TakenOver { run: lease.run.clone() }));
    other.forget_all(&next).expect("they are over");
    assert_eq!(known(other, &next), [""; 0]);
    assert_eq!(known(one, &neighbour), [key(&neighbour, "e")]);
}

pub(crate) fn a_request_withdrawn_before_it_came_does_not_start(
    one: &dyn Engine,
    other: &dyn Engine,
) {
    let (lease, claim) = (started_run(one), served_host(other));
    let late = request(&lease, &claim, "a");
    assert_eq!(one.withdraw(&lease, &late.key), Ok(Withdrawal::NotBegun));
    one.send(&lease, std::slice::from_ref(&late)).expect("it was under way");
    assert_eq!(receive(other, &claim, &[]), [""; 0]);
    assert_eq!(other.may_begin(&claim, &late.key), Ok(false));
}

pub(crate) fn a_fenced_host_can_do_nothing(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    one.send(&lease, &["a", "b"].map(|name| request(&lease, &claim, name))).expect("sent");
    one.set_standing(&claim.host, HostStanding::Lost).expect("it is lost");
    for old in [claim.clone(), later(&claim)] {
        let fenced = EngineError::HostFenced { host: claim.host.clone() };
        assert_eq!(other.requests(&old, &[], true, 10), Err(fenced.clone()));
        assert_eq!(other.requests(&old, &[key(&lease, "a")], false, 10), Err(fenced.clone()));
        assert_eq!(other.may_begin(&old, &key(&lease, "a")), Err(fenced.clone()));
        assert_eq!(other.reply_to(&old, &reply(&lease, "a")), Err(fenced.clone()));
        assert_eq!(other.heartbeat(&old, &report(0)), Err(fenced));
    }
    assert_eq!(one.replies(&lease, &[], 10), Ok(Vec::new()));
    for name in ["a", "b"] {
        assert_eq!(one.withdraw(&lease, &key(&lease, name)), Ok(Withdrawal::NotBegun));
    }
}

pub(crate) fn several_are_started_and_answered_at_once(one: &dyn Engine, other: &dyn Engine) {
    let (lease, second, claim) = (started_run(one), started_run(one), served_host(other));
    one.send(&lease, &["a", "b", "c"].map(|name| request(&lease, &claim, name))).expect("sent");
    one.send(&second, &[request(&second, &claim, "d")]).expect("sent");
    assert_eq!(one.withdraw(&lease, &key(&lease, "b")), Ok(Withdrawal::NotBegun));
    let asked = [key(&lease, "a"), key(&lease, "b"), key(&second, "d"), key(&lease, "unsent")];
    let begun = other.begin(&claim, &asked).expect("an answer");
    assert_eq!(begun, [key(&lease, "a"), key(&second, "d")].into());
    let mut sent = vec![reply(&lease, "a"), reply(&second, "d"), reply(&lease, "b")];
    sent.push(HostReply { body: "{}".to_owned(), ..reply(&lease, "a") });
    other.reply(&claim, &sent).expect("they are answered");
    assert_eq!(one.replies(&lease, &[], 10), Ok(vec![reply(&lease, "a")]), "the first stays");
    assert_eq!(one.replies(&second, &[], 10), Ok(vec![reply(&second, "d")]));
    assert_eq!(other.begin(&claim, &[]), Ok([].into()));
    other.reply(&claim, &[]).expect("nothing is answered");
}
