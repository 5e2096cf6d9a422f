//! Questions of whoever looks at a run.

use raymond::engine::shared_log::{HostReply, HostRequest};
use raymond::engine::{Engine, EngineError};

use crate::support::{OneRequest, key, new_run_id, receive, request, served_host, started_run};

fn question(asked: &HostRequest, name: &str) -> HostRequest {
    HostRequest { key: format!("?{}/{name}", asked.run), ..asked.clone() }
}

pub(crate) fn a_question_reaches_its_host_and_no_supervisor(here: &dyn Engine, there: &dyn Engine) {
    let (lease, claim) = (started_run(here), served_host(there));
    let asked = question(&request(&lease, &claim, "x"), "one");
    here.ask(&asked).expect("asked");
    here.ask(&asked).expect("asked again");
    assert_eq!(here.question_reply(&asked.key), Ok(None));
    assert_eq!(receive(there, &claim, &[]), ["one"]);
    let body = "a text".to_owned();
    there.reply_to(&claim, &HostReply { key: asked.key.clone(), body }).expect("replied");
    assert_eq!(here.question_reply(&asked.key).expect("a reply").as_deref(), Some("a text"));
    assert_eq!(here.replies(&lease, &[], 10), Ok(Vec::new()));
    assert_eq!(here.sent(&lease), Ok(Vec::new()));
    here.forget_all(&lease).expect("forgotten");
    assert!(
        here.question_reply(&asked.key).expect("a reply").is_some(),
        "it is not the supervisor's"
    );
    here.end_question(&asked.key).expect("ended");
    assert_eq!(here.question_reply(&asked.key), Ok(None));
    assert_eq!(receive(there, &claim, &[asked.key]), Vec::<String>::new());
}

pub(crate) fn a_question_needs_no_lease_and_a_run(here: &dyn Engine, there: &dyn Engine) {
    let (lease, claim) = (started_run(here), served_host(there));
    here.release_run(&lease, true).expect("released");
    let asked = question(&request(&lease, &claim, "x"), "one");
    there.ask(&asked).expect("asked");
    assert_eq!(receive(there, &claim, &[]), ["one"]);
    let other = HostRequest { run: new_run_id(), ..question(&asked, "two") };
    assert!(matches!(here.ask(&other), Err(EngineError::NoSuchRun { .. })));
}

pub(crate) fn requests_of_a_run_are_not_questions(here: &dyn Engine, there: &dyn Engine) {
    let (lease, claim) = (started_run(here), served_host(there));
    here.send(&lease, &[request(&lease, &claim, "x")]).expect("sent");
    here.end_question(&key(&lease, "x")).expect("nothing to end");
    assert_eq!(receive(there, &claim, &[]), ["x"]);
}
