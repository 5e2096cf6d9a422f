//! A raymond that is looked at while it runs, and ended afterwards whatever happens.

use std::fs::File;
use std::io::Read;
use std::process::Child;
use std::time::{Duration, Instant};

use memchr::memchr_iter;
use rustix::process::{Signal, kill_process};

use crate::Fallible;
use crate::raymond::{Run, last_words, pid};

const GLANCE: Duration = Duration::from_millis(5);
/// How long it may take to end in order.
const GRACE: Duration = Duration::from_secs(5);

/// A running raymond.
#[derive(Debug)]
pub(crate) struct Live {
    run: Run,
    child: Child,
    started: Instant,
}

/// A process's memory, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) peak: f64,
    pub(crate) now: f64,
}

impl Live {
    pub(crate) fn start(mut run: Run) -> Fallible<Self> {
        let started = Instant::now();
        let child = run.command.spawn()?;
        Ok(Self { run, child, started })
    }

    /// Waits until its journal has so many records; returns how long that took since its start.
    pub(crate) fn until_records(&mut self, records: usize, limit: Duration) -> Fallible<Duration> {
        let mut journal: Option<File> = None;
        let mut seen = 0;
        let mut bytes = Vec::new();
        loop {
            if journal.is_none() {
                journal = File::open(self.run.journal()).ok();
            }
            if let Some(file) = &mut journal {
                bytes.clear();
                file.read_to_end(&mut bytes)?;
                seen += memchr_iter(b'\n', &bytes).count();
            }
            if seen >= records {
                return Ok(self.started.elapsed());
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("raymond: {status}: {}", last_words(&self.run.dir)).into());
            }
            if self.started.elapsed() > limit {
                let why = format!("only {seen} of {records} records after {} s", limit.as_secs());
                return Err(why.into());
            }
            std::thread::sleep(GLANCE);
        }
    }

    /// What it holds, and the most it has held so far.
    pub(crate) fn memory(&self) -> Fallible<Memory> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let bytes = |name: &str| -> Option<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.split_whitespace().next()?.parse::<f64>().ok()? * 1024.0)
        };
        let read = || Some(Memory { peak: bytes("VmHWM:")?, now: bytes("VmRSS:")? });
        read().ok_or_else(|| "the system does not tell the memory of a process".into())
    }

    fn tell(&self, signal: Signal) {
        if let Some(pid) = pid(&self.child) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Whether it has ended by itself within a while.
    fn has_ended(&mut self, within: Duration) -> bool {
        let asked = Instant::now();
        while asked.elapsed() < within {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return true;
            }
            std::thread::sleep(GLANCE);
        }
        false
    }
}

impl Drop for Live {
    /// Two signals make it end its turns, so that no fake outlives it.
    fn drop(&mut self) {
        self.tell(Signal::TERM);
        if !self.has_ended(GRACE / 10) {
            self.tell(Signal::TERM);
        }
        if !self.has_ended(GRACE) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
