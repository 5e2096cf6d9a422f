//! The clocks of the worker and of the server, which have to agree.
//!
//! A lease that a handler extends ends by the server's timers, at a time that the worker's clock has said.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::fmt::rfc2822::DateTimeParser;

/// The most that the clocks may differ. The server says its time in whole seconds, and a lease takes six.
const MOST: Duration = Duration::from_secs(3);

/// Returns why the clock of this machine does not fit to the date of an answer; `None` if it does, or there is none.
pub(super) fn difference(date: &str, now: SystemTime) -> Option<String> {
    let server = DateTimeParser::new().parse_timestamp(date).ok()?;
    let server = UNIX_EPOCH.checked_add(Duration::try_from(server.as_duration()).ok()?)?;
    let (by, way) = match now.duration_since(server) {
        Ok(ahead) => (ahead, "ahead of"),
        Err(behind) => (behind.duration(), "behind"),
    };
    (by > MOST).then(|| {
        format!(
            "the clock of this machine is {} s {way} that of the server, so leases would run out at the wrong time; have both set by the network",
            by.as_secs()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_differ_are_told() {
        let date = "Thu, 26 Nov 2026 14:49:42 GMT";
        let at = |seconds: i64| {
            let time = UNIX_EPOCH + Duration::from_secs(1_795_704_582);
            match u64::try_from(seconds) {
                Ok(later) => time + Duration::from_secs(later),
                Err(_) => time - Duration::from_secs(seconds.unsigned_abs()),
            }
        };
        for seconds in [-3, 0, 3] {
            assert_eq!(difference(date, at(seconds)), None, "{seconds}");
        }
        let told = |seconds| difference(date, at(seconds)).expect("a difference");
        assert!(told(60).contains("60 s ahead of that of the server"), "{}", told(60));
        assert!(told(-61).contains("61 s behind that of the server"), "{}", told(-61));
        assert_eq!(difference("yesterday", at(0)), None);
    }
}
