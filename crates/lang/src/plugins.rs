//! Plug-ins, the user's `config.yaml`, and the supervision block: how each is written, and how it is read.

use raymond_model::settings::{PlugIn, is_name};
use raymond_model::supervision::{FixedPoint, OnExhausted, RestartPolicy, SupervisionOverrides};
use raymond_model::time::millis;
use serde_json::{Value, json};

use super::hint::instead_of;
use super::schema::shape;
use super::shell_words::{with_program, words};
use super::yaml;
use super::yaml::tree::YamlFileKind;
use super::yaml::{Error, NotText, PlacedValue, TextOr, YamlErrors, value};
use crate::keys::unknown_keys;

// Programs as plug-ins, as they stand in a workflow's manifest and on the command line.
//
// ```yaml
// plugins:
//   - python3 ./budget.py 0.50
//   - name: gate
//     command: [./gate, --strict]   # or one text
//     required: true                # the run pauses when it has failed
//     deadline: 5s                  # how long raymond waits for an answer
//     restart: transient            # as in `supervision`, with its defaults
//     max_restarts: 3/10m
//     backoff: { min: 1s, max: 5m }
// ```
//
// A command that is one text is split into words by `shell_words`.

/// A plug-in entry of the manifest: only a command, or a command and its options.
pub(super) type RawPlugIn = TextOr<Box<RawPlugInTerms>>;

impl NotText for Box<RawPlugInTerms> {
    const EXPECTED: &str = "a command, or a mapping such as { command: ./gate, required: true }";
}

listed_keys! {
    /// A plug-in with its options.
    #[derive(Debug)]
    #[serde(deny_unknown_fields)]
    pub struct RawPlugInTerms {
        /// The name of the plug-in; without one, it is that of the command.
        name: Option<PlacedValue<String>> => shape::text,
        /// The command, as one text or as a list of its words.
        command: PlacedValue<RawCommand> => command_shape,
        /// True if the run pauses when the plug-in has failed.
        required: Option<bool> => shape::boolean,
        /// The time that an answer is waited for.
        deadline: Option<PlacedValue<String>> => shape::duration,
        /// The ends after which the plug-in is started again.
        restart: Option<PlacedValue<String>> =>
            || shape::one_of(RestartPolicy::ALL.map(|(name, _)| name)),
        /// The number of restarts before the plug-in is given up, such as 3, or 3/10m for three within ten minutes.
        max_restarts: Option<PlacedValue<String>> => shape::restarts,
        /// The time within which restarts are counted.
        period: Option<PlacedValue<String>> => shape::duration,
        /// The pause before a restart.
        backoff: Option<RawBackoff> => RawBackoff::shape,
    }
}

/// Returns the list of plug-ins as JSON Schema.
pub(super) fn list_shape() -> Value {
    let options = shape::mapping(RawPlugInTerms::KEYS, &["command"]);
    shape::list(json!({ "anyOf": [{ "type": "string", "minLength": 1 }, options] }))
}

fn command_shape() -> Value {
    let words = json!({ "type": "array", "items": shape::text(), "minItems": 1 });
    json!({ "anyOf": [{ "type": "string", "minLength": 1 }, words] })
}

/// A command, as one text or as its words.
type RawCommand = TextOr<Vec<String>>;

impl NotText for Vec<String> {
    const EXPECTED: &str = "a command, as one text or as a list of its words";
    const IS_LIST: bool = true;
}

/// Reads the entries of a manifest.
///
/// # Errors
/// [`Error`] with line and column.
pub(super) fn read(entries: Vec<PlacedValue<RawPlugIn>>) -> Result<Vec<PlugIn>, Error> {
    let mut plugins: Vec<PlugIn> = Vec::with_capacity(entries.len());
    for entry in entries {
        let place = entry.at;
        let (plugin, named) = match entry.value {
            TextOr::Text(text) => (command(&text).map_err(|why| Error::new(place, why))?, false),
            TextOr::Other(options) => {
                let named = options.name.is_some();
                (options.read()?, named)
            }
        };
        if named && plugins.iter().any(|other| other.name == plugin.name) {
            let message = format!("another plug-in has the name `{}`", plugin.name);
            return Err(Error::new(place, message));
        }
        plugins.push(plugin);
    }
    Ok(plugins)
}

/// Reads a plug-in from a command, with the usual options.
///
/// # Errors
/// A text that says what is expected.
pub fn command(text: &str) -> Result<PlugIn, String> {
    words(text).map(PlugIn::new)
}

