//! A server in a temporary folder, on a free port of loopback. It is ended and removed with the value, also when a test
//! fails, and ends by itself when the tests are killed.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::Read as _;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::support::wait_until;

/// The users that a server may run as if the tests run as root, which it refuses.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

/// Who may come in how: `ray` from loopback without a password, others with one, and everybody through the socket.
const ACCESS: &str = "local all all trust\n\
    hostssl all encrypted 127.0.0.1/32 trust\n\
    host all ray 127.0.0.1/32 trust\n\
    host all nothing 127.0.0.1/32 trust\n\
    host all guarded 127.0.0.1/32 scram-sha-256\n";

/// A server.
#[derive(Debug)]
pub(crate) struct Server {
    root: tempfile::TempDir,
    pub(crate) port: u16,
    postmaster: Mutex<Option<Postmaster>>,
}

/// The process of a server.
#[derive(Debug)]
struct Postmaster {
    pid: Pid,
    /// The thread that started it and waits for its end. It has to live as long: the kernel ends the process with it.
    keeper: JoinHandle<String>,
}

impl Server {
    /// Returns the server that the tests share; it ends with the last test that uses it.
    pub(crate) fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Self::new(""));
            *shared = Arc::downgrade(&server);
            server
        })
    }

    /// Makes and starts a server with further settings.
    pub(crate) fn new(settings: &str) -> Self {
        let root = tempfile::tempdir().expect("a temporary folder");
        if let Some(user) = user() {
            let (uid, gid) = ids(user);
            chown(root.path(), Some(uid), Some(gid)).expect("the folder is given away");
        }
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = port.expect("a free port").port();
        let server = Self { root, port, postmaster: Mutex::new(None) };
        server.make(settings);
        server.start();
        server
    }

    fn make(&self, settings: &str) {
        let data = self.data();
        let arguments = ["--no-sync", "--username=postgres", "--auth=trust", "--encoding=UTF8"];
        let arguments = arguments.iter().map(OsStr::new).chain(["-D".as_ref(), data.as_os_str()]);
        succeed(as_user("initdb").args(arguments).output());
        let mut conf = std::fs::read_to_string(data.join("postgresql.conf")).expect("settings");
        write!(
            conf,
            "\nlisten_addresses = '127.0.0.1'\nport = {}\nunix_socket_directories = '{}'\nfsync = on\n\
             max_connections = 200\nlog_min_messages = fatal\nlog_min_error_statement = panic\n{settings}\n",
            self.port,
            self.root.path().display()
        )
        .expect("a text");
        std::fs::write(data.join("postgresql.conf"), conf).expect("settings");
        std::fs::write(data.join("pg_hba.conf"), ACCESS).expect("the access");
    }

    /// Starts the server, and waits until it is ready. After a kill it refuses until the last of its processes has ended,
    /// and until nobody else has its port.
    pub(crate) fn start(&self) {
        wait_until("the server is ready", || {
            let postmaster = self.launch();
            loop {
                if postmaster.keeper.is_finished() {
                    let said = postmaster.keeper.join().expect("its keeper");
                    assert!(said.contains("in use") || said.contains("lock file"), "{said}");
                    return false;
                }
                let status = std::fs::read_to_string(self.data().join("postmaster.pid"));
                let status = status.unwrap_or_default();
                let mut status = status.lines();
                let is_own = status.next() == Some(&postmaster.pid.as_raw_nonzero().to_string());
                if is_own && status.nth(6).is_some_and(|line| line.trim() == "ready") {
                    *self.postmaster() = Some(postmaster);
                    return true;
                }
                thread::sleep(std::time::Duration::from_millis(2));
            }
        });
    }

    fn launch(&self) -> Postmaster {
        let (tell, told) = mpsc::channel();
        let data = self.data();
        let keeper = thread::spawn(move || {
            let mut child = as_user("postgres")
                .arg("-D")
                .arg(data)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the server starts");
            tell.send(child.id()).expect("somebody waits for it");
            let mut said = String::new();
            let mut stderr = child.stderr.take().expect("its stderr");
            // Its other processes have the pipe, too: it ends after the last of them.
            stderr.read_to_string(&mut said).expect("its messages");
            child.wait().expect("its end");
            said
        });
        let pid = i32::try_from(told.recv().expect("a process")).expect("an id");
        Postmaster { pid: Pid::from_raw(pid).expect("an id"), keeper }
    }

    /// Kills the first process of the server, as a crash does. The others end when they see it.
    pub(crate) fn kill(&self) {
        self.end(Signal::KILL);
    }

    /// Stops all processes of the server where they are.
    pub(crate) fn pause(&self) {
        for pid in self.processes() {
            kill_process(pid, Signal::STOP).expect("it stops");
        }
    }

    /// Lets the stopped processes go on.
    pub(crate) fn go_on(&self) {
        for pid in self.processes() {
            // One may have ended meanwhile.
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    /// Returns the processes of the server, the first one first.
    fn processes(&self) -> Vec<Pid> {
        let Some(first) = self.postmaster().as_ref().map(|postmaster| postmaster.pid) else {
            return Vec::new();
        };
        let parent = format!("PPid:\t{}", first.as_raw_nonzero());
        let all = std::fs::read_dir("/proc").expect("processes").flatten();
        let children = all.filter_map(|entry| {
            let status = std::fs::read_to_string(entry.path().join("status")).ok()?;
            let pid = entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)?;
            status.lines().any(|line| line == parent).then_some(pid)
        });
        std::iter::once(first).chain(children).collect()
    }

    fn end(&self, signal: Signal) {
        let Some(postmaster) = self.postmaster().take() else { return };
        let _ = kill_process(postmaster.pid, signal);
        let _ = postmaster.keeper.join();
    }

    fn postmaster(&self) -> std::sync::MutexGuard<'_, Option<Postmaster>> {
        self.postmaster.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    /// Returns the folder of the server's socket.
    pub(crate) fn socket(&self) -> &Path {
        self.root.path()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.go_on();
        // An immediate end: nothing of it is needed any more.
        self.end(Signal::QUIT);
    }
}

