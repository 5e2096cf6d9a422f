//! Wrong addresses: one line each that names the engine, the reason and the remedy, and never the password.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use raymond::engine::EngineError;

use crate::postgres::database::{Database, PASSWORD, connected};
use crate::support::started_run;

#[track_caller]
fn assert_told(url: &str, is_passing: bool, parts: &[&str]) {
    let error = connected(url).expect_err("a wrong address");
    assert_eq!(error.is_passing(), is_passing, "{error}");
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains(PASSWORD) && !shown.contains('\n'), "{shown}");
    assert!(shown.contains("127.0.0.1") || shown.contains("postgres://"), "{shown}");
    for part in parts {
        assert!(error.to_string().contains(part), "`{part}` is not in: {error}");
    }
}

#[test]
fn wrong_users_and_passwords_are_refused() {
    let database = Database::new();
    let port = database.server.port;
    let name = &database.name;
    let wrong = format!("postgres://guarded:wrong-{PASSWORD}@127.0.0.1:{port}/{name}");
    assert_told(&wrong, false, &["password authentication failed", "USER:PASSWORD"]);
    let none = format!("postgres://guarded@127.0.0.1:{port}/{name}");
    assert_told(&none, false, &["asks for a password", "USER:PASSWORD"]);
    let unknown = format!("postgres://nobody:{PASSWORD}@127.0.0.1:{port}/{name}");
    assert_told(&unknown, false, &["no pg_hba.conf entry"]);
    let mut session = database.session();
    session.run(&format!("GRANT CREATE ON DATABASE {name} TO guarded"));
    started_run(&*connected(&database.url_of("guarded")).expect("the right password"));
}

#[test]
fn missing_databases_and_ports_are_named() {
    let database = Database::new();
    let port = database.server.port;
    let elsewhere = format!("postgres://ray:{PASSWORD}@127.0.0.1:{port}/nowhere");
    assert_told(&elsewhere, false, &["\"nowhere\" does not exist", "createdb"]);
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let closed = closed.expect("a free port").port();
    let nobody = format!("postgres://ray:{PASSWORD}@127.0.0.1:{closed}/work");
    assert_told(&nobody, true, &["Connection refused", "check that PostgreSQL listens there"]);
    let socket = format!("postgres:///work?host=/no/folder&user=ray&password={PASSWORD}");
    assert_told(&socket, true, &["No such file", "check that PostgreSQL listens there"]);
}

#[test]
fn server_of_another_kind_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut bytes = [0; 1_000];
            let _ = client.read(&mut bytes);
            let _ = client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let url = format!("postgres://ray:{PASSWORD}@127.0.0.1:{port}/work");
    assert_told(&url, true, &["check that PostgreSQL listens there"]);
}

#[test]
fn wrong_parameters_are_named() {
    let database = Database::new();
    let with = |parameter: &str| format!("{}?{parameter}", database.url());
    assert_told(&with("sslmode=maybe"), false, &["sslmode is none of disable, prefer"]);
    assert_told(
        &with("pasword=s3cret"),
        false,
        &["one of its parameters is unknown; the parameters are user"],
    );
    assert_told(&with("sslmode=require"), false, &["offers no TLS", "sslmode=disable"]);
    assert_told(&with("sslmode=require&sslrootcert=/no/file"), false, &["sslrootcert /no/file"]);
    started_run(&*connected(&with("sslmode=prefer")).expect("it offers no TLS"));
    started_run(&*connected(&with("sslmode=disable&application_name=x")).expect("an engine"));
}

#[test]
fn a_socket_is_an_address() {
    let database = Database::new();
    let folder = database.server.socket().display();
    let port = database.server.port;
    let url = format!("postgres:///{}?host={folder}&port={port}&user=ray", database.name);
    let engine = connected(&url).expect("an engine");
    started_run(&*engine);
    assert!(engine.address().to_string().starts_with("postgres:///"));
    assert!(format!("{engine:?}").contains(&database.name));
}

#[test]
fn a_password_is_in_no_debug_text() {
    let database = Database::new();
    let engine = database.engine();
    let shown = format!("{engine:?} {}", engine.address());
    assert!(shown.contains("ray@127.0.0.1") && !shown.contains(PASSWORD), "{shown}");
    let error = engine.put_blob("not the checksum", b"x").expect_err("a wrong checksum");
    assert!(matches!(error, EngineError::Unstorable { .. }), "{error}");
    assert!(!error.to_string().contains(PASSWORD), "{error}");
}
