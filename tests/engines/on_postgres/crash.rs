//! A server that is killed while many write: what it acknowledged is there, once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use raymond::engine::Engine;
use raymond::engine::shared_log::{MailReceiver, RunLease};

use super::backend::{Backend, own_server};
use crate::support::{
    OneRequest as _, WAIT_TIMEOUT, key, lines, names, reply, request, served_host, started_run,
    texts, wait_until,
};

/// What the writers share.
struct Writers {
    engine: Arc<dyn Engine>,
    acknowledged: AtomicUsize,
    unreachable: AtomicUsize,
    enough: AtomicBool,
}

impl Writers {
    /// Appends lines to a run, each again until it is acknowledged; returns how many were.
    fn write(&self, lease: &RunLease) -> u64 {
        let mut last = 1;
        while !self.enough.load(Ordering::Relaxed) {
            let new = lines(last + 1, &[&format!("a{last}"), &format!("b{last}")]);
            match self.engine.append(lease, &new) {
                Ok(()) => {
                    last += 2;
                    self.acknowledged.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => {
                    assert!(error.is_passing(), "{error}");
                    self.unreachable.fetch_add(1, Ordering::Relaxed);
                    thread::yield_now();
                }
            }
        }
        last
    }

    /// Waits until so many more appends were acknowledged.
    fn wait_for_more(&self, count: usize) {
        let before = self.acknowledged.load(Ordering::Relaxed);
        wait_until("more appends", || self.acknowledged.load(Ordering::Relaxed) >= before + count);
    }
}

#[test]
fn a_killed_server_has_what_it_acknowledged() {
    let server = own_server();
    let database = Backend::on(server.clone());
    let engine = database.engine();
    let writers = Writers {
        engine: engine.clone(),
        acknowledged: AtomicUsize::new(0),
        unreachable: AtomicUsize::new(0),
        enough: AtomicBool::new(false),
    };
    let leases: Vec<RunLease> = (0..6).map(|_| started_run(&*engine)).collect();
    let lengths = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for lease in &leases {
            let (writers, lengths) = (&writers, &lengths);
            scope.spawn(move || {
                let length = writers.write(lease);
                lengths.lock().expect("a list").push((lease.clone(), length));
            });
        }
        for _ in 0..3 {
            writers.wait_for_more(60);
            let failed = writers.unreachable.load(Ordering::Relaxed);
            server.kill();
            wait_until("the writers see it", || {
                writers.unreachable.load(Ordering::Relaxed) > failed
            });
            server.start();
        }
        writers.wait_for_more(60);
        writers.enough.store(true, Ordering::Relaxed);
    });
    let other = database.engine();
    for (lease, length) in lengths.into_inner().expect("a list") {
        let log = texts(&*other, &lease.run);
        let expected: Vec<String> = std::iter::once("first".to_owned())
            .chain((1..length).step_by(2).flat_map(|last| [format!("a{last}"), format!("b{last}")]))
            .collect();
        assert_eq!(log, expected, "{}", lease.run);
    }
}

#[test]
fn mail_outlives_a_killed_server() {
    let server = own_server();
    let database = Backend::on(server.clone());
    let (one, other) = (database.engine(), database.engine());
    let (lease, claim) = (started_run(&*one), served_host(&*other));
    let sent = ["a", "b", "c"].map(|name| request(&lease, &claim, name));
    one.send(&lease, &sent).expect("they are sent");
    assert_eq!(other.may_begin(&claim, &key(&lease, "a")), Ok(true));
    other.reply_to(&claim, &reply(&lease, "b")).expect("it is answered");
    server.kill();
    let error = one.replies(&lease, &[], 10).expect_err("nobody is there");
    assert!(error.is_passing(), "{error}");
    let error = other.wait_for_mail(MailReceiver::Host(&claim.host), WAIT_TIMEOUT);
    assert!(error.expect_err("nobody is there").is_passing());
    server.start();
    let again = other.requests(&claim, &[], true, 10).expect("requests");
    assert_eq!(names(&again, |request| &request.key), ["a", "c"]);
    assert_eq!(one.replies(&lease, &[], 10), Ok(vec![reply(&lease, "b")]));
    assert_eq!(
        one.withdraw(&lease, &key(&lease, "a")),
        Ok(raymond::engine::shared_log::Withdrawal::Begun)
    );
}

#[test]
fn a_waiter_is_woken_after_a_restart() {
    let server = own_server();
    let database = Backend::on(server.clone());
    let (one, other) = (database.engine(), database.engine());
    let (lease, claim) = (started_run(&*one), served_host(&*other));
    let found = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !found.load(Ordering::Relaxed) {
                // It fails while nobody is there.
                let _ = other.wait_for_mail(MailReceiver::Host(&claim.host), WAIT_TIMEOUT);
                let mail = other.requests(&claim, &[], false, 10).unwrap_or_default();
                found.store(!mail.is_empty(), Ordering::Relaxed);
            }
        });
        server.kill();
        server.start();
        one.send(&lease, &[request(&lease, &claim, "a")]).expect("it is sent");
        wait_until("it is found", || found.load(Ordering::Relaxed));
    });
}
