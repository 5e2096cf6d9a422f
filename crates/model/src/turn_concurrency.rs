//! The number of turns that may run at once while the API asks for fewer: additive up, halved down.
//!
//! Each time the API throttles, the number is halved, but never below one. Each round of turns that went well
//! allows one more, up to the run's setting. Many turns are throttled by the same cause at the same time, so
//! the number is halved once for all of them. A run that is resumed after its runtime has died begins at its
//! ceiling again, because the load may have changed.

use super::time::Timestamp;

/// The time in which further complaints count as the same one, in milliseconds.
const SAME_CAUSE_MS: u64 = 10_000;

/// The number of turns that may run at once.
#[derive(Debug, Clone)]
pub struct TurnThrottle {
    ceiling: usize,
    allowed: usize,
    went_well: usize,
    halved: Option<Timestamp>,
}

impl TurnThrottle {
    /// Creates a throttle that allows `ceiling` turns, at least one.
    pub fn new(ceiling: usize) -> Self {
        let ceiling = ceiling.max(1);
        Self { ceiling, allowed: ceiling, went_well: 0, halved: None }
    }

    /// Returns the number of turns that may run now.
    pub fn allowed(&self) -> usize {
        self.allowed
    }

    /// Takes a complaint of the API while `running` turns were running; returns whether fewer may run now.
    pub fn throttled(&mut self, running: usize, now: Timestamp) -> bool {
        if self.halved.is_some_and(|halved| now.since(halved) < SAME_CAUSE_MS) {
            return false;
        }
        let before = self.allowed;
        self.halved = Some(now);
        self.went_well = 0;
        self.allowed = (running.min(before) / 2).max(1);
        self.allowed < before
    }

    /// Takes a turn that went well.
    pub fn succeeded(&mut self) {
        if self.allowed == self.ceiling {
            return;
        }
        self.went_well += 1;
        if self.went_well >= self.allowed {
            self.went_well = 0;
            self.allowed += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp(seconds * 1000)
    }

    #[test]
    fn throttle_halves_limit_down_to_one() {
        let mut throttle = TurnThrottle::new(16);
        let allowed: Vec<usize> = (0..6)
            .map(|round| {
                throttle.throttled(throttle.allowed(), at(round * 20));
                throttle.allowed()
            })
            .collect();
        assert_eq!(allowed, [8, 4, 2, 1, 1, 1]);
        assert!(!throttle.throttled(1, at(1000)), "it cannot be lowered further");
    }

    #[test]
    fn repeated_throttles_within_interval_count_once() {
        let mut throttle = TurnThrottle::new(16);
        assert!(throttle.throttled(16, at(0)));
        assert!(!(1..10).any(|second| throttle.throttled(8, at(second))));
        assert_eq!(throttle.allowed(), 8);
        assert!(throttle.throttled(8, at(10)));
    }

    #[test]
    fn throttle_halves_actual_concurrency_not_limit() {
        let mut throttle = TurnThrottle::new(100);
        throttle.throttled(6, at(0));
        assert_eq!(throttle.allowed(), 3);
    }

    #[test]
    fn full_round_of_successes_raises_limit_by_one_up_to_ceiling() {
        let mut throttle = TurnThrottle::new(4);
        throttle.throttled(4, at(0));
        throttle.throttled(2, at(20));
        let mut allowed = Vec::new();
        for _ in 0..8 {
            throttle.succeeded();
            allowed.push(throttle.allowed());
        }
        assert_eq!(allowed, [2, 2, 3, 3, 3, 4, 4, 4]);
        assert_eq!(TurnThrottle::new(0).allowed(), 1);
    }
}
