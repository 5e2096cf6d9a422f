//! The supervision block, as it stands in a prompt's frontmatter and in a workflow's manifest.
//!
//! ```yaml
//! supervision:
//!   restart: transient          # permanent, transient or temporary
//!   max_restarts: 3
//!   period: 10m
//!   backoff: { min: 1s, max: 5m, factor: 2, jitter: 0.2 }
//!   timeout: 30m
//!   idle_timeout: 10m
//!   shutdown: 20s
//!   on_exhausted: fail-agent    # fail-agent, fail-run or wait
//! ```
//!
//! Each key may be left out. Its value then comes from the next outer level: the command line, the manifest, or
//! the default.

use serde_json::Value;

use super::diagnostic::closest;
use super::schema;
use super::yaml::{Error, PlacedValue, value};
use raymond_model::supervision::{FixedPoint, OnExhausted, RestartPolicy, SupervisionOverrides};
use raymond_model::time::millis;

listed_keys! {
    /// The block, as written.
    #[derive(Debug, Default)]
    #[serde(deny_unknown_fields)]
    pub struct RawSupervision {
        /// The agents that are started again after a failure.
        pub(super) restart: Option<PlacedValue<String>> =>
            || schema::one_of(RestartPolicy::ALL.map(|(name, _)| name)),
        /// The number of restarts before an agent is given up, such as 3, or 3/10m for three within ten minutes.
        pub(super) max_restarts: Option<PlacedValue<String>> => schema::restarts,
        /// The time within which restarts are counted.
        pub(super) period: Option<PlacedValue<String>> => schema::duration,
        /// The pause before a restart.
        pub(super) backoff: Option<RawBackoff> => RawBackoff::shape,
        /// The time that a turn may take.
        pub(super) timeout: Option<PlacedValue<String>> => schema::duration,
        /// The time for which a turn may be silent.
        pub(super) idle_timeout: Option<PlacedValue<String>> => schema::duration,
        /// The time that a turn has to end by itself when it is stopped.
        pub(super) shutdown: Option<PlacedValue<String>> => schema::duration,
        /// The reaction to used-up restarts.
        pub(super) on_exhausted: Option<PlacedValue<String>> =>
            || schema::one_of(OnExhausted::ALL.map(|(name, _)| name)),
    }
}

listed_keys! {
    /// The pauses before restarts, as written.
    #[derive(Debug)]
    #[serde(deny_unknown_fields)]
    pub(super) struct RawBackoff {
        /// The first pause.
        min: Option<PlacedValue<String>> => schema::duration,
        /// The longest pause.
        max: Option<PlacedValue<String>> => schema::duration,
        /// The factor by which each pause is longer than the one before.
        factor: Option<PlacedValue<String>> => || schema::ratio(1, 100),
        /// The part of a pause that is chosen at random.
        jitter: Option<PlacedValue<String>> => || schema::ratio(0, 1),
    }
}

impl RawSupervision {
    /// Returns the block as JSON Schema.
    pub(super) fn shape() -> Value {
        schema::mapping(Self::KEYS, &[])
    }

    /// Returns the settings that the block describes.
    ///
    /// # Errors
    /// [`Error`] with the place of the value that makes no sense.
    pub fn read(self) -> Result<SupervisionOverrides, Error> {
        let (max_restarts, counted_within) = match self.max_restarts {
            Some(text) => {
                let read = restarts(&text.value).map_err(|why| Error::at(text.at, why))?;
                (Some(read.0), read.1)
            }
            None => (None, None),
        };
        let mut read = SupervisionOverrides {
            restart: named(self.restart, &RestartPolicy::ALL)?,
            max_restarts,
            period_ms: value(self.period, some_time)?.or(counted_within),
            timeout_ms: value(self.timeout, some_time)?,
            idle_timeout_ms: value(self.idle_timeout, some_time)?,
            shutdown_ms: value(self.shutdown, millis)?,
            on_exhausted: named(self.on_exhausted, &OnExhausted::ALL)?,
            ..SupervisionOverrides::default()
        };
        if let Some(backoff) = self.backoff {
            backoff.read(&mut read)?;
        }
        Ok(read)
    }
}

impl RawBackoff {
    /// Returns the block as JSON Schema.
    pub(super) fn shape() -> Value {
        schema::mapping(Self::KEYS, &[])
    }

    fn read(self, read: &mut SupervisionOverrides) -> Result<(), Error> {
        let place = self.max.as_ref().map(|max| max.at);
        read.backoff_min_ms = value(self.min, millis)?;
        read.backoff_max_ms = value(self.max, millis)?;
        read.backoff_factor = value(self.factor, |text| ratio(text, 1.0, 100.0))?;
        read.backoff_jitter = value(self.jitter, |text| ratio(text, 0.0, 1.0))?;
        match (read.backoff_min_ms, read.backoff_max_ms, place) {
            (Some(min), Some(max), Some(place)) if max < min => {
                Err(Error::at(place, "`max` is shorter than `min`".to_owned()))
            }
            _ => Ok(()),
        }
    }
}

