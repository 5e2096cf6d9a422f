//! The options for the log: its format, its file and its level.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// The format, the file and the level of the log.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Logging")]
pub struct LoggingArgs {
    /// The format of log messages; with json and no --log-file, all of stderr is JSON lines, also
    /// messages for people [default: text]
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,

    /// Append log messages to this file instead of printing them on stderr
    #[arg(long, value_name = "PATH")]
    pub log_file: Option<PathBuf>,

    /// The least severe level to log [default: `RAYMOND_LOG`, or warn]
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<LogLevel>,
}

/// The format of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Sentences for people
    #[default]
    Text,
    /// A JSON object a line
    Json,
}

/// The severity of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// Failures
    Error,
    /// Problems that raymond works around
    Warn,
    /// Events
    Info,
    /// Details for finding the cause of a failure
    Debug,
    /// Everything
    Trace,
}

/// Returns the name of a value on the command line.
pub fn name_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

impl LoggingArgs {
    /// Returns the same options as arguments for another raymond.
    pub fn arguments(&self) -> Vec<OsString> {
        let options = [
            ("--log-format", self.log_format.map(|format| name_of(&format).into())),
            ("--log-file", self.log_file.as_ref().map(|path| path.as_os_str().to_owned())),
            ("--log-level", self.log_level.map(|level| name_of(&level).into())),
        ];
        options
            .into_iter()
            .filter_map(|(option, value)| Some([OsString::from(option), value?]))
            .flatten()
            .collect()
    }
}
