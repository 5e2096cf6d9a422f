//! Tests of the queues of hosts with so many begun requests that these are put into lists.

use std::collections::BTreeSet;

use super::*;

pub(super) fn key(at: usize) -> String {
    format!("r/{at}")
}

pub(super) fn keys(from: usize, to: usize) -> Vec<String> {
    (from..to).map(key).collect()
}

/// Sends requests; each has its own body.
pub(super) fn send_many(run: &mut TestRun, epoch: u64, keys: &[String], at: u64) {
    let requests = keys.iter().map(|key| CarriedRequest {
        key: key.clone(),
        host: "h".to_owned(),
        host_epoch: 1,
        body: format!("do {key}"),
    });
    let deed = LeasedDeed::Send { requests: requests.collect(), by: number(at), is_again: false };
    assert_eq!(run.deed(epoch, deed), RunAnswer::Done);
}

/// Returns the requests that the host is given, in the order of their numbers.
fn given(run: &mut TestRun, received: &[String], is_first: bool) -> Vec<String> {
    let received = received.to_vec();
    let call = RunCall::Requests { by: by(1), received, is_first, limit: usize::MAX };
    let RunAnswer::Requests(open) = run.call(&call) else { panic!("no requests") };
    for request in &open {
        assert_eq!(request.body, format!("do {}", request.key));
    }
    let mut given: Vec<String> = open.into_iter().map(|request| request.key).collect();
    given.sort_by_key(|key| number_in(key));
    given
}

fn number_in(key: &str) -> usize {
    key[2..].parse().expect("a number")
}

fn begin_many(run: &mut TestRun, keys: &[String]) -> Vec<bool> {
    match run.call(&RunCall::Begin { by: by(1), keys: keys.to_vec() }) {
        RunAnswer::Begun(may) => may,
        other => panic!("{other:?}"),
    }
}

pub(super) fn reply_many(run: &mut TestRun, keys: &[String]) {
    let replies =
        keys.iter().map(|key| HostReply { key: key.clone(), body: format!("done {key}") });
    run.call(&RunCall::Reply { by: by(1), replies: replies.collect() });
}

pub(super) fn of_kind(run: &TestRun, start: &str) -> usize {
    run.values.keys().filter(|key| key.starts_with(start)).count()
}

/// Sends requests, and has them received and begun.
pub(super) fn begun_many(count: usize) -> TestRun {
    let mut run = TestRun::begun();
    let all = keys(0, count);
    for (at, part) in all.chunks(50).enumerate() {
        send_many(&mut run, 1, part, at as u64 + 1);
    }
    assert_eq!(given(&mut run, &[], true), all);
    for part in all.chunks(30) {
        assert!(begin_many(&mut run, part).iter().all(|&may| may));
    }
    assert_eq!(given(&mut run, &all, false), Vec::<String>::new());
    run
}

#[test]
fn few_started_requests_have_no_lists() {
    let run = begun_many(64);
    assert_eq!((of_kind(&run, "begun"), of_kind(&run, "queue/")), (0, 1));
}

#[test]
fn queue_value_stays_small_with_many_started_requests() {
    let mut run = begun_many(1_000);
    assert!(run.values["queue/h"].len() < 20_000, "{}", run.values["queue/h"].len());
    let all = keys(0, 1_000);
    let RunAnswer::Keys(mut begun) = run.look(&RunLook::Begun) else { panic!("no keys") };
    begun.sort_unstable();
    let mut sorted = all.clone();
    sorted.sort_unstable();
    assert_eq!(begun, sorted);
    let before = run.values.clone();
    reply_many(&mut run, &[key(3), key(4)]);
    let changed = run.values.iter().filter(|(key, value)| before.get(*key) != Some(value));
    let lists = changed.filter(|(key, _)| key.starts_with("begun")).count();
    assert!(lists == 1, "{lists}");
}

#[test]
fn requests_in_lists_are_sent_started_and_answered_once() {
    let mut run = begun_many(500);
    let all = keys(0, 500);
    send_many(&mut run, 1, &all[100..200], 90);
    run.run_out_and_claim();
    send_many(&mut run, 2, &all[..300], 91);
    assert_eq!(given(&mut run, &[], false), Vec::<String>::new(), "it has them");
    assert!(begin_many(&mut run, &all[..100]).iter().all(|&may| may), "the note is made again");
    let fate = run.deed(2, LeasedDeed::Withdraw { key: key(7) });
    assert_eq!(fate, RunAnswer::Fate(Withdrawal::Begun));
    reply_many(&mut run, &all[..250]);
    reply_many(&mut run, &all[200..300]);
    let replies = run.deed(2, LeasedDeed::Replies { received: Vec::new(), limit: usize::MAX });
    let RunAnswer::Replies(replies) = replies else { panic!("{replies:?}") };
    let answered: Vec<String> = replies.into_iter().map(|request| request.key).collect();
    let unique: BTreeSet<&String> = answered.iter().collect();
    assert_eq!((answered.len(), unique.len()), (300, 300));
    let late = RunCall::Begin { by: by(2), keys: vec![key(400)] };
    assert_eq!(run.call(&late), RunAnswer::Begun(vec![false]), "it is that of another epoch");
}

