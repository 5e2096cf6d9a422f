//! Waits: they end when there is something, or when their time is over.

use std::thread;
use std::time::{Duration, Instant};

use raymond::engine::Engine;
use raymond::engine::connect::SharedCommand;
use raymond::engine::shared_log::MailReceiver;

use crate::support::{
    OneRequest as _, WAIT_TIMEOUT, receive, reply, request, served_host, started_run,
};

/// Waits with one connection, again and again as its user does, until it finds something; has the other one bring it about.
fn wakes(wait: impl Fn(Duration) + Sync, finds: impl Fn() -> bool + Sync, bring: impl FnOnce()) {
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let start = Instant::now();
            while !finds() {
                assert!(start.elapsed() < WAIT_TIMEOUT, "it never found anything");
                wait(WAIT_TIMEOUT);
            }
            start.elapsed()
        });
        bring();
        let elapsed = waiter.join().expect("it was woken");
        assert!(elapsed < Duration::from_secs(20), "it was woken after {elapsed:?}");
    });
}

pub(crate) fn a_host_is_woken_by_a_request(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    wakes(
        |longest| {
            other.wait_for_mail(MailReceiver::Host(&claim.host), longest).expect("a wait");
        },
        || !receive(other, &claim, &[]).is_empty(),
        || one.send(&lease, &[request(&lease, &claim, "a")]).expect("it is sent"),
    );
}

pub(crate) fn a_run_is_woken_by_a_reply(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    one.send(&lease, &[request(&lease, &claim, "a")]).expect("it is sent");
    wakes(
        |longest| {
            one.wait_for_mail(MailReceiver::Run(&lease.run), longest).expect("a wait");
        },
        || !one.replies(&lease, &[], 10).expect("replies").is_empty(),
        || other.reply_to(&claim, &reply(&lease, "a")).expect("it is answered"),
    );
}

pub(crate) fn a_run_is_woken_by_a_command(one: &dyn Engine, other: &dyn Engine) {
    let lease = started_run(one);
    let command = SharedCommand { name: "a".to_owned(), content: b"1".to_vec() };
    wakes(
        |longest| {
            one.wait_for_mail(MailReceiver::Run(&lease.run), longest).expect("a wait");
        },
        || !one.commands(&lease.run).expect("commands").is_empty(),
        || other.leave_command(&lease.run, &command).expect("it is left"),
    );
}

pub(crate) fn waits_end_in_time(one: &dyn Engine, other: &dyn Engine) {
    let (lease, claim) = (started_run(one), served_host(other));
    for longest in [Duration::ZERO, Duration::from_millis(300)] {
        let start = Instant::now();
        one.wait_for_mail(MailReceiver::Run(&lease.run), longest).expect("a wait");
        other.wait_for_mail(MailReceiver::Host(&claim.host), longest).expect("a wait");
        assert!(start.elapsed() < longest * 3 + Duration::from_secs(10));
    }
}
