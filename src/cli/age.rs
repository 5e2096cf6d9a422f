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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_is_shown_in_its_largest_whole_unit() {
        let texts = [0, 59 * SECOND, 3 * MINUTE + 1, 2 * HOUR, 47 * HOUR, 400 * DAY].map(text);
        assert_eq!(texts, ["0s", "59s", "3m", "2h", "1d", "400d"]);
    }
}
