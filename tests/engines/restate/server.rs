//! A Restate server in a temporary folder, on free ports of loopback. It is ended and removed with the value, also when a
//! test fails, and ends by itself when the tests are killed.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use raymond::domain::mutex::lock;
use raymond::engine::connect::{ServedEngine, ServingOptions};
use raymond::engine::connect::{connect, serve};
use raymond::engine::{Engine, EngineAddress};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::wait_until;

/// A server. Unless a test starts workers, this process serves the objects to it.
#[derive(Debug)]
pub(crate) struct RestateServer {
    root: tempfile::TempDir,
    pub(crate) ingress: u16,
    pub(crate) admin: u16,
    process: Mutex<Option<ServerProcess>>,
    served: Mutex<Option<ServedEngine>>,
}

#[derive(Debug)]
struct ServerProcess {
    pid: Pid,
    /// The thread that started it and waits for its end. It has to live as long: the kernel ends the process with it.
    keeper: JoinHandle<()>,
}

impl RestateServer {
    /// Returns the server that the tests share; it ends with the last test that uses it.
    pub(crate) fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<RestateServer>> = Mutex::new(Weak::new());
        let mut shared = lock(&SHARED);
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Self::served());
            *shared = Arc::downgrade(&server);
            server
        })
    }

    /// Makes and starts a server whose objects this process serves.
    pub(crate) fn served() -> Self {
        let server = Self::new("");
        server.serve();
        server
    }

    /// Makes and starts a server with further settings for its calls, to which nobody serves the objects.
    pub(crate) fn new(settings: &str) -> Self {
        let root = tempfile::tempdir().expect("a temporary folder");
        let [ingress, admin, node] = free_ports();
        let config = format!(
            "cluster-name = \"test\"\nnode-name = \"test\"\ndefault-num-partitions = 2\n\
             disable-telemetry = true\nlisten-mode = \"tcp\"\nlog-filter = \"error\"\n\
             bind-address = \"127.0.0.1:{node}\"\nadvertised-address = \"http://127.0.0.1:{node}/\"\n\
             rocksdb-total-memory-size = \"256 MiB\"\nshutdown-timeout = \"1s\"\n\
             [ingress]\nbind-address = \"127.0.0.1:{ingress}\"\n\
             [admin]\nbind-address = \"127.0.0.1:{admin}\"\ndisable-web-ui = true\n\
             [worker.invoker]\nconcurrent-invocations-limit = 2000\n{settings}"
        );
        fs::write(root.path().join("restate.toml"), config).expect("its settings");
        let process = Mutex::default();
        let server = Self { root, ingress, admin, process, served: Mutex::default() };
        server.start();
        server
    }

    /// Serves the objects from this process.
    pub(crate) fn serve(&self) {
        let options = ServingOptions {
            listen: "127.0.0.1:0".parse().expect("an address"),
            advertise: None,
            server_key: None,
        };
        *lock(&self.served) = Some(serve(&self.address(), &options).expect("they are served"));
    }

    /// Starts the server, and waits until it is ready.
    pub(crate) fn start(&self) {
        let (tell, told) = mpsc::channel();
        let (config, data) = (self.root.path().join("restate.toml"), self.root.path().join("data"));
        let root = self.root.path().to_owned();
        let keeper = thread::spawn(move || {
            let mut child = Command::new("setpriv")
                .args(["--pdeathsig=KILL", "--"])
                .arg(program())
                .args(["--no-logo", "--config-file"])
                .arg(config)
                .arg("--base-dir")
                .arg(data)
                .env_clear()
                .env("HOME", &root)
                .current_dir(&root)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("the server starts");
            tell.send(child.id()).expect("somebody waits for it");
            child.wait().expect("its end");
        });
        let pid = i32::try_from(told.recv().expect("a process")).expect("an id");
        let pid = Pid::from_raw(pid).expect("an id");
        *lock(&self.process) = Some(ServerProcess { pid, keeper });
        wait_until("the server is ready", || {
            is_well(self.ingress, "/restate/health") && is_well(self.admin, "/health")
        });
    }

    /// Kills the server, as a crash does.
    pub(crate) fn kill(&self) {
        let Some(process) = lock(&self.process).take() else { return };
        let _ = kill_process(process.pid, Signal::KILL);
        let _ = process.keeper.join();
    }

    /// Stops the server where it is.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets the stopped server go on.
    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(process) = &*lock(&self.process) {
            let _ = kill_process(process.pid, signal);
        }
    }

    pub(crate) fn url(&self) -> String {
        self.url_at(self.ingress)
    }

    /// Returns the address through another port.
    pub(crate) fn url_at(&self, port: u16) -> String {
        format!("restate://127.0.0.1:{port}?admin=http://127.0.0.1:{}", self.admin)
    }

    pub(crate) fn address(&self) -> EngineAddress {
        EngineAddress::parse(&self.url()).expect("an address")
    }

    /// Connects to the server as the engine.
    pub(crate) fn engine(&self) -> Arc<dyn Engine> {
        connect(&self.address()).expect("an engine")
    }
}

impl Drop for RestateServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns three free ports.
fn free_ports() -> [u16; 3] {
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    listeners.map(|listener| listener.local_addr().expect("an address").port())
}

/// Returns whether a page of a port says that all is well.
fn is_well(port: u16, page: &str) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let asked = write!(stream, "GET {page} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let mut answer = String::new();
    asked.is_ok()
        && stream.set_read_timeout(Some(Duration::from_secs(5))).is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.starts_with("HTTP/1.1 200")
}

/// Returns the program that `tests/run` has installed for this platform.
fn program() -> PathBuf {
    let installed =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/restate/node_modules/@restatedev");
    let folders = fs::read_dir(&installed).into_iter().flatten().flatten();
    let mut programs = folders.map(|folder| folder.path().join("bin/restate-server"));
    programs.find(|program| program.is_file()).unwrap_or_else(|| {
        panic!(
            "there is no Restate server in {}: have tests/run install it, or skip these tests",
            installed.display()
        )
    })
}
