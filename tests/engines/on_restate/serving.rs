//! Workers that serve the objects: one at a time, another one when it dies, and none to whoever is not the server.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use raymond::engine::connect::ServingOptions;
use raymond::engine::connect::{connect, serve};

use crate::restate::server::RestateServer;
use crate::support::{
    OneRequest as _, key, lines, receive, reply, request, served_host, started_run, texts,
    wait_until,
};
use crate::wrong_clock::{AHEAD, PRELOAD, library};

/// A worker in a folder of its own that serves the objects. It is killed with the value.
struct ListeningWorker {
    child: Child,
    _folder: tempfile::TempDir,
}

/// Returns the command of a worker that serves the objects.
fn worker(server: &RestateServer, name: &str, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_raymond"));
    command
        .args(["worker", "--slots", "1", "--listen", "127.0.0.1:0", "--host", name, "--dir"])
        .arg(folder)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", folder)
        .env("RAYMOND_ENGINE", server.url())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

impl ListeningWorker {
    fn start(server: &RestateServer, name: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let child = worker(server, name, folder.path()).spawn();
        Self { child: child.expect("it starts"), _folder: folder }
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for ListeningWorker {
    fn drop(&mut self) {
        self.kill();
    }
}

fn wait_host(server: &RestateServer, name: &str) {
    wait_until("the host is in service", || {
        let hosts = connect(&server.address()).and_then(|engine| engine.hosts());
        hosts.is_ok_and(|hosts| hosts.iter().any(|host| host.host.as_str() == name))
    });
}

#[test]
fn another_worker_replaces_a_killed_worker() {
    let server = RestateServer::new("");
    let mut first = ListeningWorker::start(&server, "one");
    wait_host(&server, "one");
    let _second = ListeningWorker::start(&server, "two");
    wait_host(&server, "two");
    let engine = server.engine();
    let (lease, claim) = (started_run(&*engine), served_host(&*engine));
    engine.append(&lease, &lines(2, &["before"])).expect("a line");
    engine.send(&lease, &[request(&lease, &claim, "a")]).expect("it is sent");
    first.kill();
    // What is called while nobody serves is carried out once, whoever was told so.
    let mut called = 0;
    wait_until("somebody serves the objects again", || {
        called += 1;
        engine.append(&lease, &lines(3, &["after"])).is_ok()
    });
    assert!(called > 0);
    assert_eq!(texts(&*engine, &lease.run), ["first", "before", "after"]);
    assert_eq!(receive(&*engine, &claim, &[]), ["a"]);
    assert_eq!(engine.may_begin(&claim, &key(&lease, "a")), Ok(true));
    engine.reply_to(&claim, &reply(&lease, "a")).expect("it is answered");
    // The first one is not needed when it comes back, and lets the second one serve.
    let _third = ListeningWorker::start(&server, "one");
    engine.append(&lease, &lines(4, &["later"])).expect("a line");
}

/// Asks an endpoint as somebody who is not the server; returns the start of its answer.
fn ask_as_a_stranger(url: &str) -> String {
    let place = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(place).expect("it listens");
    // The preface of HTTP/2, its settings, and a request for `/discover`.
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    let mut fields = vec![0x82, 0x86, 0x04, 9];
    fields.extend(b"/discover");
    fields.extend([0x01, 1, b'x']);
    bytes.extend([0, 0, u8::try_from(fields.len()).expect("a length"), 1, 5, 0, 0, 0, 1]);
    bytes.extend(fields);
    stream.write_all(&bytes).expect("it is asked");
    let mut answer = Vec::new();
    let mut part = [0; 4_096];
    wait_until("an answer", || {
        let count = stream.read(&mut part).unwrap_or(0);
        answer.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&answer);
        count == 0 || text.contains("RaymondRun") || text.contains("identity")
    });
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn worker_whose_clock_is_wrong_serves_no_objects() {
    let server = RestateServer::new("");
    for (ahead, direction) in [("60", "ahead of"), ("-60", "behind")] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = worker(&server, "one", folder.path());
        command.env(PRELOAD, library()).env(AHEAD, ahead);
        let refused = command.stderr(Stdio::piped()).output().expect("it starts");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(69), "{said}");
        assert!(said.contains("the clock of this machine is "), "{said}");
        assert!(said.contains(&format!(" s {direction} that of the server")), "{said}");
    }
    // Nobody is registered by that, so one whose clock is right serves.
    let _right = ListeningWorker::start(&server, "one");
    wait_host(&server, "one");
}

#[test]
fn calls_without_the_signature_of_the_server_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let pem = folder.path().join("key.pem");
    // A private key of Ed25519, made for this test alone.
    let private = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIHsEcVRPEbHu0IHQgGmXLHgNRfkFgKI2oc+kI9wgqpIL\n-----END PRIVATE KEY-----\n";
    fs::write(&pem, private).expect("the key is written");
    let settings = format!("request-identity-private-key-pem-file = \"{}\"\n", pem.display());
    let server = RestateServer::new(&settings);
    let options = |key: Option<&str>| ServingOptions {
        listen: "127.0.0.1:0".parse().expect("an address"),
        advertise: None,
        server_key: key.map(str::to_owned),
    };
    let other = "publickeyv1_ChjENKeMvCtRnqG2mrBK1HmPKufgFUc98K8B3ononQvp";
    let refused = serve(&server.address(), &options(Some(other))).expect_err("another key");
    assert!(refused.to_string().contains("admin"), "{refused}");
    let own = "publickeyv1_Db9LRM46zYFUnvyj1NAhqGBz4jyBGMQEpXfX9xnytMFK";
    let endpoint = serve(&server.address(), &options(Some(own))).expect("its own key");
    let engine = server.engine();
    started_run(&*engine);
    let told = ask_as_a_stranger(&endpoint.url);
    assert!(told.contains("identity") && !told.contains("RaymondRun"), "{told}");
}
