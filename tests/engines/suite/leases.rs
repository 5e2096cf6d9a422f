//! Leases: who may write for a run.

use std::time::Duration;

use raymond::engine::shared_log::{NewSharedRun, RunLease};
use raymond::engine::{Engine, EngineError};

use crate::support::{LONG, lines, new_run, new_run_id, started_run, take_over, texts, wait_until};

pub(crate) fn a_run_is_created_once(one: &dyn Engine, other: &dyn Engine) {
    let new = new_run(&["a", "b"]);
    let lease = one.create_run(&new, "here", LONG).expect("a new run");
    assert_eq!(lease, RunLease { run: new.run.clone(), epoch: 1 });
    assert_eq!(other.create_run(&new, "here", LONG), Ok(lease));
    assert_eq!(texts(one, &new.run), ["a", "b"]);
}

pub(crate) fn another_run_does_not_get_the_id(one: &dyn Engine, other: &dyn Engine) {
    let new = new_run(&["a", "b"]);
    one.create_run(&new, "here", LONG).expect("a new run");
    let others = [
        NewSharedRun { terms: "{}".to_owned(), ..new.clone() },
        NewSharedRun { lines: lines(1, &["a", "c"]), ..new.clone() },
        NewSharedRun { lines: lines(1, &["a", "b", "c"]), ..new.clone() },
    ];
    for another in others {
        let error = other.create_run(&another, "here", LONG).expect_err("the id is taken");
        assert!(matches!(error, EngineError::RunExists { .. }), "{error}");
    }
    let error = other.create_run(&new, "there", LONG).expect_err("the id is taken");
    assert!(matches!(error, EngineError::RunExists { .. }), "{error}");
    assert_eq!(texts(one, &new.run), ["a", "b"]);
}

pub(crate) fn a_living_lease_keeps_others_out(one: &dyn Engine, other: &dyn Engine) {
    let lease = started_run(one);
    let error = other.claim_run(&lease.run, "there", LONG).expect_err("it is held");
    let EngineError::Supervised { holder, run, .. } = error else { panic!("{error}") };
    assert_eq!((holder.as_str(), run), ("here", lease.run.clone()));
    one.append(&lease, &lines(2, &["second"])).expect("the lease is as it was");
}

pub(crate) fn a_lease_runs_out_by_itself(one: &dyn Engine, other: &dyn Engine) {
    let lease = started_run(one);
    one.renew_lease(&lease, Duration::from_millis(200)).expect("a short lease");
    let mut claimed = None;
    wait_until("the lease runs out", || {
        claimed = other.claim_run(&lease.run, "there", LONG).ok();
        claimed.is_some()
    });
    assert_eq!(claimed, Some(RunLease { run: lease.run, epoch: 2 }));
}

pub(crate) fn a_renewed_lease_does_not_run_out(one: &dyn Engine, other: &dyn Engine) {
    let new = new_run(&["a"]);
    let lease = one.create_run(&new, "here", Duration::ZERO).expect("a new run");
    one.renew_lease(&lease, LONG).expect("nobody has taken it over");
    let error = other.claim_run(&lease.run, "there", LONG).expect_err("it is held");
    assert!(matches!(error, EngineError::Supervised { .. }), "{error}");
}

pub(crate) fn a_lease_that_is_given_back_is_free(one: &dyn Engine, other: &dyn Engine) {
    let lease = started_run(one);
    one.release_run(&lease, false).expect("it is given back");
    one.release_run(&lease, false).expect("it may be said again");
    one.renew_lease(&lease, LONG).expect("nobody has taken it over");
    let listed = one.runs().expect("runs");
    let listed = listed.iter().find(|listed| listed.run == lease.run).expect("the run");
    assert_eq!(listed.holder, None);
    let next = other.claim_run(&lease.run, "there", LONG).expect("a claim");
    assert_eq!(next.epoch, 2);
    let error = one.release_run(&lease, true).expect_err("it was taken over");
    assert_eq!(error, EngineError::TakenOver { run: lease.run });
}

