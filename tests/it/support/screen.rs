//! A `raymond` on a terminal of its own: a test types keys and reads the screen.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::live::WAIT_TIMEOUT;
use super::test_folder::RAYMOND;
use super::{Test, kill, wait_until};

const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A `raymond` on a terminal; it is killed when the value is dropped.
pub(crate) struct TerminalScreen {
    child: Child,
    terminal: Arc<OwnedFd>,
    content: Arc<Mutex<ScreenContent>>,
    reader: Option<JoinHandle<()>>,
    closed: Arc<AtomicBool>,
}

struct ScreenContent {
    parser: vt100::Parser,
    bytes: Vec<u8>,
}

impl Test {
    /// Starts `raymond ARGS` on a terminal of that many rows and columns.
    pub(crate) fn on_screen(&self, arguments: &[&str], size: (u16, u16)) -> TerminalScreen {
        TerminalScreen::start(self.command("env"), arguments, size)
    }
}

impl TerminalScreen {
    /// Starts `raymond ARGS` on a terminal, with the environment and the directory of a command of `env`.
    pub(crate) fn start(
        mut command: Command,
        arguments: &[&str],
        (rows, columns): (u16, u16),
    ) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .expect("a terminal");
        grantpt(&terminal).expect("granted");
        unlockpt(&terminal).expect("unlocked");
        let name = ptsname(&terminal, Vec::new()).expect("a name").into_string().expect("text");
        let line = || File::options().read(true).write(true).open(&name).expect("its other end");
        tcsetwinsize(&terminal, size(rows, columns)).expect("sized");
        // The caller of the tests may ignore SIGHUP; a person's terminal does not.
        command
            .args(["--default-signal=HUP", "setsid", "--ctty", RAYMOND])
            .args(arguments)
            .env("TERM", "xterm-256color");
        command.stdin(line()).stdout(line()).stderr(line());
        let child = command.spawn().expect("setsid, of util-linux, starts");
        let parser = vt100::Parser::new(non_zero(rows), non_zero(columns), 0);
        let mut screen = Self {
            child,
            terminal: Arc::new(terminal),
            content: Arc::new(Mutex::new(ScreenContent { parser, bytes: Vec::new() })),
            reader: None,
            closed: Arc::default(),
        };
        screen.read();
        screen
    }
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

fn non_zero(number: u16) -> NonZero<u16> {
    NonZero::new(number).expect("a terminal has rows and columns")
}

impl TerminalScreen {
    /// Starts a thread that reads the terminal, until no process has it open any more or it is closed.
    fn read(&mut self) {
        let (content, closed) = (Arc::clone(&self.content), Arc::clone(&self.closed));
        let mut terminal = File::from(self.terminal.try_clone().expect("one more handle"));
        self.reader = Some(std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            let wait = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
            while !closed.load(Ordering::Relaxed) {
                let mut polled = [PollFd::new(&terminal, PollFlags::IN)];
                if poll(&mut polled, Some(&wait)) == Ok(0) {
                    continue;
                }
                let Ok(count @ 1..) = terminal.read(&mut chunk) else { return };
                let mut content = content.lock().expect("nobody has failed with it");
                content.parser.process(&chunk[..count]);
                content.bytes.extend_from_slice(&chunk[..count]);
            }
        }));
    }

    fn content(&self) -> MutexGuard<'_, ScreenContent> {
        self.content.lock().expect("nobody has failed with it")
    }

    /// Returns the text on the screen.
    pub(crate) fn text(&self) -> String {
        self.content().parser.screen().contents()
    }

    /// Returns all bytes that were written to the terminal, as text.
    pub(crate) fn written(&self) -> String {
        String::from_utf8_lossy(&self.content().bytes).into_owned()
    }

    /// Returns all bytes that were written, once no process can write any more.
    #[track_caller]
    pub(crate) fn all_written(&self) -> String {
        wait_until("nobody has the terminal open", || {
            self.reader.as_ref().is_none_or(JoinHandle::is_finished)
        });
        self.written()
    }

    /// Returns the row that contains a text.
    pub(crate) fn row(&self, part: &str) -> String {
        let text = self.text();
        let row = text.lines().find(|line| line.contains(part));
        row.unwrap_or_else(|| panic!("no {part:?} on the screen:\n{text}")).to_owned()
    }

    /// Waits until all of these texts are on the screen.
    #[track_caller]
    pub(crate) fn wait_for(&self, parts: &[&str]) -> &Self {
        self.wait_until(&format!("{parts:?}"), |text| parts.iter().all(|part| text.contains(part)))
    }

    /// Waits until the text on the screen satisfies a condition.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, holds: impl Fn(&str) -> bool) -> &Self {
        let start = Instant::now();
        while !holds(&self.text()) {
            assert!(start.elapsed() < *WAIT_TIMEOUT, "never seen: {what}\n{}", self.text());
            std::thread::sleep(POLL_INTERVAL);
        }
        self
    }

    /// Types on the keyboard of the terminal.
    pub(crate) fn keys(&self, keys: &str) -> &Self {
        let terminal = self.terminal.try_clone().expect("one more handle");
        File::from(terminal).write_all(keys.as_bytes()).expect("typed");
        self
    }

    /// Changes the size of the terminal.
    pub(crate) fn resize(&self, rows: u16, columns: u16) -> &Self {
        self.content().parser.screen_mut().set_size(non_zero(rows), non_zero(columns));
        tcsetwinsize(&self.terminal, size(rows, columns)).expect("sized");
        self
    }

    pub(crate) fn signal(&self, signal: Signal) -> &Self {
        kill(i32::try_from(self.child.id()).expect("a pid fits"), signal);
        self
    }

    /// Closes the terminal, waits for the end of raymond, and returns its exit code.
    #[track_caller]
    pub(crate) fn hang_up(mut self) -> Option<i32> {
        self.closed.store(true, Ordering::Relaxed);
        wait_until("the last handle of the terminal", || Arc::strong_count(&self.closed) == 1);
        let other_end = File::open("/dev/null").expect("nothing").into();
        drop(std::mem::replace(&mut self.terminal, Arc::new(other_end)));
        self.wait_for_status().code()
    }

    #[track_caller]
    fn wait_for_status(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status;
            }
            assert!(start.elapsed() < *WAIT_TIMEOUT, "it never ended:\n{}", self.text());
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits for the end of raymond and for the terminal to be as before; returns the exit code.
    #[track_caller]
    pub(crate) fn wait_for_exit(&mut self) -> Option<i32> {
        let start = Instant::now();
        let status = self.wait_for_status();
        let is_as_before = || {
            let modes = tcgetattr(self.terminal.as_fd()).expect("modes").local_modes;
            let content = self.content();
            let screen = content.parser.screen();
            let shown = !screen.alternate_screen() && !screen.hide_cursor();
            shown && modes.contains(LocalModes::ICANON | LocalModes::ECHO)
        };
        while !is_as_before() {
            assert!(
                start.elapsed() < *WAIT_TIMEOUT,
                "the terminal is not as before:\n{}",
                self.text()
            );
            std::thread::sleep(POLL_INTERVAL);
        }
        status.code()
    }
}

impl Drop for TerminalScreen {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}
