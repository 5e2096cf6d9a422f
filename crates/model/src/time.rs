//! Points in time as plain numbers: the domain gets the time from its callers and never asks for it.
//!
//! For people and for programs a point in time is a text in UTC, `2026-01-15T14:30:22.123Z`: in the journal, in the
//! state file, and in the messages to and from plug-ins. Earlier versions wrote the number, which is still read.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time, in milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

/// A text that is not a point in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a point in time; write for example 2026-01-15T14:30:22.123Z")]
pub struct InvalidTimestamp(String);

impl Timestamp {
    /// Returns the point `millis` milliseconds later.
    pub fn plus(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// Returns the milliseconds from `earlier` to this point; 0 if `earlier` lies after it.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Timestamp {
    /// Writes it as RFC 3339 has it, in UTC, to the millisecond.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = i64::try_from(self.0).unwrap_or(i64::MAX);
        let moment = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
        write!(f, "{moment:.3}")
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    /// Reads any text of RFC 3339, with an offset and with parts of a second or without.
    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        let moment = text.parse::<jiff::Timestamp>().ok();
        let millis = moment.and_then(|moment| u64::try_from(moment.as_millisecond()).ok());
        millis.map(Self).ok_or_else(|| InvalidTimestamp(text.to_owned()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimestampVisitor)
    }
}

struct TimestampVisitor;

impl serde::de::Visitor<'_> for TimestampVisitor {
    type Value = Timestamp;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a point in time, such as 2026-01-15T14:30:22.123Z")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Timestamp, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E>(self, millis: u64) -> Result<Timestamp, E> {
        Ok(Timestamp(millis))
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A point in time in UTC, to the millisecond; what a plug-in writes may have another offset.",
            "type": "string",
            "format": "date-time",
        })
    }
}

/// Returns a span of time in whole milliseconds, as many as fit.
pub fn millis_of(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Returns a span of milliseconds in seconds: `0.3s`.
pub fn seconds(millis: u64) -> String {
    format!("{}.{}s", millis / 1000, millis % 1000 / 100)
}

/// Returns a span of milliseconds as people write it: `1500ms`, `90s`, `30m`, `2h`.
pub fn format_duration(millis: u64) -> String {
    match millis {
        0 => "0s".to_owned(),
        _ if millis.is_multiple_of(3_600_000) => format!("{}h", millis / 3_600_000),
        _ if millis.is_multiple_of(60_000) => format!("{}m", millis / 60_000),
        _ if millis.is_multiple_of(1000) => format!("{}s", millis / 1000),
        _ => format!("{millis}ms"),
    }
}

/// Reads `200ms`, `1.5s`, `2m` or `1h` as milliseconds.
///
/// # Errors
/// A text that says what is expected.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be finite and not negative, and saturating"
)]
pub fn millis(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let factor = match text[digits..].trim() {
        "ms" => 1.0,
        "s" | "" => 1000.0,
        "m" => 60_000.0,
        "h" => 3_600_000.0,
        _ => {
            return Err(format!(
                "`{text}` is not a duration; write for example 200ms, 30s, 5m or 1h"
            ));
        }
    };
    match text[..digits].parse::<f64>() {
        Ok(number) if number.is_finite() => Ok((number * factor) as u64),
        _ => Err(format!("`{text}` is not a duration; write for example 200ms, 30s, 5m or 1h")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn duration_is_formatted_in_largest_whole_unit() {
        let spans = [0, 1500, 90_000, 1_800_000, 7_200_000].map(format_duration);
        assert_eq!(spans, ["0s", "1500ms", "90s", "30m", "2h"]);
    }

    #[test]
    fn duration_is_counted_in_whole_milliseconds() {
        let spans = [Duration::ZERO, Duration::from_micros(1999), Duration::from_mins(1)];
        assert_eq!(spans.map(millis_of), [0, 1, 60_000]);
        assert_eq!(millis_of(Duration::MAX), u64::MAX);
    }

    #[test]
    fn duration_is_parsed_with_unit_suffix() {
        assert_eq!(millis("200ms"), Ok(200));
        assert_eq!(millis("1.5s"), Ok(1500));
        assert_eq!(millis("2m"), Ok(120_000));
        assert_eq!(millis("1h"), Ok(3_600_000));
        for bad in ["", "s", "1d", "-1s", "1.2.3s"] {
            assert!(millis(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn timestamp_parses_rfc3339_text_and_epoch_millis() {
        let at = Timestamp(1_768_487_422_123);
        assert_eq!(at.to_string(), "2026-01-15T14:30:22.123Z");
        let read = |json: &str| serde_json::from_str::<Timestamp>(json).ok();
        for json in [
            "\"2026-01-15T14:30:22.123Z\"",
            "\"2026-01-15t16:30:22.1234+02:00\"",
            "\"2026-01-15 14:00:22.123-00:30\"",
            "1768487422123",
        ] {
            assert_eq!(read(json), Some(at), "{json}");
        }
        assert_eq!(read("\"2024-02-29T00:00:00Z\""), Some(Timestamp(1_709_164_800_000)));
        for bad in ["2025-02-29T00:00:00Z", "2026-01-15", "2026-01-15T25:00:00Z", "soon", ""] {
            assert!(bad.parse::<Timestamp>().is_err(), "{bad}");
        }
        assert!(read("-1").is_none() && read("null").is_none());
    }

    proptest! {
        #[test]
        fn timestamp_round_trips_through_text(millis in 0u64..253_402_000_000_000) {
            let at = Timestamp(millis);
            prop_assert_eq!(at.to_string().parse(), Ok(at));
        }
    }
}