/// Returns a command of `PostgreSQL` that runs as a user who may run it, and gets an end when this process ends.
pub(crate) fn as_user(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.arg("--pdeathsig=QUIT");
    if let Some(user) = user() {
        let (uid, gid) = ids(user);
        command.args([
            format!("--reuid={uid}"),
            format!("--regid={gid}"),
            "--clear-groups".to_owned(),
        ]);
    }
    command.arg("--").arg(found(program)).env("LC_ALL", "C").current_dir("/");
    command
}

/// Returns the path of a program of `PostgreSQL`: Debian has those of the server beside the search path.
fn found(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    if let Ok(versions) = std::fs::read_dir("/usr/lib/postgresql") {
        folders.extend(versions.flatten().map(|version| version.path().join("bin")));
    }
    let mut programs = folders.iter().map(|folder| folder.join(program));
    programs.find(|path| path.is_file()).unwrap_or_else(|| {
        panic!("`{program}` was not found: install PostgreSQL, or have tests/run skip these tests")
    })
}

/// Returns the user for a server; `None` if the tests do not run as root.
fn user() -> Option<&'static str> {
    let found = UNPRIVILEGED.into_iter().find(|user| passwd(user).is_some());
    geteuid().is_root().then(|| found.expect("a user without rights"))
}

fn ids(user: &str) -> (u32, u32) {
    passwd(user).expect("a user")
}

/// Returns the ids of a user and its group.
fn passwd(user: &str) -> Option<(u32, u32)> {
    let all = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = all.lines().find(|line| line.split(':').next() == Some(user))?;
    let mut fields = line.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Gives a file to the owner of a folder.
pub(crate) fn give(file: &Path, folder: &Path) {
    let owner = std::fs::metadata(folder).expect("an owner");
    chown(file, Some(owner.uid()), Some(owner.gid())).expect("the file is given away");
}

#[track_caller]
fn succeed(output: std::io::Result<Output>) {
    let output = output.expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
}
