//! Fences against transactions that are under way: each statement waits for them, and then sees what they did.

use std::thread;

use raymond::engine::EngineError;
use raymond::engine::shared_log::Withdrawal;

use crate::postgres::database::{Database, Session};
use crate::support::{
    OneRequest as _, key, lines, reply, report, request, served_host, started_run, texts,
    wait_until,
};

/// Has a statement of another session under way while `call` is made, and commits it when that waits.
fn while_pending<T: Send>(
    session: &mut Session,
    statement: &str,
    call: impl FnOnce() -> T + Send,
) -> T {
    session.run(&format!("BEGIN; {statement}"));
    thread::scope(|scope| {
        let caller = scope.spawn(call);
        wait_until("the call waits", || session.blocked() == 1);
        session.run("COMMIT");
        caller.join().expect("an answer")
    })
}

const CLAIM: &str = "UPDATE raymond.run SET epoch = epoch + 1, holder = 'there'";
const LOSE: &str = "UPDATE raymond.host SET epoch = epoch + 1, standing = 'lost'";

type Call<'a> = Box<dyn Fn() -> Result<(), EngineError> + Send + Sync + 'a>;

#[test]
fn calls_that_wait_for_a_claim_are_refused() {
    let database = Database::new();
    let engine = database.engine();
    let mut session = database.session();
    let claim = served_host(&*engine);
    for number in 0..7 {
        let lease = started_run(&*engine);
        let (engine, claim) = (&engine, &claim);
        let sent = [request(&lease, claim, "a"), request(&lease, claim, "b")];
        engine.send(&lease, &sent).expect("they are sent");
        engine.reply_to(claim, &reply(&lease, "a")).expect("it is answered");
        let keys = [key(&lease, "a"), key(&lease, "b")];
        let calls: [Call<'_>; 7] = [
            Box::new(|| engine.append(&lease, &lines(2, &["late"]))),
            Box::new(|| engine.send(&lease, &[request(&lease, claim, "late")])),
            Box::new(|| engine.withdraw(&lease, &keys[1]).map(drop)),
            Box::new(|| engine.forget(&lease, &keys)),
            Box::new(|| engine.forget_all(&lease)),
            Box::new(|| engine.set_terms(&lease, "late")),
            Box::new(|| engine.remove_command(&lease, "x")),
        ];
        let pending = format!("{CLAIM} WHERE run = '{}'", lease.run);
        let refused = while_pending(&mut session, &pending, || calls[number]());
        assert_eq!(refused, Err(EngineError::TakenOver { run: lease.run.clone() }), "{number}");
        assert_eq!(texts(&**engine, &lease.run), ["first"]);
        let states = format!(
            "SELECT string_agg(state || ' ' || (terms <> 'late')::text, ', ' ORDER BY key) \
             FROM raymond.request JOIN raymond.run USING (run) WHERE run = '{}'",
            lease.run
        );
        assert_eq!(session.ask(&states).as_deref(), Some("answered true, open true"), "{number}");
    }
}

#[test]
fn calls_that_wait_for_a_loss_are_refused() {
    let database = Database::new();
    let engine = database.engine();
    let mut session = database.session();
    let lease = started_run(&*engine);
    for number in 0..3 {
        let claim = served_host(&*engine);
        let (engine, claim) = (&engine, &claim);
        let (a, name) = (key(&lease, &format!("a{number}")), format!("a{number}"));
        engine.send(&lease, &[request(&lease, claim, &name)]).expect("it is sent");
        let pending = format!("{LOSE} WHERE host = '{}'", claim.host);
        let refused = while_pending(&mut session, &pending, || match number {
            0 => engine.may_begin(claim, &a).map(drop),
            1 => engine.reply_to(claim, &reply(&lease, &name)),
            _ => engine.heartbeat(claim, &report(9)).map(drop),
        });
        assert_eq!(refused, Err(EngineError::HostFenced { host: claim.host.clone() }), "{number}");
        let state = "SELECT state || ' ' || begun || ' ' || (report->>'busy') \
            FROM raymond.request JOIN raymond.host USING (host)";
        let state = session.ask(&format!("{state} WHERE key = '{a}'"));
        assert_eq!(state.as_deref(), Some("open false 0"), "{number}");
    }
}

