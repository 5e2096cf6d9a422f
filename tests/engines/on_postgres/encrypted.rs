//! TLS: a certificate is verified, against the authorities that the address names or those of the machine.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use raymond::engine::EngineError;

use crate::postgres::database::{Database, PASSWORD, connected};
use crate::postgres::server::{Server, give};
use crate::support::started_run;

/// Makes a key and a certificate for `localhost` in a folder.
fn make_certificate(folder: &Path) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "server.key", "-out", "server.crt"])
        .current_dir(folder)
        .output()
        .expect("openssl, which PostgreSQL's package brings along");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for file in ["server.key", "server.crt"] {
        give(&folder.join(file), folder);
    }
}

#[test]
fn certificates_are_verified() {
    let server = Arc::new(Server::new(""));
    make_certificate(&server.data());
    server.kill();
    let conf = server.data().join("postgresql.conf");
    let settings = std::fs::read_to_string(&conf).expect("settings");
    std::fs::write(&conf, format!("{settings}\nssl = on\n")).expect("settings");
    server.start();
    let database = Database::on(server.clone());
    let url = |user: &str, machine: &str, parameters: &str| {
        let (port, name) = (server.port, &database.name);
        format!("postgres://{user}:{PASSWORD}@{machine}:{port}/{name}?{parameters}")
    };
    started_run(&*connected(&url("ray", "localhost", "")).expect("loopback may be plain"));
    let mut session = database.session();
    session.run("GRANT USAGE ON SCHEMA raymond TO encrypted");
    session
        .run("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA raymond TO encrypted");
    let authority = format!("sslrootcert={}", server.data().join("server.crt").display());

    for mode in ["prefer", "require", "verify-full"] {
        let trusted = url("encrypted", "localhost", &format!("sslmode={mode}&{authority}"));
        started_run(&*connected(&trusted).expect(mode));
        let unknown = url("encrypted", "localhost", &format!("sslmode={mode}"));
        let other_name = url("encrypted", "127.0.0.1", &format!("sslmode={mode}&{authority}"));
        for wrong in [unknown, other_name] {
            let error = connected(&wrong).expect_err("it is not trusted");
            assert!(matches!(error, EngineError::Refused { .. }), "{error}");
            let error = error.to_string();
            assert!(error.contains("its certificate is not trusted"), "{error}");
            assert!(error.contains("sslrootcert=FILE") && !error.contains(PASSWORD), "{error}");
        }
    }
    let plain = connected(&url("encrypted", "localhost", "sslmode=disable"));
    assert!(plain.expect_err("it asks for TLS").to_string().contains("pg_hba.conf"));
}
