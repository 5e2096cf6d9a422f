//! The one place that asks for the time.
//!
//! Waits are kept as points in time, because they outlive the process. If the machine's clock is set back during a
//! wait, the wait must not become longer. So the time of this process never goes back: it is the wall clock's
//! time, or the time that a monotonic clock counts if that is later. A clock that is set forward, or that ran
//! while the machine slept, is believed at once. Only times of day, as the reset of a usage limit, go by the wall
//! clock.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::domain::time::Timestamp;
use crate::fault::clock_shift;

/// A clock that never goes back, made of a wall clock and a monotonic one.
#[derive(Debug, Default)]
struct SteadyClock {
    /// The latest that the wall clock has said the process began, in milliseconds.
    began: AtomicU64,
}

static CLOCK: LazyLock<(Instant, SteadyClock)> =
    LazyLock::new(|| (Instant::now(), SteadyClock::default()));

impl SteadyClock {
    /// Returns the time, computed from the wall clock and the milliseconds that have passed.
    fn read(&self, wall: Timestamp, passed: u64) -> Timestamp {
        let began = wall.0.saturating_sub(passed);
        let latest = self.began.fetch_max(began, Ordering::Relaxed).max(began);
        Timestamp(latest.saturating_add(passed))
    }
}

/// Returns the time now, which never goes back while this process lives.
pub fn now() -> Timestamp {
    let (start, clock) = &*CLOCK;
    clock.read(wall_clock_now(), millis(start.elapsed().as_millis()))
}

/// Returns the time of the wall clock, which may be set back.
pub fn wall_clock_now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(millis(since.as_millis()).saturating_add_signed(clock_shift()))
}

fn millis(count: u128) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;

    #[test]
    fn backward_clock_step_does_not_lengthen_wait() {
        let clock = SteadyClock::default();
        let read = |wall, passed| clock.read(Timestamp(wall), passed).0;
        assert_eq!(read(10 * HOUR, 0), 10 * HOUR);
        let until = 10 * HOUR + 5_000;
        assert!(read(9 * HOUR + 4_000, 4_000) < until, "an hour back, and not yet over");
        assert_eq!(read(9 * HOUR + 5_000, 5_000), until);
        assert_eq!(read(9 * HOUR + 5_000, 5_000), until, "however often it is asked");
        let next = until + 1_000;
        assert!(read(9 * HOUR + 5_999, 5_999) < next, "nor any later wait shorter");
        assert_eq!(read(9 * HOUR + 6_000, 6_000), next);
    }

    #[test]
    fn forward_clock_step_is_followed() {
        let clock = SteadyClock::default();
        let read = |wall, passed| clock.read(Timestamp(wall), passed).0;
        assert_eq!(read(HOUR, 0), HOUR);
        assert_eq!(read(9 * HOUR, 1_000), 9 * HOUR, "as after the machine has slept");
        assert_eq!(read(9 * HOUR + 1_000, 2_000), 9 * HOUR + 1_000);
        assert_eq!(read(2 * HOUR, 3_000), 9 * HOUR + 2_000, "and goes on from there");
    }

    #[test]
    fn now_defaults_to_wall_clock() {
        let before = wall_clock_now();
        assert!(now() >= before);
    }
}
