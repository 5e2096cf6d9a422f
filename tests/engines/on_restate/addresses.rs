//! Wrong addresses: one line each that names the engine, the reason and the remedy, and never the password.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use raymond::engine::connect::ServingOptions;
use raymond::engine::connect::{connect, serve};
use raymond::engine::{EngineAddress, EngineError};

use crate::restate::server::RestateServer;

const PASSWORD: &str = "s3cret";

fn address(url: &str) -> EngineAddress {
    EngineAddress::parse(url).expect("an address")
}

#[track_caller]
fn assert_told(error: &EngineError, is_passing: bool, parts: &[&str]) {
    assert_eq!(error.is_passing(), is_passing, "{error}");
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains(PASSWORD) && !shown.contains('\n'), "{shown}");
    for part in parts {
        assert!(error.to_string().contains(part), "`{part}` is not in: {error}");
    }
}

#[track_caller]
fn refused(url: &str) -> EngineError {
    connect(&address(url)).expect_err("a wrong address")
}

/// Answers each request of a port with the same text.
fn answers(answer: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut bytes = [0; 4_096];
            let _ = client.read(&mut bytes);
            let _ = client.write_all(answer.as_bytes());
        }
    });
    port
}

#[test]
fn address_without_ingress_is_refused() {
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let closed = closed.expect("a free port").port();
    let nobody = refused(&format!("restate://ray:{PASSWORD}@127.0.0.1:{closed}"));
    assert_told(&nobody, true, &["Connection refused", "check that a Restate server listens"]);
    let other = answers("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let other = refused(&format!("restate://ray:{PASSWORD}@127.0.0.1:{other}"));
    assert_told(&other, false, &["no ingress of a Restate server", "8080"]);
    let no_http = answers("what?\r\n\r\n");
    assert_told(&refused(&format!("restate://127.0.0.1:{no_http}")), true, &["127.0.0.1"]);
    let page = answers("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi");
    assert_told(&refused(&format!("restate://127.0.0.1:{page}")), false, &["RaymondIndex"]);
}

#[test]
fn other_versions_are_named() {
    let calls = answers(
        "HTTP/1.1 426 Upgrade Required\r\ncontent-type: application/json\r\ncontent-length: 15\r\nconnection: close\r\n\r\n{\"message\":\"7\"}",
    );
    let error = refused(&format!("restate://127.0.0.1:{calls}"));
    assert!(matches!(error, EngineError::Version { found: 7, known: 6, .. }), "{error}");
    let objects = answers(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 13\r\nconnection: close\r\n\r\n{\"version\":9}",
    );
    let error = refused(&format!("restate://127.0.0.1:{objects}"));
    assert!(matches!(error, EngineError::Version { found: 9, known: 6, .. }), "{error}");
}

#[test]
fn server_without_objects_or_admin_is_named() {
    let server = RestateServer::new("");
    assert_told(&refused(&server.url()), false, &["raymond worker --listen"]);
    let options = |listen: &str| ServingOptions {
        listen: listen.parse().expect("an address"),
        advertise: None,
        server_key: None,
    };
    let elsewhere = format!("restate://127.0.0.1:{}?admin=http://127.0.0.1:1", server.ingress);
    let error = serve(&address(&elsewhere), &options("127.0.0.1:0")).expect_err("nobody is there");
    assert_told(&error, true, &["admin interface", "127.0.0.1:1", "?admin=URL"]);
    for (listen, why) in [("0.0.0.0:0", "--server-key"), ("10.0.0.1:9080", "--server-key")] {
        let error = serve(&server.address(), &options(listen)).expect_err("it is not safe");
        assert_told(&error, false, &[why, listen]);
    }
    let key = Some("publickeyv1_ChjENKeMvCtRnqG2mrBK1HmPKufgFUc98K8B3ononQvp".to_owned());
    let open = ServingOptions { server_key: key, ..options("0.0.0.0:0") };
    let error = serve(&server.address(), &open).expect_err("the server cannot dial that");
    assert_told(&error, false, &["--advertise"]);
    let no_key = ServingOptions { server_key: Some("x".to_owned()), ..options("127.0.0.1:0") };
    let error = serve(&server.address(), &no_key).expect_err("no key");
    assert_told(&error, false, &["publickeyv1_"]);
}