#[test]
fn restarted_worker_gets_its_started_requests_back() {
    let mut run = begun_many(300);
    reply_many(&mut run, &keys(0, 100));
    send_many(&mut run, 1, &keys(300, 310), 90);
    assert_eq!(given(&mut run, &[], true), keys(100, 310));
    assert_eq!(of_kind(&run, "begun"), 0);
    reply_many(&mut run, &keys(100, 150));
    assert!(begin_many(&mut run, &keys(150, 310)).iter().all(|&may| may));
    assert_eq!(given(&mut run, &[], true), keys(150, 310));
}

#[test]
fn restarted_worker_gets_all_in_parts_while_it_starts_some() {
    let mut run = begun_many(300);
    let (mut all, mut received, mut is_first) = (Vec::new(), Vec::new(), true);
    loop {
        let call = RunCall::Requests { by: by(1), received, is_first, limit: 90 };
        let RunAnswer::Requests(open) = run.call(&call) else { panic!("no requests") };
        if open.is_empty() {
            break;
        }
        received = open.into_iter().map(|request| request.key).collect();
        is_first = false;
        all.extend(received.clone());
        assert!(begin_many(&mut run, &received).iter().all(|&may| may));
    }
    all.sort_by_key(|key| number_in(key));
    assert_eq!(all, keys(0, 300));
    assert!(of_kind(&run, "begun") > 0, "they are put aside again");
}

#[test]
fn bodies_go_with_the_last_request_that_needs_them() {
    for order in 0..3 {
        let mut run = begun_many(400);
        let before = of_kind(&run, "bodies/");
        let mut all = keys(0, 400);
        match order {
            0 => {}
            1 => all.reverse(),
            _ => all.sort_by_key(|key| crc32fast::hash(format!("mix {key}").as_bytes())),
        }
        for (at, part) in all.chunks(7).enumerate() {
            reply_many(&mut run, part);
            let RunAnswer::Replies(_) =
                run.deed(1, LeasedDeed::Replies { received: part.to_vec(), limit: 9 })
            else {
                panic!("no replies")
            };
            run.deed(1, LeasedDeed::Forget { keys: part.to_vec(), by: number(100 + at as u64) });
            if at == 20 {
                // Those that are left are given once more, with their bodies.
                let mut left = all[21 * 7..].to_vec();
                left.sort_by_key(|key| number_in(key));
                let mut other = TestRun { values: run.values.clone(), effects: Vec::new() };
                assert_eq!(given(&mut other, &[], true), left);
            }
        }
        assert!(before > 0);
        for gone in ["begun", "bodies/", "queue/", "answered"] {
            assert_eq!(of_kind(&run, gone), 0, "{gone}, order {order}");
        }
    }
}

#[test]
fn requests_that_are_given_up_leave_the_lists() {
    let mut run = begun_many(200);
    run.deed(1, LeasedDeed::Forget { keys: keys(0, 150), by: number(90) });
    let RunAnswer::Keys(sent) = run.deed(1, LeasedDeed::Sent) else { panic!("no keys") };
    assert_eq!(sent.len(), 50);
    assert_eq!(run.deed(1, LeasedDeed::ForgetAll { by: number(91) }), RunAnswer::Done);
    for gone in ["begun", "bodies/", "queue/"] {
        assert_eq!(of_kind(&run, gone), 0, "{gone}");
    }
}

#[test]
fn calls_that_come_together_decide_as_if_each_came_alone() {
    let calls = |run: &mut TestRun| {
        reply_many(run, &keys(0, 10));
        begin_many(run, &keys(0, 20));
        given(run, &[], true)
    };
    let mut alone = begun_many(300);
    let given = calls(&mut alone);
    let mut together = begun_many(300);
    let replies = (0..10).map(|at| HostReply { key: key(at), body: format!("done {}", key(at)) });
    let all = [
        RunCall::Reply { by: by(1), replies: replies.collect() },
        RunCall::Begin { by: by(1), keys: keys(0, 20) },
        RunCall::Requests { by: by(1), received: Vec::new(), is_first: true, limit: usize::MAX },
    ];
    let (answers, _) = decided(&mut together.values, |state| run::decide_all("r", &all, state));
    let [RunAnswer::Done, RunAnswer::Begun(may), RunAnswer::Requests(open)] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert!(may.iter().all(|&may| may));
    let open: BTreeSet<&String> = open.iter().map(|request| &request.key).collect();
    assert_eq!(open, given.iter().collect());
    assert_eq!(together.values, alone.values);
}
