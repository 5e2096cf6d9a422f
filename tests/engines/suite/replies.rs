//! Replies: each reaches the supervisor that holds the lease, until it is forgotten.

use raymond::engine::shared_log::{HostReply, Withdrawal};
use raymond::engine::{Engine, EngineError};

use crate::support::{
    OneRequest as _, key, names, receive, reply, request, served_host, started_run, take_over,
};

fn replied(
    engine: &dyn Engine,
    lease: &raymond::engine::shared_log::RunLease,
    received: &[String],
) -> Vec<String> {
    let replies = engine.replies(lease, received, 100).expect("replies");
    let mut names = names(&replies, |reply| &reply.key);
    names.sort();
    names
}

pub(crate) fn replies_come_once(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    one.send(&lease, &["a", "b", "c"].map(|name| request(&lease, &claim, name))).expect("sent");
    for name in ["a", "b", "c"] {
        other.reply_to(&claim, &reply(&lease, name)).expect("it is answered");
    }
    let some = one.replies(&lease, &[], 2).expect("replies");
    assert_eq!(some.len(), 2);
    assert_eq!(replied(one, &lease, &[]), ["a", "b", "c"], "it has not received them");
    assert_eq!(replied(one, &lease, &[key(&lease, "b")]), ["a", "c"]);
    assert_eq!(replied(one, &lease, &[]), ["a", "c"]);
    assert_eq!(replied(one, &lease, &[key(&lease, "a"), key(&lease, "c")]), [""; 0]);
    assert_eq!(receive(other, &claim, &[]), [""; 0], "nothing to do");
    let all = other.requests(&claim, &[], true, 10).expect("requests");
    assert!(all.is_empty(), "{all:?}");
}

pub(crate) fn another_lease_gets_all_replies_again(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    one.send(&lease, &["a", "b"].map(|name| request(&lease, &claim, name))).expect("sent");
    for name in ["a", "b"] {
        other.reply_to(&claim, &reply(&lease, name)).expect("it is answered");
    }
    assert_eq!(replied(one, &lease, &[key(&lease, "a"), key(&lease, "b")]), [""; 0]);
    let next = take_over(other, &lease);
    other.send(&next, &["a", "b"].map(|name| request(&next, &claim, name))).expect("sent again");
    assert_eq!(replied(other, &next, &[]), ["a", "b"]);
    assert_eq!(receive(other, &claim, &[]), [""; 0], "they are answered");
}

pub(crate) fn the_first_reply_stays(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    one.send(&lease, &[request(&lease, &claim, "a")]).expect("sent");
    let first = reply(&lease, "a");
    let second = HostReply { body: "{}".to_owned(), ..first.clone() };
    for reply in [&first, &first, &second] {
        other.reply_to(&claim, reply).expect("it is taken or dropped");
    }
    assert_eq!(one.replies(&lease, &[], 10), Ok(vec![first]));
}

pub(crate) fn replies_nobody_waits_for_are_dropped(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    one.send(&lease, &["a", "b"].map(|name| request(&lease, &claim, name))).expect("sent");
    other.reply_to(&claim, &reply(&lease, "never sent")).expect("it is dropped");
    assert_eq!(other.may_begin(&claim, &key(&lease, "a")), Ok(true));
    assert_eq!(one.withdraw(&lease, &key(&lease, "a")), Ok(Withdrawal::Begun));
    other.reply_to(&claim, &reply(&lease, "a")).expect("it goes on, and is waited for");
    one.forget(&lease, &[key(&lease, "b")]).expect("it is forgotten");
    other.reply_to(&claim, &reply(&lease, "b")).expect("it is dropped");
    one.send(&lease, &[request(&lease, &claim, "c")]).expect("sent");
    assert_eq!(one.withdraw(&lease, &key(&lease, "c")), Ok(Withdrawal::NotBegun));
    other.reply_to(&claim, &reply(&lease, "c")).expect("it is dropped");
    assert_eq!(replied(one, &lease, &[]), ["a"]);
}

pub(crate) fn forgotten_requests_do_not_come_back(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    let sent = ["a", "b", "c"].map(|name| request(&lease, &claim, name));
    one.send(&lease, &sent).expect("sent");
    other.reply_to(&claim, &reply(&lease, "a")).expect("it is answered");
    for _ in 0..2 {
        one.forget(&lease, &[key(&lease, "a"), key(&lease, "b")]).expect("they are over");
    }
    one.forget(&lease, &[]).expect("nothing");
    one.forget(&lease, &["never sent".to_owned()]).expect("nothing");
    assert_eq!(replied(one, &lease, &[]), [""; 0]);
    one.send(&lease, &sent).expect("it was cut off, and comes late");
    assert_eq!(receive(other, &claim, &[]), ["c"]);
    assert_eq!(other.may_begin(&claim, &key(&lease, "a")), Ok(false));
    assert_eq!(other.may_begin(&claim, &key(&lease, "b")), Ok(false));
}

pub(crate) fn all_requests_of_a_run_are_forgotten(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    let neighbour = started_run(one);
    one.send(&lease, &["a", "b"].map(|name| request(&lease, &claim, name))).expect("sent");
    one.send(&neighbour, &[request(&neighbour, &claim, "c")]).expect("sent");
    other.reply_to(&claim, &reply(&lease, "a")).expect("it is answered");
    for _ in 0..2 {
        one.forget_all(&lease).expect("they are over");
    }
    assert_eq!(replied(one, &lease, &[]), [""; 0]);
    assert_eq!(receive(other, &claim, &[]), ["c"]);
    one.forget(&lease, &[key(&neighbour, "c")]).expect("it is not of this run");
    assert_eq!(receive(other, &claim, &[]), ["c"]);
}

pub(crate) fn a_lost_lease_can_do_nothing(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    one.send(&lease, &["a", "b"].map(|name| request(&lease, &claim, name))).expect("sent");
    other.reply_to(&claim, &reply(&lease, "a")).expect("it is answered");
    let next = take_over(other, &lease);
    let taken_over = EngineError::TakenOver { run: lease.run.clone() };
    let keys = [key(&lease, "a"), key(&lease, "b")];
    assert_eq!(one.send(&lease, &[request(&lease, &claim, "c")]), Err(taken_over.clone()));
    assert_eq!(one.send(&lease, &[]), Err(taken_over.clone()));
    assert_eq!(one.withdraw(&lease, &keys[1]), Err(taken_over.clone()));
    assert_eq!(one.replies(&lease, &keys, 10), Err(taken_over.clone()));
    assert_eq!(one.forget(&lease, &keys), Err(taken_over.clone()));
    assert_eq!(one.forget_all(&lease), Err(taken_over));
    assert_eq!(replied(other, &next, &[]), ["a"]);
    assert_eq!(receive(other, &claim, &[]), ["b"]);
}
