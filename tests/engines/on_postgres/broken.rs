//! Connections that break: answers that are lost, a network that falls silent, a server that stands still.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use raymond::engine::host_mailbox::{MailReceiver, Withdrawal};
use raymond::engine::run_space::SharedCommand;
use raymond::engine::{Engine, EngineError};

use crate::postgres::database::{Database, PASSWORD, connected};
use crate::postgres::network::Network;
use crate::postgres::server::Server;
use crate::support::{
    LONG, OneRequest as _, begun_run, key, lines, names, new_run, receive, reply, report, request,
    served_host, texts,
};

/// The time in which a call has to end, whatever the server does.
const LATEST: Duration = Duration::from_secs(15);

/// An engine whose connections go through a network that can be broken.
fn behind_network(database: &Database) -> (Network, Arc<dyn Engine>) {
    let network = Network::to(database.server.port);
    let url = format!("postgres://ray:{PASSWORD}@127.0.0.1:{}/{}", network.port, database.name);
    let engine = connected(&url).expect("an engine");
    (network, engine)
}

#[test]
fn a_lost_answer_changes_nothing() {
    let database = Database::new();
    let (network, engine) = behind_network(&database);
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
    let claim = engine.register_host(&served_host(&*database.engine()).host, "w", &report(0));
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
    assert_eq!(receive(&*engine, &claim, &[]), ["c"]);
    lose();
    engine.forget_all(&lease).expect("they are over");
    let last = lose();
    engine.release_run(&lease, true).expect("it is given back");

    assert_eq!(network.lost(), last);
    assert_eq!(texts(&*database.engine(), &new.run), ["first", "b", "c"]);
    assert_eq!(engine.commands(&new.run), Ok(Vec::new()));
    assert_eq!(receive(&*engine, &claim, &[]), [""; 0]);
    let listed = engine.runs().expect("runs");
    assert_eq!((listed[0].last, listed[0].has_ended), (3, true));
}

#[test]
fn a_cut_connection_is_replaced_quietly() {
    let database = Database::new();
    let (network, engine) = behind_network(&database);
    let lease = begun_run(&*engine);
    for seq in 2..12 {
        network.cut();
        engine.append(&lease, &lines(seq, &[&format!("line {seq}")])).expect("a line");
    }
    let mut session = database.session();
    let ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
        WHERE datname = current_database() AND application_name = 'raymond'";
    for seq in 12..22 {
        session.run(ended);
        engine.append(&lease, &lines(seq, &[&format!("line {seq}")])).expect("a line");
    }
    assert_eq!(texts(&*engine, &lease.run).len(), 21);
}

#[test]
fn a_silent_network_ends_calls_in_time() {
    let database = Database::new();
    let (network, engine) = behind_network(&database);
    let lease = begun_run(&*engine);
    network.fall_silent();
    let run = &lease.run;
    let calls: [&(dyn Fn() -> Result<(), EngineError> + Sync); 4] = [
        &|| engine.append(&lease, &lines(2, &["b"])),
        &|| engine.renew_lease(&lease, LONG),
        &|| engine.wait_for_mail(MailReceiver::Run(run), LONG),
        &|| engine.wait_for_lines(run, 5, LONG),
    ];
    thread::scope(|scope| {
        for call in calls {
            scope.spawn(move || {
                let start = Instant::now();
                let error = call().expect_err("nobody answers");
                assert!(error.is_passing(), "{error}");
                assert!(start.elapsed() < LATEST, "{:?}", start.elapsed());
                assert!(error.to_string().contains("no answer within"), "{error}");
            });
        }
    });
    let start = Instant::now();
    let error = connected(&format!("postgres://ray@127.0.0.1:{}/x", network.port));
    let error = error.expect_err("nobody answers");
    assert!(error.is_passing() && start.elapsed() < LATEST, "{error}");
    network.come_back();
    engine.append(&lease, &lines(2, &["b"])).expect("a line");
    assert_eq!(texts(&*engine, &lease.run), ["first", "b"]);
}

#[test]
fn a_server_that_stands_still_ends_calls_in_time() {
    let server = Arc::new(Server::new(""));
    let database = Database::on(server.clone());
    let engine = database.engine();
    let lease = begun_run(&*engine);
    server.pause();
    thread::scope(|scope| {
        // More callers than connections.
        for number in 0..12 {
            let (engine, lease) = (&engine, &lease);
            scope.spawn(move || {
                let start = Instant::now();
                let error = engine.append(lease, &lines(2, &[&format!("t{number}")]));
                let error = error.expect_err("nobody answers");
                assert!(error.is_passing(), "{error}");
                assert!(start.elapsed() < LATEST, "{:?}", start.elapsed());
            });
        }
    });
    server.go_on();
    // One of the appends may have been carried out meanwhile.
    match engine.append(&lease, &lines(2, &["after"])) {
        Ok(()) | Err(EngineError::Damaged { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    assert_eq!(texts(&*engine, &lease.run).len(), 2);
}
