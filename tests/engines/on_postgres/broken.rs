//! Connections that break: answers that are lost, a network that falls silent, a server that stands still.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use raymond::engine::shared_log::MailReceiver;
use raymond::engine::{Engine, EngineError};

use crate::lost_answers;
use crate::postgres::database::{Database, PASSWORD, connected};
use crate::postgres::network::Network;
use crate::postgres::server::Server;
use crate::support::{LONG, lines, started_run, texts};

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
    lost_answers::change_nothing(&network, &*engine, &*database.engine());
}

#[test]
fn a_cut_connection_is_replaced_quietly() {
    let database = Database::new();
    let (network, engine) = behind_network(&database);
    let lease = started_run(&*engine);
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
    let lease = started_run(&*engine);
    network.fall_silent();
    let run = &lease.run;
    let calls: [&(dyn Fn() -> Result<(), EngineError> + Sync); 3] = [
        &|| engine.append(&lease, &lines(2, &["b"])),
        &|| engine.renew_lease(&lease, LONG),
        &|| engine.wait_for_mail(MailReceiver::Run(run), LONG),
    ];
    let ends_in_time = |call: &dyn Fn() -> Result<(), EngineError>| {
        let start = Instant::now();
        let error = call().expect_err("nobody answers");
        assert!(error.is_passing(), "{error}");
        assert!(start.elapsed() < LATEST, "{:?}", start.elapsed());
        assert!(error.to_string().contains(" within "), "{error}");
    };
    thread::scope(|scope| {
        for call in calls {
            scope.spawn(move || ends_in_time(call));
        }
    });
    // A read has more time on a connection that is open, and the calls before have given that one up.
    ends_in_time(&|| engine.read(run, 0, 5).map(drop));
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
    let lease = started_run(&*engine);
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
