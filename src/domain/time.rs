//! Points in time as plain numbers: the domain is told the time, it never asks for it.
//!
//! For people and for programs a point in time is a text in UTC, `2026-01-15T14:30:22.123Z`: in the
//! journal, in the state file, in what plug-ins are told and may say. Earlier versions wrote the
//! number, which is still read.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The last moment that has a text: the end of the year 9999.
const LAST_MS: u64 = 253_402_300_799_999;

/// A point in time, in milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

/// A text that is not a point in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a point in time; write for example 2026-01-15T14:30:22.123Z")]
pub struct NoTimestamp(String);

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

impl fmt::Display for Timestamp {
    /// As RFC 3339 has it, in UTC, to the millisecond.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.0.min(LAST_MS);
        let (year, month, day) = date(at / DAY_MS);
        let (seconds, millis) = (at % DAY_MS / 1000, at % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

impl FromStr for Timestamp {
    type Err = NoTimestamp;

    /// Reads any text of RFC 3339, with an offset and with parts of a second or without.
    fn from_str(text: &str) -> Result<Self, NoTimestamp> {
        read(text).ok_or_else(|| NoTimestamp(text.to_owned()))
    }
}

fn read(text: &str) -> Option<Timestamp> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let [year, month, day] = numbers(date, '-')?;
    let fits = (1970..=9999).contains(&year) && (1..=12).contains(&month) && day >= 1;
    if !fits || day > length_of(year, month) {
        return None;
    }
    let split = time.find(['Z', 'z', '+', '-'])?;
    let (time, offset) = time.split_at(split);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(time, ':')?;
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let millis = (hour * 3600 + minute * 60 + second.min(59)) * 1000 + thousandths(fraction)?;
    let local = days_before(year, month, day) * DAY_MS + millis;
    let at = match offset.as_bytes() {
        [b'Z' | b'z'] => local,
        [b'+', ..] => local.checked_sub(away(&offset[1..])?)?,
        _ => local + away(&offset[1..])?,
    };
    Some(Timestamp(at))
}

/// Two-digit numbers, and a year of four digits.
fn numbers<const N: usize>(text: &str, between: char) -> Option<[u64; N]> {
    let mut read = [0; N];
    let mut parts = text.split(between);
    for (number, value) in read.iter_mut().enumerate() {
        let digits = if number == 0 && between == '-' { 4 } else { 2 };
        let part = parts.next()?;
        let whole = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        *value = if whole { part.parse().ok()? } else { return None };
    }
    parts.next().is_none().then_some(read)
}

fn thousandths(fraction: &str) -> Option<u64> {
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(3);
    Some(digits.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// An offset from UTC, such as `05:30`, in milliseconds.
fn away(offset: &str) -> Option<u64> {
    let [hours, minutes] = numbers(offset, ':')?;
    (hours <= 23 && minutes <= 59).then_some((hours * 60 + minutes) * 60 * 1000)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn length_of(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The days from 1970-01-01 to a date.
fn days_before(year: u64, month: u64, day: u64) -> u64 {
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    let years = (year - 1970) * 365 + leaps(year - 1) - leaps(1969);
    years + (1..month).map(|month| length_of(year, month)).sum::<u64>() + day - 1
}

/// The date so many days after 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    // Too late by a year at the most, because a year has no more days than 366.
    let mut year = 1970 + days / 365;
    while days_before(year, 1, 1) > days {
        year -= 1;
    }
    let mut left = days - days_before(year, 1, 1);
    let mut month = 1;
    while left >= length_of(year, month) {
        left -= length_of(year, month);
        month += 1;
    }
    (year, month, left + 1)
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl serde::de::Visitor<'_> for Reader {
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
    fn a_span_has_its_largest_whole_unit() {
        let spans = [0, 1500, 90_000, 1_800_000, 7_200_000].map(span);
        assert_eq!(spans, ["0s", "1500ms", "90s", "30m", "2h"]);
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(millis("200ms"), Ok(200));
        assert_eq!(millis("1.5s"), Ok(1500));
        assert_eq!(millis("2m"), Ok(120_000));
        assert_eq!(millis("1h"), Ok(3_600_000));
        for bad in ["", "s", "1d", "-1s", "1.2.3s"] {
            assert!(millis(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_moment_has_a_text_and_an_older_number() {
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
        fn a_moment_reads_back(millis in 0..=LAST_MS) {
            let at = Timestamp(millis);
            prop_assert_eq!(at.to_string().parse(), Ok(at));
        }
    }
}
