//! Tests of the replies that a supervisor has received, which are put into lists once they are many.

use super::queues::{begun_many, key, keys, of_kind, reply_many, send_many};
use super::*;

/// Receives all replies of a run, so many at a time; returns their keys.
fn receive(run: &mut TestRun, epoch: u64, limit: usize) -> Vec<String> {
    let (mut all, mut received) = (Vec::new(), Vec::new());
    loop {
        let RunAnswer::Replies(replies) = run.deed(epoch, LeasedDeed::Replies { received, limit })
        else {
            panic!("no replies")
        };
        if replies.is_empty() {
            return all;
        }
        for reply in &replies {
            assert_eq!(reply.body, format!("done {}", reply.key));
        }
        received = replies.into_iter().map(|reply| reply.key).collect();
        all.extend(received.clone());
    }
}

/// Returns a run with so many replies, which its supervisor has received.
fn received_many(count: usize) -> TestRun {
    let mut run = begun_many(count);
    for part in keys(0, count).chunks(70) {
        reply_many(&mut run, part);
    }
    assert_eq!(receive(&mut run, 1, 50), keys(0, count));
    run
}

#[test]
fn few_received_replies_have_no_lists() {
    let run = received_many(128);
    assert_eq!((of_kind(&run, "received/"), of_kind(&run, "answered")), (0, 1));
}

#[test]
fn reply_costs_the_same_however_many_were_received() {
    let mut run = received_many(1_000);
    assert!(run.values["answered"].len() < 20_000, "{}", run.values["answered"].len());
    send_many(&mut run, 1, &[key(1_000)], 100);
    let damaged: Vec<String> =
        run.values.keys().filter(|key| key.starts_with("received/")).cloned().collect();
    assert!(damaged.len() >= 5, "{damaged:?}");
    let whole = run.values.clone();
    for list in &damaged {
        run.values.insert(list.clone(), b"damaged".to_vec());
    }
    send_many(&mut run, 1, &[key(1_001)], 101);
    run.call(&begin(&key(1_001)));
    reply_many(&mut run, &keys(1_000, 1_002));
    assert_eq!(receive(&mut run, 1, 10), keys(1_000, 1_002));
    for list in damaged {
        let value = whole[&list].clone();
        run.values.insert(list, value);
    }
    let RunAnswer::Keys(mut sent) = run.deed(1, LeasedDeed::Sent) else { panic!("no keys") };
    sent.sort_unstable();
    let mut all = keys(0, 1_002);
    all.sort_unstable();
    assert_eq!(sent, all);
}

#[test]
fn next_supervisor_receives_all_replies_that_were_not_forgotten() {
    let mut run = received_many(500);
    run.deed(1, LeasedDeed::Forget { keys: keys(0, 200), by: number(100) });
    run.run_out_and_claim();
    assert_eq!(receive(&mut run, 2, 90), keys(200, 500));
    assert_eq!(receive(&mut run, 2, 90), Vec::<String>::new());
    run.deed(2, LeasedDeed::Forget { keys: keys(200, 500), by: number(101) });
    for gone in ["received/", "answered", "bodies/"] {
        assert_eq!(of_kind(&run, gone), 0, "{gone}");
    }
}

#[test]
fn request_with_received_reply_is_not_started_again() {
    let mut run = received_many(400);
    let late = |at: u64, is_again: bool, sender: &str| LeasedDeed::Send {
        requests: vec![CarriedRequest {
            key: key(3),
            host: "h".to_owned(),
            host_epoch: 1,
            body: "do it again".to_owned(),
        }],
        by: SenderNumber { sender: sender.to_owned(), number: at },
        is_again,
    };
    let open = |run: &mut TestRun, epoch: u64, deed: LeasedDeed| {
        assert_eq!(run.deed(epoch, deed), RunAnswer::Done);
        of_kind(run, "queue/")
    };
    assert_eq!(open(&mut run, 1, late(1, false, "here")), 0, "it was overtaken");
    assert_eq!(open(&mut run, 1, late(8, false, "here")), 0, "it came twice");
    assert_eq!(open(&mut run, 1, late(200, true, "here")), 0);
    assert_eq!(open(&mut run, 1, late(1, false, "here")), 0, "it was overtaken by that");
    run.run_out_and_claim();
    assert_eq!(open(&mut run, 2, late(1, false, "there")), 0);
    assert_eq!(open(&mut run, 2, late(2, false, "there")), 0, "its lease has received nothing");
    receive(&mut run, 2, 500);
    assert_eq!(open(&mut run, 2, late(3, false, "there")), 0, "its lease has received it");
    let fate = run.deed(2, LeasedDeed::Withdraw { key: key(3) });
    assert_eq!(fate, RunAnswer::Fate(Withdrawal::Answered));
    assert_eq!(run.call(&begin(&key(3))), RunAnswer::Begun(vec![true]), "the note is made again");
}

#[test]
fn received_replies_are_forgotten_in_any_order() {
    let mut run = received_many(600);
    let mut all = keys(0, 600);
    all.sort_by_key(|key| crc32fast::hash(format!("mix {key}").as_bytes()));
    for (at, part) in all.chunks(64).enumerate() {
        run.deed(1, LeasedDeed::Forget { keys: part.to_vec(), by: number(100 + at as u64) });
    }
    for gone in ["received/", "answered", "bodies/", "queue/", "begun"] {
        assert_eq!(of_kind(&run, gone), 0, "{gone}");
    }
}
