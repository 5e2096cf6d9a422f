//! The time of a piece of work: wall time, and processor time as the system accounts for it.
//!
//! Processor time is read from `/proc/<pid>/stat`, in ticks of 10 ms. Raymond's is read after its end and
//! before it is reaped, so that nothing is missed. Without `/proc` there is none.

use std::time::Duration;

/// The kernel's `USER_HZ`, which is 100 on every architecture of Linux that has Rust.
const TICKS_A_SECOND: f64 = 100.0;

/// Processor seconds, user and system together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuSeconds {
    /// The time of the process itself, with all its threads.
    pub(crate) own_time: f64,
    /// The time of the children it has waited for.
    pub(crate) children: f64,
}

/// The time that a piece of work took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpentTime {
    pub(crate) wall: Duration,
    pub(crate) cpu: Option<CpuSeconds>,
}

impl CpuSeconds {
    pub(crate) fn of(process: &str) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let after_name: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let seconds = |field: usize| -> Option<f64> {
            Some(after_name.get(field)?.parse::<f64>().ok()? / TICKS_A_SECOND)
        };
        Some(Self { own_time: seconds(11)? + seconds(12)?, children: seconds(13)? + seconds(14)? })
    }

    pub(crate) fn total(self) -> f64 {
        self.own_time + self.children
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            own_time: self.own_time - earlier.own_time,
            children: self.children - earlier.children,
        }
    }
}