pub(crate) fn the_same_holder_fences_its_earlier_lease(one: &dyn Engine, other: &dyn Engine) {
    let lease = started_run(one);
    let next = other.claim_run(&lease.run, "here", LONG).expect("a claim of the same holder");
    assert_eq!(next.epoch, 2);
    let error = one.append(&lease, &lines(2, &["late"])).expect_err("it was taken over");
    assert_eq!(error, EngineError::TakenOver { run: lease.run });
}

pub(crate) fn an_older_lease_can_change_nothing(one: &dyn Engine, other: &dyn Engine) {
    let lease = started_run(one);
    let next = take_over(other, &lease);
    let taken_over = Err(EngineError::TakenOver { run: lease.run.clone() });
    assert_eq!(one.append(&lease, &lines(2, &["late"])), taken_over);
    assert_eq!(one.append(&lease, &lines(1, &["first"])), taken_over);
    assert_eq!(one.renew_lease(&lease, LONG), taken_over);
    assert_eq!(one.release_run(&lease, true), taken_over);
    assert_eq!(one.set_terms(&lease, "{}"), taken_over);
    assert_eq!(one.remove_command(&lease, "x"), taken_over);
    assert_eq!(texts(other, &lease.run), ["first"]);
    assert_eq!(other.terms(&lease.run), Ok(r#"{"budget": 5}"#.to_owned()));
    let listed = other.runs().expect("runs");
    let listed = listed.iter().find(|listed| listed.run == lease.run).expect("the run");
    assert_eq!((listed.holder.as_deref(), listed.has_ended), (Some("there"), false));
    other.append(&next, &lines(2, &["second"])).expect("the new lease");
}

pub(crate) fn an_ended_run_is_listed_as_ended(one: &dyn Engine, other: &dyn Engine) {
    let lease = started_run(one);
    one.append(&lease, &lines(2, &["b", "c"])).expect("lines");
    let find = |engine: &dyn Engine| {
        let listed = engine.runs().expect("runs").into_iter();
        listed.clone().find(|listed| listed.run == lease.run).expect("the run")
    };
    let going = find(other);
    assert_eq!((going.holder.as_deref(), going.last, going.has_ended), (Some("here"), 3, false));
    one.release_run(&lease, true).expect("it is given back");
    let ended = find(other);
    assert_eq!((ended.holder.as_deref(), ended.last, ended.has_ended), (None, 3, true));
    other.claim_run(&lease.run, "there", LONG).expect("somebody may ask for it");
    assert!(!find(one).has_ended, "it goes on");
}

pub(crate) fn runs_are_listed_in_order(one: &dyn Engine, other: &dyn Engine) {
    let mut made: Vec<_> = (0..12).map(|_| started_run(one).run).collect();
    made.sort();
    let runs = other.runs().expect("runs");
    let listed: Vec<_> =
        runs.into_iter().map(|listed| listed.run).filter(|run| made.contains(run)).collect();
    assert_eq!(listed, made);
}

pub(crate) fn runs_that_are_not_there_are_named(one: &dyn Engine, _: &dyn Engine) {
    let run = new_run_id();
    let errors = [
        one.claim_run(&run, "here", LONG).expect_err("no run"),
        one.read(&run, 0, 10).expect_err("no run"),
        one.terms(&run).expect_err("no run"),
        one.commands(&run).expect_err("no run"),
    ];
    for error in errors {
        assert!(matches!(error, EngineError::NoSuchRun { .. }), "{error}");
        assert!(error.to_string().contains(run.as_str()), "{error}");
    }
}

pub(crate) fn terms_are_replaced(one: &dyn Engine, other: &dyn Engine) {
    let lease = started_run(one);
    assert_eq!(other.terms(&lease.run), Ok(r#"{"budget": 5}"#.to_owned()));
    one.set_terms(&lease, r#"{"budget": 9}"#).expect("new terms");
    assert_eq!(other.terms(&lease.run), Ok(r#"{"budget": 9}"#.to_owned()));
}