#[test]
fn a_claim_waits_for_an_append_under_way() {
    let database = Database::new();
    let engine = database.engine();
    let mut session = database.session();
    let lease = started_run(&*engine);
    engine.release_run(&lease, false).expect("it is given back");
    let pending = format!(
        "SELECT 1 FROM raymond.run WHERE run = '{run}' FOR SHARE; \
         INSERT INTO raymond.log VALUES ('{run}', 2, 1, 'under way')",
        run = lease.run
    );
    let (claimed, log) = while_pending(&mut session, &pending, || {
        let claimed = engine.claim_run(&lease.run, "there", crate::support::LONG);
        (claimed, texts(&*engine, &lease.run))
    });
    assert_eq!(claimed.expect("a claim").epoch, 2);
    assert_eq!(log, ["first", "under way"], "the new holder reads all that was acknowledged");
}

#[test]
fn an_append_that_met_the_same_lines_was_appended() {
    let database = Database::new();
    let engine = database.engine();
    let mut session = database.session();
    let lease = started_run(&*engine);
    let pending =
        |text| format!("INSERT INTO raymond.log VALUES ('{}', 2, 1, '{text}')", lease.run);
    let append = || engine.append(&lease, &lines(2, &["same", "more"]));
    assert_eq!(while_pending(&mut session, &pending("same"), append), Ok(()));
    assert_eq!(texts(&*engine, &lease.run), ["first", "same", "more"]);
}

#[test]
fn an_append_that_met_another_line_is_refused() {
    let database = Database::new();
    let engine = database.engine();
    let mut session = database.session();
    let lease = started_run(&*engine);
    let pending = format!("INSERT INTO raymond.log VALUES ('{}', 2, 1, 'other')", lease.run);
    let append = || engine.append(&lease, &lines(2, &["one", "two"]));
    let refused = while_pending(&mut session, &pending, append).expect_err("another line");
    assert!(matches!(refused, EngineError::Damaged { .. }), "{refused}");
    assert_eq!(texts(&*engine, &lease.run), ["first", "other"], "all or none");
}

#[test]
fn a_begin_and_a_withdrawal_wait_for_each_other() {
    let database = Database::new();
    let engine = database.engine();
    let mut session = database.session();
    let (lease, claim) = (started_run(&*engine), served_host(&*engine));
    engine.send(&lease, &["a", "b"].map(|name| request(&lease, &claim, name))).expect("sent");
    let (a, b) = (key(&lease, "a"), key(&lease, "b"));
    let withdrawing = format!("UPDATE raymond.request SET state = 'withdrawn' WHERE key = '{a}'");
    let begun = while_pending(&mut session, &withdrawing, || engine.may_begin(&claim, &a));
    assert_eq!(begun, Ok(false));
    let beginning = format!("UPDATE raymond.request SET begun = true WHERE key = '{b}'");
    let fate = while_pending(&mut session, &beginning, || engine.withdraw(&lease, &b));
    assert_eq!(fate, Ok(Withdrawal::Begun));
}

#[test]
fn two_claims_wait_for_each_other() {
    let database = Database::new();
    let engine = database.engine();
    let mut session = database.session();
    let lease = started_run(&*engine);
    engine.release_run(&lease, false).expect("it is given back");
    let claiming = format!(
        "{CLAIM}, lease_until = clock_timestamp() + interval '1 hour' WHERE run = '{}'",
        lease.run
    );
    let refused = while_pending(&mut session, &claiming, || {
        engine.claim_run(&lease.run, "here", crate::support::LONG)
    });
    assert!(matches!(refused, Err(EngineError::Supervised { .. })), "{refused:?}");
}