impl RawPlugInTerms {
    fn read(self) -> Result<PlugIn, Error> {
        let place = self.command.at;
        let words = match self.command.value {
            TextOr::Text(text) => words(&text),
            TextOr::Other(words) => with_program(words),
        };
        let mut plugin = PlugIn::new(words.map_err(|why| Error::new(place, why))?);
        plugin.name = value(self.name, name)?.unwrap_or(plugin.name);
        plugin.required = self.required.unwrap_or_default();
        plugin.deadline_ms = value(self.deadline, some_time)?.unwrap_or(plugin.deadline_ms);
        let supervision = RawSupervision {
            restart: self.restart,
            max_restarts: self.max_restarts,
            period: self.period,
            backoff: self.backoff,
            ..RawSupervision::default()
        };
        plugin.supervision = supervision.read()?;
        Ok(plugin)
    }
}

fn name(text: &str) -> Result<String, String> {
    if is_name(text) {
        Ok(text.to_owned())
    } else {
        Err("a name has 1 to 64 bytes and no line breaks".to_owned())
    }
}

// `config.yaml`: what a user has set for all commands on this machine.

/// The name of the file, in the directory `raymond` of the user's configuration.
pub const FILE: &str = "config.yaml";

/// What the user has set.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct UserConfig {
    /// The address of the engine that holds the runs. It may have a password in it, so it is never shown as a whole.
    pub engine: Option<String>,
}

listed_keys! {
    /// The keys as they are written.
    pub(crate) struct RawUserConfig {
        /// The engine that holds the runs, unless the command line or the environment names one.
        engine: Option<PlacedValue<String>> => shape::text,
    }
}

/// Reads the file.
///
/// # Errors
/// [`Error`] with line and column.
pub fn parse(text: &str) -> Result<UserConfig, Error> {
    let mut errors = YamlErrors::default();
    let root = yaml::parse(YamlFileKind::USER_CONFIG, text, &mut errors);
    let root = root.filter(|root| !root.is_null());
    let raw = root.as_ref().and_then(|root| yaml::examine_tree::<RawUserConfig>(root, &mut errors));
    if let Some(root) = &root {
        errors.add(unknown_keys(root, RawUserConfig::KEYS, |_| None));
    }
    let engine = raw.and_then(|raw| raw.engine).map(|engine| engine.value);
    errors.or_else_first(UserConfig { engine })
}

// The supervision block, as it stands in a prompt's frontmatter and in a workflow's manifest.
//
// ```yaml
// supervision:
//   restart: transient          # permanent, transient or temporary
//   max_restarts: 3
//   period: 10m
//   backoff: { min: 1s, max: 5m, factor: 2, jitter: 0.2 }
//   timeout: 30m
//   idle_timeout: 10m
//   shutdown: 20s
//   on_exhausted: fail-agent    # fail-agent, fail-run or wait
// ```
//
// Each key may be left out. Its value then comes from the next outer level: the command line, the manifest, or
// the default.

listed_keys! {
    /// The block, as written.
    #[derive(Debug, Default)]
    #[serde(deny_unknown_fields)]
    pub struct RawSupervision {
        /// The agents that are started again after a failure.
        pub(super) restart: Option<PlacedValue<String>> =>
            || shape::one_of(RestartPolicy::ALL.map(|(name, _)| name)),
        /// The number of restarts before an agent is given up, such as 3, or 3/10m for three within ten minutes.
        pub(super) max_restarts: Option<PlacedValue<String>> => shape::restarts,
        /// The time within which restarts are counted.
        pub(super) period: Option<PlacedValue<String>> => shape::duration,
        /// The pause before a restart.
        pub(super) backoff: Option<RawBackoff> => RawBackoff::shape,
        /// The time that a turn may take.
        pub(super) timeout: Option<PlacedValue<String>> => shape::duration,
        /// The time for which a turn may be silent.
        pub(super) idle_timeout: Option<PlacedValue<String>> => shape::duration,
        /// The time that a turn has to end by itself when it is stopped.
        pub(super) shutdown: Option<PlacedValue<String>> => shape::duration,
        /// The reaction to used-up restarts.
        pub(super) on_exhausted: Option<PlacedValue<String>> =>
            || shape::one_of(OnExhausted::ALL.map(|(name, _)| name)),
    }
}

listed_keys! {
    /// The pauses before restarts, as written.
    #[derive(Debug)]
    #[serde(deny_unknown_fields)]
    pub(super) struct RawBackoff {
        /// The first pause.
        min: Option<PlacedValue<String>> => shape::duration,
        /// The longest pause.
        max: Option<PlacedValue<String>> => shape::duration,
        /// The factor by which each pause is longer than the one before.
        factor: Option<PlacedValue<String>> => || shape::ratio(1, 100),
        /// The part of a pause that is chosen at random.
        jitter: Option<PlacedValue<String>> => || shape::ratio(0, 1),
    }
}

impl RawSupervision {
    /// Returns the block as JSON Schema.
    pub(super) fn shape() -> Value {
        shape::mapping(Self::KEYS, &[])
    }

