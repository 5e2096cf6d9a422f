//! Connections that break: answers that are lost, a network that falls silent, a server that stands still.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use raymond::engine::connect::connect;
use raymond::engine::shared_log::MailReceiver;
use raymond::engine::{Engine, EngineAddress, EngineError};

use super::backend::own_server;
use crate::lost_answers;
use crate::postgres::network::Network;
use crate::restate::server::RestateServer;
use crate::support::{LONG, lines, started_run, texts};

/// The time in which a call has to end, whatever the server does.
const LATEST: Duration = Duration::from_secs(15);

/// An engine whose connections go through a network that can be broken.
fn behind_network(server: &RestateServer) -> (Network, Arc<dyn Engine>) {
    let network = Network::to(server.ingress);
    let address = EngineAddress::parse(&server.url_at(network.port)).expect("an address");
    let engine = connect(&address).expect("an engine");
    (network, engine)
}

#[test]
fn a_lost_answer_changes_nothing() {
    let server = RestateServer::shared();
    let (network, engine) = behind_network(&server);
    lost_answers::change_nothing(&network, &*engine, &*server.engine());
}

#[test]
fn a_cut_connection_is_replaced_quietly() {
    let server = RestateServer::shared();
    let (network, engine) = behind_network(&server);
    let lease = started_run(&*engine);
    for seq in 2..12 {
        network.cut();
        engine.append(&lease, &lines(seq, &[&format!("line {seq}")])).expect("a line");
    }
    assert_eq!(texts(&*engine, &lease.run).len(), 11);
}

#[test]
fn a_silent_network_and_a_server_that_stands_still_end_calls_in_time() {
    let server = own_server();
    let (network, engine) = behind_network(&server);
    let direct = server.engine();
    let lease = started_run(&*engine);
    network.fall_silent();
    server.pause();
    let run = &lease.run;
    let calls: [&(dyn Fn() -> Result<(), EngineError> + Sync); 4] = [
        &|| engine.append(&lease, &lines(2, &["b"])),
        &|| direct.renew_lease(&lease, LONG),
        // A wait goes on when its caller comes back.
        &|| loop {
            engine.wait_for_mail(MailReceiver::Run(run), Duration::from_secs(1))?;
        },
        &|| loop {
            direct.wait_for_mail(MailReceiver::Run(run), Duration::from_secs(20))?;
        },
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
    server.go_on();
    network.come_back();
    engine.append(&lease, &lines(2, &["b"])).expect("a line");
    assert_eq!(texts(&*engine, &lease.run), ["first", "b"]);
}
