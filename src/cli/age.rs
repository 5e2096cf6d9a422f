//! Spans of time in one short word: `3m`, `2h`, `5d`.

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Returns a span of milliseconds in its largest whole unit, rounded down.
pub(super) fn text(millis: u64) -> String {
    match millis {
        0..MINUTE => format!("{}s", millis / SECOND),
        MINUTE..HOUR => format!("{}m", millis / MINUTE),
        HOUR..DAY => format!("{}h", millis / HOUR),
        DAY.. => format!("{}d", millis / DAY),
    }
}

/// Returns how long something took, in its two largest units.
pub(super) fn took(millis: u64) -> String {
    match millis {
        0..10_000 => format!("{}.{}s", millis / SECOND, millis % SECOND / 100),
        10_000..MINUTE => format!("{}s", millis / SECOND),
        MINUTE..HOUR => format!("{}m {:02}s", millis / MINUTE, millis % MINUTE / SECOND),
        HOUR..DAY => format!("{}h {:02}m", millis / HOUR, millis % HOUR / MINUTE),
        DAY.. => format!("{}d {:02}h", millis / DAY, millis % DAY / HOUR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_is_shown_in_its_largest_whole_unit() {
        let texts = [0, 59 * SECOND, 3 * MINUTE + 1, 2 * HOUR, 47 * HOUR, 400 * DAY].map(text);
        assert_eq!(texts, ["0s", "59s", "3m", "2h", "1d", "400d"]);
        let spans = [0, 450, 9_999, 59 * SECOND, 185 * SECOND, 2 * HOUR + MINUTE, 25 * HOUR];
        let spans = spans.map(took);
        assert_eq!(spans, ["0.0s", "0.4s", "9.9s", "59s", "3m 05s", "2h 01m", "1d 01h"]);
    }
}
