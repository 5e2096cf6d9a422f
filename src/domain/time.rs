//! Points in time as plain numbers: the domain is told the time, it never asks for it.

use serde::{Deserialize, Serialize};

/// A point in time, in milliseconds since 1970-01-01 UTC.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The point `millis` milliseconds later.
    #[must_use]
    pub fn plus(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// The milliseconds from `earlier` to this point; 0 if it lies in the future.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A span of milliseconds as people write it: `1500ms`, `90s`, `30m`, `2h`.
#[must_use]
pub fn span(millis: u64) -> String {
    match millis {
        0 => "0s".to_owned(),
        _ if millis.is_multiple_of(3_600_000) => format!("{}h", millis / 3_600_000),
        _ if millis.is_multiple_of(60_000) => format!("{}m", millis / 60_000),
        _ if millis.is_multiple_of(1000) => format!("{}s", millis / 1000),
        _ => format!("{millis}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_its_largest_whole_unit() {
        let spans = [0, 1500, 90_000, 1_800_000, 7_200_000].map(span);
        assert_eq!(spans, ["0s", "1500ms", "90s", "30m", "2h"]);
    }
}
