//! The keyboard of the terminal: each byte as it is typed, while keys are wanted.
//!
//! The terminal neither waits for the end of a line nor echoes, because the live view does; its signals, as of
//! Ctrl-C, stay. As soon as no keys are wanted any more, it is as before: later input is for the next reader. A
//! process in the background of its terminal does not touch it.

use std::io::{Stdin, stdin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcgetpgrp, tcsetattr,
};

/// The pause between two checks for wanted keys, in milliseconds.
const POLL_MILLIS: u32 = 50;

/// A reader of the keyboard, off until keys are wanted.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyboardReader(Arc<Mutex<KeyboardState>>);

#[derive(Debug, Default)]
struct KeyboardState {
    wanted: bool,
    over: bool,
    /// The terminal's modes before they were changed.
    before: Option<Termios>,
}

impl KeyboardReader {
    /// Starts a thread that passes typed bytes to `tell`, and an empty slice when no more can come. It reads
    /// nothing before keys are wanted.
    pub(super) fn listen(&self, tell: impl Fn(&[u8]) + Send + 'static) {
        let state = Arc::clone(&self.0);
        // Without a thread nobody is heard, and the questions stay open.
        let _ = std::thread::Builder::new()
            .name("keyboard".to_owned())
            .spawn(move || listen(&state, &tell));
    }

    /// Turns reading on or off; keys that were pressed before are not read.
    pub(super) fn want(&self, wanted: bool) {
        let mut state = lock(&self.0);
        state.wanted = wanted;
        if wanted && !state.over {
            state.prepare(&stdin());
        } else {
            state.restore();
        }
    }

    /// Stops reading for good, and restores the terminal.
    pub(super) fn stop(&self) {
        let mut state = lock(&self.0);
        state.over = true;
        state.restore();
    }
}

fn lock(state: &Mutex<KeyboardState>) -> MutexGuard<'_, KeyboardState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listen(state: &Mutex<KeyboardState>, tell: &impl Fn(&[u8])) {
    let stdin = stdin();
    loop {
        {
            let mut state = lock(state);
            if state.over {
                return;
            }
            if !state.wanted || !state.prepare(&stdin) {
                drop(state);
                std::thread::sleep(Duration::from_millis(POLL_MILLIS.into()));
                continue;
            }
        }
        if !has_come(&stdin) {
            continue;
        }
        let mut bytes = [0; 256];
        // What was typed for someone who does not want it any more is for whoever reads next.
        let guard = lock(state);
        if !guard.wanted || guard.over {
            continue;
        }
        let read = rustix::io::read(&stdin, &mut bytes);
        drop(guard);
        match read {
            Ok(count @ 1..) => tell(&bytes[..count]),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            _ => {
                tell(&[]);
                return;
            }
        }
    }
}

/// Returns whether a key has been typed within a moment.
fn has_come(stdin: &Stdin) -> bool {
    let mut polled = [PollFd::new(stdin, PollFlags::IN)];
    let moment = Timespec { tv_sec: 0, tv_nsec: i64::from(POLL_MILLIS) * 1_000_000 };
    poll(&mut polled, Some(&moment)).is_ok_and(|count| count > 0)
}

impl KeyboardState {
    /// Makes the terminal pass on each key at once; returns whether it does.
    fn prepare(&mut self, stdin: &Stdin) -> bool {
        // In a container, the own group can be one without an id there; then the terminal's has none either.
        if !tcgetpgrp(stdin).is_ok_and(|foreground| foreground == getpgrp()) {
            return false;
        }
        let Ok(mut modes) = tcgetattr(stdin) else { return false };
        let by_line = LocalModes::ICANON | LocalModes::ECHO;
        if !modes.local_modes.intersects(by_line) {
            return true;
        }
        self.before.get_or_insert_with(|| modes.clone());
        modes.local_modes.remove(by_line);
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        let _ = tcflush(stdin, QueueSelector::IFlush);
        tcsetattr(stdin, OptionalActions::Now, &modes).is_ok()
    }

    fn restore(&mut self) {
        if let Some(before) = self.before.take() {
            let _ = tcsetattr(stdin(), OptionalActions::Now, &before);
        }
    }
}
