//! A raymond that is looked at while it runs, and ended afterwards whatever happens.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use memchr::{memmem, memrchr};
use rustix::process::{Signal, kill_process};

use crate::Fallible;
use crate::raymond::{Run, last_words, pid};
use crate::spent::Cpu;

const GLANCE: Duration = Duration::from_millis(2);
/// How long it may take to end in order.
const GRACE: Duration = Duration::from_secs(5);

/// A running raymond, and how far its journal has been read.
#[derive(Debug)]
pub(crate) struct Live {
    run: Run,
    child: Child,
    pub(crate) started: Instant,
    journal: Option<File>,
    line: Vec<u8>,
}

/// A process's memory, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) peak: f64,
    pub(crate) now: f64,
}

impl Live {
    /// Starts it; what its journal says already is not looked at.
    pub(crate) fn start(mut run: Run) -> Fallible<Self> {
        let mut journal = File::open(run.journal()).ok();
        if let Some(file) = &mut journal {
            file.seek(SeekFrom::End(0))?;
        }
        let started = Instant::now();
        let child = run.command.spawn()?;
        Ok(Self { run, child, started, journal, line: Vec::new() })
    }

    /// Reads on in its journal until so many records say `what`; returns how many did.
    pub(crate) fn until(&mut self, what: &str, count: usize, limit: Duration) -> Fallible<usize> {
        let asked = Instant::now();
        let mut seen = 0;
        loop {
            seen += self.read(what)?;
            if seen >= count {
                return Ok(seen);
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("raymond: {status}: {}", last_words(&self.run.dir)).into());
            }
            if asked.elapsed() > limit {
                let why = format!("only {seen} of {count} records after {} s", limit.as_secs());
                return Err(why.into());
            }
            std::thread::sleep(GLANCE);
        }
    }

    /// Reads its journal to the end; returns how many whole records on the way say `what`.
    pub(crate) fn read(&mut self, what: &str) -> Fallible<usize> {
        if self.journal.is_none() {
            self.journal = File::open(self.run.journal()).ok();
        }
        let Some(file) = &mut self.journal else { return Ok(0) };
        file.read_to_end(&mut self.line)?;
        let whole = memrchr(b'\n', &self.line).map_or(0, |end| end + 1);
        let seen = memmem::find_iter(&self.line[..whole], what).count();
        self.line.drain(..whole);
        Ok(seen)
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

    /// Where its journal is.
    pub(crate) fn journal(&self) -> PathBuf {
        self.run.journal()
    }

    /// What it has spent so far.
    pub(crate) fn cpu(&self) -> Option<Cpu> {
        Cpu::of(&self.child.id().to_string())
    }

    /// Waits for its end, which has to be a good one.
    pub(crate) fn ended(mut self, limit: Duration) -> Fallible<()> {
        if !self.has_ended(limit) {
            return Err(format!("it has not ended after {} s", limit.as_secs()).into());
        }
        let status = self.child.wait()?;
        if status.success() {
            return Ok(());
        }
        Err(format!("raymond: {status}: {}", last_words(&self.run.dir)).into())
    }

    /// Has it stand still, or go on, while another is looked at.
    pub(crate) fn stand_still(&self, still: bool) {
        self.tell(if still { Signal::STOP } else { Signal::CONT });
    }

    /// Kills it without a warning; returns where its run is.
    pub(crate) fn kill(mut self) -> Fallible<PathBuf> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(self.run.dir.clone())
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
    /// Two signals make it end its turns, so that nothing it started outlives it.
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        self.stand_still(false);
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
