//! A raymond that is observed while it runs, and ended afterwards in any case.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use memchr::{memmem, memrchr};
use rustix::process::{Signal, kill_process};

use crate::Fallible;
use crate::raymond::{RaymondCommand, last_stderr_line, pid};
use crate::spent::CpuSeconds;

const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// The time that raymond has to end in order.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// A running raymond, and the position up to which its journal has been read.
#[derive(Debug)]
pub(crate) struct RunningRaymond {
    run: RaymondCommand,
    child: Child,
    pub(crate) started: Instant,
    journal: Option<File>,
    line: Vec<u8>,
}

/// The memory of a process, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessMemory {
    pub(crate) peak: f64,
    pub(crate) now: f64,
}

impl RunningRaymond {
    /// Starts a raymond. The records that its journal already has are skipped.
    pub(crate) fn start(mut run: RaymondCommand) -> Fallible<Self> {
        let mut journal = File::open(run.journal()).ok();
        if let Some(file) = &mut journal {
            file.seek(SeekFrom::End(0))?;
        }
        let started = Instant::now();
        let child = run.command.spawn()?;
        Ok(Self { run, child, started, journal, line: Vec::new() })
    }

    /// Reads the journal from where it was left until so many records contain `what`; returns their number.
    pub(crate) fn read_until(
        &mut self,
        what: &str,
        count: usize,
        limit: Duration,
    ) -> Fallible<usize> {
        let asked = Instant::now();
        let mut seen = 0;
        loop {
            seen += self.read(what)?;
            if seen >= count {
                return Ok(seen);
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(
                    format!("raymond: {status}: {}", last_stderr_line(&self.run.dir)).into()
                );
            }
            if asked.elapsed() > limit {
                let why = format!("only {seen} of {count} records after {} s", limit.as_secs());
                return Err(why.into());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Reads the journal to its end; returns the number of whole records that contain `what`.
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

    /// Returns the memory of the process, now and at its peak.
    pub(crate) fn memory(&self) -> Fallible<ProcessMemory> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let bytes = |name: &str| -> Option<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.split_whitespace().next()?.parse::<f64>().ok()? * 1024.0)
        };
        let read = || Some(ProcessMemory { peak: bytes("VmHWM:")?, now: bytes("VmRSS:")? });
        read().ok_or_else(|| "the system does not tell the memory of a process".into())
    }

    /// Returns the path of the journal.
    pub(crate) fn journal(&self) -> PathBuf {
        self.run.journal()
    }

    /// Returns the processor time that the process has used.
    pub(crate) fn cpu(&self) -> Option<CpuSeconds> {
        CpuSeconds::of(&self.child.id().to_string())
    }

    /// Waits for the end, which must be a successful one.
    pub(crate) fn wait_for_success(mut self, limit: Duration) -> Fallible<()> {
        if !self.has_ended(limit) {
            return Err(format!("it has not ended after {} s", limit.as_secs()).into());
        }
        let status = self.child.wait()?;
        if status.success() {
            return Ok(());
        }
        Err(format!("raymond: {status}: {}", last_stderr_line(&self.run.dir)).into())
    }

    /// Suspends the process while another is observed, or continues it.
    pub(crate) fn set_suspended(&self, still: bool) {
        self.send_signal(if still { Signal::STOP } else { Signal::CONT });
    }

    /// Kills the process; returns the directory of its runs.
    pub(crate) fn kill(mut self) -> Fallible<PathBuf> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(self.run.dir.clone())
    }

    fn send_signal(&self, signal: Signal) {
        if let Some(pid) = pid(&self.child) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Returns whether the process ends by itself within a time.
    fn has_ended(&mut self, within: Duration) -> bool {
        let asked = Instant::now();
        while asked.elapsed() < within {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return true;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        false
    }
}

impl Drop for RunningRaymond {
    /// Ends the process. Two signals make it end its turns, so that nothing it started outlives it.
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        self.set_suspended(false);
        self.send_signal(Signal::TERM);
        if !self.has_ended(SHUTDOWN_TIMEOUT / 10) {
            self.send_signal(Signal::TERM);
        }
        if !self.has_ended(SHUTDOWN_TIMEOUT) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