/// Reads `3`, or `3/10m` for three within ten minutes.
///
/// # Errors
/// A text that says what is expected.
pub fn restarts(text: &str) -> Result<(u32, Option<u64>), String> {
    let (count, period) = match text.split_once('/') {
        Some((count, period)) => (count, Some(some_time(period)?)),
        None => (text, None),
    };
    let count = count.trim().parse();
    let count = count.map_err(|_| "write a number such as 3, or 3/10m".to_owned())?;
    Ok((count, period))
}

/// Reads a time that is not zero.
///
/// # Errors
/// A text that says what is expected.
pub fn some_time(text: &str) -> Result<u64, String> {
    match millis(text)? {
        0 => Err("the duration must be longer than zero; write for example 90s or 45m".to_owned()),
        time => Ok(time),
    }
}

/// Returns the value of a name.
///
/// # Errors
/// A text with the possible names.
pub fn by_name<T: Copy>(name: &str, all: &[(&'static str, T)]) -> Result<T, String> {
    if let Some((_, meant)) = all.iter().find(|(known, _)| *known == name) {
        return Ok(*meant);
    }
    let names: Vec<&str> = all.iter().map(|(known, _)| *known).collect();
    let hint = closest(name, names.iter().copied()).map_or_else(
        || format!("use {}", names.join(", ")),
        |meant| format!("did you mean {meant}?"),
    );
    Err(format!("unknown value `{name}`; {hint}"))
}

fn ratio(text: &str, least: f64, most: f64) -> Result<FixedPoint, String> {
    match text.parse::<f64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(FixedPoint::from(number)),
        _ => Err(format!("write a number from {least} to {most}")),
    }
}

fn named<T: Copy>(
    text: Option<PlacedValue<String>>,
    all: &[(&'static str, T)],
) -> Result<Option<T>, Error> {
    value(text, |name| by_name(name, all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;

    fn read(text: &str) -> Result<SupervisionOverrides, String> {
        let raw: Result<RawSupervision, _> = yaml::read(yaml::tree::YamlFileKind::MANIFEST, text);
        raw.and_then(RawSupervision::read).map_err(|error| error.to_string())
    }

    #[test]
    fn all_supervision_keys_are_parsed() {
        let text = "restart: permanent\nmax_restarts: 5\nperiod: 1h\nbackoff: { min: 2s, max: 1m, factor: 1.5, jitter: 0 }\ntimeout: 45m\nidle_timeout: 90s\nshutdown: 0s\non_exhausted: wait\n";
        let expected = SupervisionOverrides {
            restart: Some(RestartPolicy::Permanent),
            max_restarts: Some(5),
            period_ms: Some(3_600_000),
            backoff_min_ms: Some(2000),
            backoff_max_ms: Some(60_000),
            backoff_factor: Some(FixedPoint::thousandths(1500)),
            backoff_jitter: Some(FixedPoint::thousandths(0)),
            timeout_ms: Some(2_700_000),
            idle_timeout_ms: Some(90_000),
            shutdown_ms: Some(0),
            on_exhausted: Some(OnExhausted::Wait),
        };
        assert_eq!(read(text), Ok(expected));
        let short = SupervisionOverrides {
            max_restarts: Some(3),
            period_ms: Some(600_000),
            ..SupervisionOverrides::default()
        };
        assert_eq!(read("max_restarts: 3/10m"), Ok(short));
    }

    #[test]
    fn invalid_supervision_is_error_with_location_and_hint() {
        let table = [
            ("restart: transent\n", "1:10: unknown value `transent`; did you mean transient?"),
            (
                "restart: often\n",
                "1:10: unknown value `often`; use permanent, transient, temporary",
            ),
            ("on_exhausted: stop\n", "1:15: unknown value `stop`; use fail-agent, fail-run, wait"),
            ("max_restarts: many\n", "1:15: write a number such as 3, or 3/10m"),
            ("max_restarts: -1\n", "1:15: write a number such as 3, or 3/10m"),
            (
                "timeout: 0s\n",
                "1:10: the duration must be longer than zero; write for example 90s or 45m",
            ),
            (
                "timeout: soon\n",
                "1:10: `soon` is not a duration; write for example 200ms, 30s, 5m or 1h",
            ),
            ("backoff: { min: 5s, max: 1s }\n", "1:26: `max` is shorter than `min`"),
            ("backoff: { factor: 0.5 }\n", "1:20: write a number from 1 to 100"),
            ("backoff: { jitter: 2 }\n", "1:20: write a number from 0 to 1"),
            ("backof: 1\n", "1:1: unknown key `backof`; did you mean `backoff`?"),
        ];
        for (text, expected) in table {
            assert_eq!(read(text), Err(expected.to_owned()));
        }
    }
}