    /// Returns the settings that the block describes.
    ///
    /// # Errors
    /// [`Error`] with the place of the value that makes no sense.
    pub fn read(self) -> Result<SupervisionOverrides, Error> {
        let (max_restarts, counted_within) = match self.max_restarts {
            Some(text) => {
                let read = restarts(&text.value).map_err(|why| Error::new(text.at, why))?;
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
        shape::mapping(Self::KEYS, &[])
    }

    fn read(self, read: &mut SupervisionOverrides) -> Result<(), Error> {
        let place = self.max.as_ref().map(|max| max.at);
        read.backoff_min_ms = value(self.min, millis)?;
        read.backoff_max_ms = value(self.max, millis)?;
        read.backoff_factor = value(self.factor, |text| ratio(text, 1.0, 100.0))?;
        read.backoff_jitter = value(self.jitter, |text| ratio(text, 0.0, 1.0))?;
        match (read.backoff_min_ms, read.backoff_max_ms, place) {
            (Some(min), Some(max), Some(place)) if max < min => {
                Err(Error::new(place, "`max` is shorter than `min`"))
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
    let instead = instead_of(name, all.iter().map(|(known, _)| *known), "use");
    Err(format!("unknown value `{name}`; {instead}"))
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
    use crate::manifest::parse;
    use raymond_model::settings::PlugIn;
    use raymond_model::supervision::{RestartPolicy, SupervisionOverrides};

    fn plugins(text: &str) -> Result<Vec<PlugIn>, String> {
        parse(text).map(|manifest| manifest.plugins).map_err(|error| error.to_string())
    }

    #[test]
    fn plug_in_command_is_split_by_shell_quoting_rules() {
        let read = plugins("plugins:\n  - python3 ./budget.py 'a b' \"$HOME\"\n").expect("read");
        assert_eq!(read[0].command, ["python3", "./budget.py", "a b", "$HOME"]);
        assert_eq!(read[0].name, "budget");
    }

    #[test]
    fn all_plug_in_keys_are_parsed() {
        let text = "plugins:\n  - name: gate\n    command: [./gate, '--level', 'a b']\n    required: true\n    deadline: 5s\n    restart: permanent\n    max_restarts: 5/1h\n    backoff: { min: 1ms }\n  - { command: ./log.sh out }\n";
        let read = plugins(text).expect("read");
        let gate = PlugIn {
            name: "gate".into(),
            required: true,
            deadline_ms: 5000,
            supervision: SupervisionOverrides {
                restart: Some(RestartPolicy::Permanent),
                max_restarts: Some(5),
                period_ms: Some(3_600_000),
                backoff_min_ms: Some(1),
                ..SupervisionOverrides::default()
            },
            ..PlugIn::new(["./gate", "--level", "a b"].map(str::to_owned).into())
        };
        assert_eq!(read[0], gate);
        assert_eq!((&*read[1].name, read[1].required), ("log", false));
    }

    #[test]
    fn invalid_plug_in_is_error_with_location() {
        let table = [
            ("plugins:\n  - ''\n", "2:5: write a command, such as sh ./log.sh"),
            ("plugins:\n  - \"a 'b\"\n", "2:5: a quote has no end in this command"),
            ("plugins:\n  - { command: [] }\n", "2:16: write a command, such as"),
            ("plugins:\n  - [./gate, --strict]\n", "2:5: a command, or a mapping such as"),
            ("plugins:\n  - { command: { a: b } }\n", "as one text or as a list of its words"),
            ("plugins:\n  - { command: x, deadline: soon }\n", "2:29: `soon` is not a duration"),
            ("plugins:\n  - { command: x, restart: often }\n", "2:28: unknown value `often`"),
            (
                "plugins:\n  - { command: x, requird: true }\n",
                "unknown key `requird`; did you mean",
            ),
            ("plugins:\n  - { name: x }\n", "the key `command` is missing here"),
            ("plugins:\n  - { command: x, name: '' }\n", "2:25: a name has 1 to 64 bytes"),
            (
                "plugins:\n  - { command: x, name: a }\n  - { command: y, name: a }\n",
                "3:5: another plug-in has the name `a`",
            ),
        ];
        for (text, expected) in table {
            let error = plugins(text).expect_err(text);
            assert!(error.contains(expected), "{text}{error}");
        }
    }
}

#[cfg(test)]
mod user_config_tests {
    use super::*;

    #[test]
    fn engine_is_read_and_other_keys_are_refused() {
        let engine = |text: &str| parse(text).map(|config| config.engine);
        assert_eq!(engine(""), Ok(None));
        assert_eq!(engine("# nothing\n"), Ok(None));
        let url = "postgres://ray@db/work";
        assert_eq!(engine(&format!("engine: {url}\n")), Ok(Some(url.to_owned())));
        let wrong = engine("engin: x\n").expect_err("no such key").to_string();
        assert!(wrong.starts_with("1:1: ") && wrong.contains("engine"), "{wrong}");
        assert!(engine("engine: [a]\n").is_err());
    }
}

#[cfg(test)]
mod supervision_tests {
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
            ("restart: transent\n", "1:10: unknown value `transent`; did you mean `transient`?"),
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
