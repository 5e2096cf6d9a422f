//! Answers that are lost: each call is made again, and changes nothing the second time.

use std::time::Duration;

use raymond::engine::Engine;
use raymond::engine::connect::SharedCommand;
use raymond::engine::shared_log::Withdrawal;

use crate::postgres::network::Network;
use crate::support::{
    LONG, OneRequest as _, key, lines, names, new_run, receive, reply, report, request,
    served_host, texts,
};

/// Makes each call once with its answer lost; `other` does not go through the network.
pub(crate) fn change_nothing(network: &Network, engine: &dyn Engine, other: &dyn Engine) {
    let mut expected = 0;
    let mut lose = || {
        expected += 1;
        network.lose_answer();
        expected
    };

    let new = new_run(&["first"]);
    lose();
    let lease = engine.create_run(&new, "here", LONG).expect("a new run");
    lose();
    engine.append(&lease, &lines(2, &["b", "c"])).expect("lines");
    lose();
    engine.renew_lease(&lease, LONG).expect("a lease");
    lose();
    engine.set_terms(&lease, "{}").expect("terms");
    lose();
    let claim = engine.register_host(&served_host(other).host, "w", &report(0), Duration::ZERO);
    let claim = claim.expect("a claim");
    lose();
    engine.heartbeat(&claim, &report(1)).expect("a heartbeat");
    lose();
    let sent = ["a", "b", "c"].map(|name| request(&lease, &claim, name));
    engine.send(&lease, &sent).expect("they are sent");
    lose();
    let received = engine.requests(&claim, &[key(&lease, "a")], true, 10).expect("requests");
    assert_eq!(names(&received, |request| &request.key), ["b", "c"]);
    lose();
    assert_eq!(engine.may_begin(&claim, &key(&lease, "a")), Ok(true));
    lose();
    assert_eq!(engine.withdraw(&lease, &key(&lease, "b")), Ok(Withdrawal::NotBegun));
    lose();
    engine.reply_to(&claim, &reply(&lease, "a")).expect("it is answered");
    lose();
    assert_eq!(engine.replies(&lease, &[], 10), Ok(vec![reply(&lease, "a")]));
    lose();
    engine.forget(&lease, &[key(&lease, "a")]).expect("it is over");
    lose();
    let command = SharedCommand { name: "x".to_owned(), content: b"1".to_vec() };
    engine.leave_command(&lease.run, &command).expect("it is left");
    lose();
    engine.remove_command(&lease, "x").expect("it is removed");
    lose();
    assert_eq!(receive(engine, &claim, &[]), ["c"]);
    lose();
    engine.forget_all(&lease).expect("they are over");
    let last = lose();
    engine.release_run(&lease, true).expect("it is given back");

    assert_eq!(network.lost(), last);
    assert_eq!(texts(other, &new.run), ["first", "b", "c"]);
    assert_eq!(engine.commands(&new.run), Ok(Vec::new()));
    assert_eq!(receive(engine, &claim, &[]), [""; 0]);
    let listed = engine.runs().expect("runs");
    let listed = listed.iter().find(|listed| listed.run == new.run).expect("the run");
    assert_eq!((listed.last, listed.has_ended), (3, true));
}
