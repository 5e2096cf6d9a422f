//! The processor time and the memory of the server while many watch a live run, beside those of `raymond top`.
//!
//! A watcher is a client that reads what the pages of one run and of all runs read together: their streams of events. What a
//! browser makes of them, and what it asks for besides, is not part of the figures.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::served_run::{BenchRun, PageServer, RAYMOND, end};

/// The watchers.
const WATCHERS: [usize; 2] = [1, 20];

/// The streams of the page of all runs and of that of a run.
const STREAMS: [&str; 2] = ["/api/events", "/api/runs/bench/events"];

/// The time before a measurement, in which what there is already is read.
const SETTLING: Duration = Duration::from_secs(5);

/// The ticks in a second in which Linux counts the time of a process.
const TICKS: f64 = 100.0;

const MEGABYTE: f64 = 1024.0 * 1024.0;

/// The load of a process over a while.
struct ProcessLoad {
    /// The share of one processor, in percent.
    processor: f64,
    /// The greatest resident memory so far, in megabytes.
    memory: f64,
}

/// Measures so many seconds each, and prints the figures.
pub(crate) fn print(run: &BenchRun, seconds: u32) {
    println!("\na live run for {seconds} s: share of a processor, greatest memory, sent");
    let of_top = load_of_top(run, seconds);
    line("raymond top", &of_top, "");
    for count in WATCHERS {
        let server = run.serve();
        let watchers: Vec<PageWatcher> =
            (0..count).flat_map(|_| STREAMS.map(|path| PageWatcher::of(&server, path))).collect();
        let load = ProcessLoad::of(server.id(), seconds);
        let sent: u64 = watchers.into_iter().map(PageWatcher::end).sum();
        let more = format!("{:>7.1} MB", in_megabytes(sent));
        line(&format!("raymond serve, watchers: {count}"), &load, &more);
        let (processor, memory) = (load.processor - of_top.processor, load.memory - of_top.memory);
        println!("    beyond top {processor:>24.1} % {memory:>7.1} MB");
    }
}

fn line(name: &str, load: &ProcessLoad, more: &str) {
    println!("  {name:<34} {:>6.1} % {:>7.1} MB {more}", load.processor, load.memory);
}

/// A client that reads one stream of events.
struct PageWatcher {
    connection: TcpStream,
    reader: JoinHandle<u64>,
}

impl PageWatcher {
    fn of(server: &PageServer, path: &str) -> Self {
        let address = server.origin.trim_start_matches("http://");
        let (_, token) = server.first.split_once("token=").expect("a token");
        let mut connection = TcpStream::connect(address).expect("it listens");
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\r\n"
        );
        connection.write_all(head.as_bytes()).expect("sent");
        let mut stream = connection.try_clone().expect("one more handle");
        let reader = thread::spawn(move || {
            let (mut read, mut chunk) = (0, vec![0; 64 * 1024]);
            while let Ok(count @ 1..) = stream.read(&mut chunk) {
                assert!(read > 0 || chunk.starts_with(b"HTTP/1.1 200"), "it is refused");
                read += u64::try_from(count).unwrap_or_default();
            }
            read
        });
        Self { connection, reader }
    }

    /// Ends it, and returns the number of bytes that it has read.
    fn end(self) -> u64 {
        let _ = self.connection.shutdown(Shutdown::Both);
        self.reader.join().expect("a watcher")
    }
}

impl ProcessLoad {
    /// Measures a process.
    fn of(process: u32, seconds: u32) -> Self {
        sleep(SETTLING);
        let before = ticks(process);
        sleep(Duration::from_secs(seconds.into()));
        let spent = ticks(process) - before;
        let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it lives");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok());
        let memory = kilobytes.map_or(f64::NAN, |kilobytes: f64| kilobytes / 1024.0);
        Self { processor: 100.0 * spent / TICKS / f64::from(seconds), memory }
    }
}

/// Returns the ticks that a process has spent.
fn ticks(process: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("it lives");
    let (_, tail) = stat.rsplit_once(')').expect("a name in parentheses");
    let fields: Vec<&str> = tail.split_whitespace().collect();
    [fields[11], fields[12]].iter().map(|field| field.parse::<f64>().expect("a number")).sum()
}

/// Measures `raymond top` on a terminal.
fn load_of_top(run: &BenchRun, seconds: u32) -> ProcessLoad {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC);
    let terminal = terminal.expect("a terminal");
    grantpt(&terminal).expect("granted");
    unlockpt(&terminal).expect("unlocked");
    let name = ptsname(&terminal, Vec::new()).expect("a name").into_string().expect("text");
    let size = Winsize { ws_row: 50, ws_col: 160, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).expect("sized");
    let mut top = top(run, &name);
    let mut screen = File::from(terminal);
    let reader = thread::spawn(move || {
        let mut chunk = [0; 4096];
        while screen.read(&mut chunk).is_ok_and(|count| count > 0) {}
    });
    let load = ProcessLoad::of(top.id(), seconds);
    end(&mut top);
    reader.join().expect("a reader");
    load
}

/// Starts `raymond top` on the terminal of that name. Each program on the way to it replaces itself.
fn top(run: &BenchRun, terminal: &str) -> Child {
    let mut command = Command::new("setsid");
    run.place(&mut command).args(["--ctty", RAYMOND, "top", "bench"]).env("TERM", "xterm-256color");
    let end = || File::options().read(true).write(true).open(terminal).expect("its other end");
    command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("setsid starts")
}

fn in_megabytes(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes / 1024).unwrap_or(u32::MAX)) * 1024.0 / MEGABYTE
}
