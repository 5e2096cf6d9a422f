//! The network of a machine that can be cut off from its engine.
//!
//! Where the system allows it, the machine has a network namespace of its own, and is cut off by taking its only device
//! down: its kernel sends packets and hears nothing. Elsewhere a relay stands between, which swallows bytes.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use super::cluster::Cluster;
use super::machine::Machine;
use crate::postgres::network::Network;

/// Listens on a port of its namespace, and carries each connection to a socket outside, which no network is needed for.
/// It takes the device of the namespace up and down as it is told, and ends with whoever tells it.
const FORWARDER: &str = r#"
import fcntl, os, socket, struct, sys, threading
def carry(source, sink):
    try:
        while part := source.recv(65536):
            sink.sendall(part)
    except OSError:
        pass
    for end in source, sink:
        try: end.shutdown(socket.SHUT_RDWR)
        except OSError: pass
def set_device(is_up):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any:
        fcntl.ioctl(any, 0x8914, struct.pack("16sH14x", b"lo", is_up))
def obey():
    for line in sys.stdin:
        set_device(line == "up\n")
        print(line, end="", flush=True)
    os._exit(0)
set_device(True)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64)
print("ready", flush=True)
threading.Thread(target=obey, daemon=True).start()
while True:
    inner = listener.accept()[0]
    outer = socket.socket(socket.AF_UNIX)
    outer.connect(sys.argv[2])
    for ends in (inner, outer), (outer, inner):
        threading.Thread(target=carry, args=ends, daemon=True).start()
"#;

/// The network of one machine.
#[derive(Debug)]
pub(super) enum OwnNetwork {
    /// A namespace.
    Namespace(Namespace),
    /// A relay in this process.
    Relay(Network),
}

/// A network namespace, which lives as long as the forwarder in it.
#[derive(Debug)]
pub(super) struct Namespace {
    forwarder: Child,
    said: BufReader<ChildStdout>,
}

impl OwnNetwork {
    /// Makes the network of the machine of this name.
    pub(super) fn of(cluster: &Cluster, name: &str) -> Self {
        let port = cluster.backend.port();
        let tried = Command::new("unshare").args(["-rn", "true"]).output();
        if tried.is_ok_and(|tried| tried.status.success()) {
            let socket = cluster.root().join(format!("{name}.socket"));
            return Self::Namespace(Namespace::new(port, &socket));
        }
        assert!(std::env::var_os("CI").is_none(), "CI must allow `unshare -rn`");
        Self::Relay(Network::to(port))
    }

    /// Returns the machine in this network.
    pub(super) fn around<'c>(&self, machine: Machine<'c>) -> Machine<'c> {
        match self {
            Self::Namespace(namespace) => {
                let pid = namespace.forwarder.id().to_string();
                let enter = ["nsenter", "--user", "--net", "--preserve-credentials", "--target"];
                machine.started_by(&[&enter[..], &[&pid]].concat())
            }
            Self::Relay(network) => machine.through(network),
        }
    }

    /// Carries nothing any more, and does not say so.
    pub(super) fn fall_silent(&mut self) {
        match self {
            Self::Namespace(namespace) => namespace.set_device("down"),
            Self::Relay(network) => network.fall_silent(),
        }
    }

    /// Carries everything again.
    pub(super) fn come_back(&mut self) {
        match self {
            Self::Namespace(namespace) => namespace.set_device("up"),
            Self::Relay(network) => network.come_back(),
        }
    }
}

impl Namespace {
    /// Makes a namespace whose port leads to the same port here.
    fn new(port: u16, socket: &Path) -> Self {
        let listener = UnixListener::bind(socket).expect("a socket");
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if let Ok(server) = TcpStream::connect(("127.0.0.1", port)) {
                    carry(&client, &server);
                }
            }
        });
        let mut forwarder = Command::new("unshare")
            .args(["-rn", "python3", "-c", FORWARDER, &port.to_string()])
            .arg(socket)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the forwarder starts");
        let said = BufReader::new(forwarder.stdout.take().expect("a pipe"));
        let mut namespace = Self { forwarder, said };
        namespace.wait("ready");
        namespace
    }

    fn set_device(&mut self, state: &str) {
        let stdin = self.forwarder.stdin.as_mut().expect("a pipe");
        writeln!(stdin, "{state}").expect("it is told");
        self.wait(state);
    }

    fn wait(&mut self, word: &str) {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("a line");
        assert_eq!(line.trim_end(), word, "the forwarder of the namespace");
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.forwarder.kill();
        let _ = self.forwarder.wait();
    }
}

/// Carries the bytes of a connection in both directions.
fn carry(client: &UnixStream, server: &TcpStream) {
    let client = || client.try_clone().expect("an end");
    let server = || server.try_clone().expect("an end");
    let (mut from_client, mut to_server, mut from_server, mut to_client) =
        (client(), server(), server(), client());
    thread::spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Both);
    });
    thread::spawn(move || {
        let _ = io::copy(&mut from_server, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    });
}
