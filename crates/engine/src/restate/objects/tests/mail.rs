//! Tests of the decisions about requests and replies.

use super::*;

#[test]
fn withdrawn_request_starts_only_if_a_later_supervisor_sends_it() {
    let mut run = TestRun::begun();
    run.deed(1, send("r/a"));
    let fate =
        |run: &mut TestRun, epoch| run.deed(epoch, LeasedDeed::Withdraw { key: "r/a".to_owned() });
    assert_eq!(fate(&mut run, 1), RunAnswer::Fate(Withdrawal::NotBegun));
    run.deed(1, send("r/a"));
    assert_eq!(run.call(&begin("r/a")), RunAnswer::Begun(vec![false]));
    run.run_out_and_claim();
    run.deed(2, send("r/a"));
    assert_eq!(run.call(&begin("r/a")), RunAnswer::Begun(vec![true]));
    assert_eq!(fate(&mut run, 2), RunAnswer::Fate(Withdrawal::Begun));
    run.call(&reply("r/a"));
    assert_eq!(fate(&mut run, 2), RunAnswer::Fate(Withdrawal::Answered));
}

#[test]
fn hosts_are_notified_of_a_run_once_and_of_mail_after_they_have_received_all() {
    let mut run = TestRun::begun();
    run.deed(1, send("r/a"));
    run.deed(1, send("r/a"));
    run.deed(1, send("r/b"));
    let add = ObjectEffect::Host("h".to_owned(), HostCall::AddRun { run: "r".to_owned() });
    let mail = ObjectEffect::HostSoon("h".to_owned(), HostCall::Mail);
    assert_eq!(run.effects, [add, mail.clone()], "it looks until it has received all");
    run.effects.clear();
    let received = |keys: &[&str]| RunCall::Requests {
        by: by(1),
        received: texts(keys),
        is_first: false,
        limit: 10,
    };
    run.call(&received(&["r/a"]));
    run.deed(1, send("r/c"));
    assert_eq!(run.effects, []);
    run.call(&received(&["r/b", "r/c"]));
    run.deed(1, send("r/d"));
    assert_eq!(run.effects, [mail]);
    run.effects.clear();
    assert_eq!(run.deed(1, LeasedDeed::ForgetAll { by: number(9) }), RunAnswer::Done);
    let drop = ObjectEffect::Host("h".to_owned(), HostCall::DropRun { run: "r".to_owned() });
    assert_eq!(run.effects, [drop]);
    assert_eq!(run.deed(1, LeasedDeed::Sent), RunAnswer::Keys(Vec::new()));
}

/// Sends a request, has it answered, and forgets it.
fn finish(run: &mut TestRun, key: &str, at: u64) {
    run.deed(1, sending(key, at, false));
    run.call(&reply(key));
    run.deed(1, LeasedDeed::Forget { keys: texts(&[key]), by: number(at + 1) });
}

fn sending(key: &str, at: u64, is_again: bool) -> LeasedDeed {
    let LeasedDeed::Send { requests, .. } = send(key) else { unreachable!("it sends") };
    LeasedDeed::Send { requests, by: number(at), is_again }
}

#[test]
fn sending_that_comes_late_finds_its_key_taken() {
    let mut run = TestRun::begun();
    finish(&mut run, "r/a", 10);
    let other = SenderNumber { sender: "there".to_owned(), number: 20 };
    let LeasedDeed::Send { requests, .. } = send("r/a") else { unreachable!("it sends") };
    let of_other = LeasedDeed::Send { requests, by: other, is_again: false };
    for late in [sending("r/a", 10, false), sending("r/a", 20, true), of_other] {
        run.deed(1, late);
        assert_eq!(run.call(&begin("r/a")), RunAnswer::Begun(vec![false]));
    }
    let fate = run.deed(1, LeasedDeed::Withdraw { key: "r/a".to_owned() });
    assert_eq!(fate, RunAnswer::Fate(Withdrawal::Begun), "it was");
    run.deed(1, sending("r/b", 5, false));
    assert_eq!(
        run.call(&begin("r/b")),
        RunAnswer::Begun(vec![true]),
        "it comes late, for the first time"
    );
}

#[test]
fn sending_of_new_requests_reads_no_forgotten_ones() {
    let mut run = TestRun::begun();
    finish(&mut run, "r/a", 10);
    let damaged = run.values.keys().filter(|key| key.starts_with("forgotten_requests/")).cloned();
    for key in damaged.collect::<Vec<_>>() {
        run.values.insert(key, b"damaged".to_vec());
    }
    run.deed(1, sending("r/b", 12, false));
    assert_eq!(run.call(&begin("r/b")), RunAnswer::Begun(vec![true]));
}

#[test]
fn forgotten_requests_are_known_for_a_while() {
    let mut run = TestRun::begun();
    for at in 0..15_000 {
        finish(&mut run, &format!("r/{at}"), 2 * at);
    }
    for (at, is_known) in [(0, false), (5_000, true), (14_999, true)] {
        let key = format!("r/{at}");
        run.deed(1, sending(&key, 40_000, true));
        assert_eq!(run.call(&begin(&key)), RunAnswer::Begun(vec![!is_known]), "{key}");
    }
    run.deed(1, LeasedDeed::ForgetAll { by: number(50_000) });
    let kept =
        |run: &TestRun, start: &str| run.values.keys().filter(|key| key.starts_with(start)).count();
    assert_eq!(kept(&run, "forgotten_requests/"), 41);
    for gone in ["queue/", "answered", "withdrawn", "bodies/"] {
        assert_eq!(kept(&run, gone), 0, "{gone}");
    }
}

#[test]
fn bodies_are_kept_in_batches_as_long_as_one_of_them_is_needed() {
    let mut run = TestRun::begun();
    let requests = |from: usize, to: usize| -> Vec<CarriedRequest> {
        (from..to)
            .map(|at| CarriedRequest {
                key: format!("r/{at}"),
                host: "h".to_owned(),
                host_epoch: 1,
                body: format!("do {at}"),
            })
            .collect()
    };
    let bodies = |run: &TestRun| run.values.keys().filter(|key| key.starts_with("bodies/")).count();
    let sent = requests(0, 200);
    run.deed(1, LeasedDeed::Send { requests: sent, by: number(1), is_again: false });
    assert_eq!(bodies(&run), 2);
    let all = run.call(&RunCall::Requests {
        by: by(1),
        received: Vec::new(),
        is_first: true,
        limit: 500,
    });
    let RunAnswer::Requests(all) = all else { panic!("{all:?}") };
    assert!(all.iter().zip(0..200).all(|(request, at)| request.body == format!("do {at}")));
    assert_eq!(all.len(), 200);
    let answer = |at: usize| HostReply { key: format!("r/{at}"), body: format!("done {at}") };
    run.call(&RunCall::Reply { by: by(1), replies: (0..127).map(answer).collect() });
    assert_eq!(bodies(&run), 3, "one of the first batch is open");
    run.call(&RunCall::Reply { by: by(1), replies: vec![answer(127)] });
    assert_eq!(bodies(&run), 3, "the first batch is gone, and there are two of replies");
    let replies = run.deed(1, LeasedDeed::Replies { received: texts(&["r/0"]), limit: 500 });
    let RunAnswer::Replies(replies) = replies else { panic!("{replies:?}") };
    assert!(replies.iter().eq(&(1..128).map(answer).collect::<Vec<_>>()));
    let keys: Vec<String> = (0..128).map(|at| format!("r/{at}")).collect();
    run.deed(1, LeasedDeed::Forget { keys, by: number(2) });
    assert_eq!(bodies(&run), 1);
}

#[test]
fn question_is_asked_once_and_goes_with_its_reply() {
    let mut run = TestRun::begun();
    let ask = |key: &str| RunCall::Ask {
        question: CarriedRequest {
            key: key.to_owned(),
            host: "h".to_owned(),
            host_epoch: 1,
            body: "what".to_owned(),
        },
    };
    let asked =
        |run: &mut TestRun, key: &str| run.look(&RunLook::QuestionReply { key: key.to_owned() });
    let before = run.values.len();
    run.call(&ask("?r/a"));
    run.call(&ask("?r/a"));
    assert_eq!(run.deed(1, LeasedDeed::Sent), RunAnswer::Keys(Vec::new()), "no supervisor sees it");
    assert_eq!(asked(&mut run, "?r/a"), RunAnswer::QuestionReply(None));
    run.call(&reply("?r/a"));
    assert_eq!(asked(&mut run, "?r/a"), RunAnswer::QuestionReply(Some("done ?r/a".to_owned())));
    run.call(&ask("?r/a"));
    assert_eq!(run.call(&begin("?r/a")), RunAnswer::Begun(vec![false]), "it has a reply");
    run.call(&ask("?r/b"));
    for key in ["?r/a", "?r/b", "?r/c"] {
        run.call(&RunCall::EndQuestion { key: key.to_owned() });
        assert_eq!(asked(&mut run, key), RunAnswer::QuestionReply(None));
    }
    assert_eq!(run.values.len(), before);
}
