//! The versions of Claude Code: which are supported, which are tested, and the warning about others.
//!
//! No decision depends on a version where the stream itself tells what to do. The numbers here serve only to warn a
//! person of an untested version.

use std::fmt;

/// The oldest version that is supported; the tests with the real program run with it.
pub const OLDEST_SUPPORTED: ProgramVersion = ProgramVersion([2, 1, 197]);

/// The newest version that is tested; the tests with the real program run with it.
pub const NEWEST_TESTED: ProgramVersion = ProgramVersion([2, 1, 332]);

/// A version of Claude Code: major, minor, patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProgramVersion([u64; 3]);

/// The relation of a version to those that are tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionSupport {
    /// Older than the oldest that is supported.
    TooOld,
    /// Within the range that is supported.
    Supported,
    /// Newer than the newest that is tested.
    Untested,
}

impl ProgramVersion {
    /// Reads a version such as `2.1.330`; what follows the third number does not count.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().splitn(3, '.');
        let mut next = || parts.next();
        let (major, minor, rest) = (next()?, next()?, next()?);
        let patch = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
        let [major, minor, patch] = [major, minor, patch].map(number);
        Some(Self([major?, minor?, patch?]))
    }

    /// Returns how a version relates to those that are tested.
    pub fn support(self) -> VersionSupport {
        if self < OLDEST_SUPPORTED {
            VersionSupport::TooOld
        } else if self > NEWEST_TESTED {
            VersionSupport::Untested
        } else {
            VersionSupport::Supported
        }
    }
}

impl fmt::Display for ProgramVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([major, minor, patch]) = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// Reads a number of digits only, because the standard library also takes a sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Returns the warning about a version as the program names it; `None` if it is supported, or if the text is not a
/// version.
pub fn version_warning(named: &str) -> Option<String> {
    let version = ProgramVersion::parse(named)?;
    match version.support() {
        VersionSupport::TooOld => Some(format!(
            "Claude Code {version} is older than {OLDEST_SUPPORTED}, the oldest version that is supported: update it (claude update)"
        )),
        VersionSupport::Supported => None,
        VersionSupport::Untested => Some(format!(
            "Claude Code {version} is newer than {NEWEST_TESTED}, the newest version that raymond is tested with: if a run behaves oddly, update raymond or install {NEWEST_TESTED}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_parsed_from_program_output() {
        let table = [
            ("2.1.330", Some([2, 1, 330])),
            (" 2.1.330\n", Some([2, 1, 330])),
            ("2.1.330 (Claude Code)", Some([2, 1, 330])),
            ("2.1.330-beta.2", Some([2, 1, 330])),
            ("2.1.330.4", Some([2, 1, 330])),
            ("10.20.30", Some([10, 20, 30])),
            ("2.1", None),
            ("2.1.x", None),
            ("2.1.", None),
            ("v2.1.330", None),
            ("2.+1.330", None),
            ("2.1.99999999999999999999", None),
            ("", None),
            ("unknown", None),
        ];
        for (text, numbers) in table {
            assert_eq!(ProgramVersion::parse(text), numbers.map(ProgramVersion), "{text:?}");
        }
    }

    #[test]
    fn version_support_compares_numbers_not_text() {
        use VersionSupport::{Supported, TooOld, Untested};
        let table = [
            ("2.1.196", TooOld),
            ("2.0.999", TooOld),
            ("1.9.400", TooOld),
            ("2.1.197", Supported),
            ("2.1.242", Supported),
            ("2.1.332", Supported),
            ("2.1.333", Untested),
            ("2.1.1000", Untested),
            ("2.2.0", Untested),
            ("3.0.0", Untested),
        ];
        for (text, support) in table {
            let version = ProgramVersion::parse(text).expect("a version");
            assert_eq!((version.support(), version.to_string()), (support, text.to_owned()));
        }
    }

    #[test]
    fn only_too_old_or_untested_version_gives_warning() {
        let table = [
            ("2.1.100", Some("Claude Code 2.1.100 is older than 2.1.197")),
            ("2.1.197", None),
            ("2.1.332", None),
            ("2.2.0", Some("Claude Code 2.2.0 is newer than 2.1.332")),
            ("some day", None),
        ];
        for (named, expected) in table {
            let warning = version_warning(named);
            let begins = expected.map(|start| warning.as_deref().unwrap_or("").starts_with(start));
            assert!(begins.unwrap_or(warning.is_none()), "{named}: {warning:?}");
        }
    }

    #[test]
    fn test_packages_pin_oldest_and_newest_version() {
        let oldest = include_str!("../../../tests/claude-code/oldest/package.json");
        let newest = include_str!("../../../tests/claude-code/newest/package.json");
        for (package, version) in [(oldest, OLDEST_SUPPORTED), (newest, NEWEST_TESTED)] {
            let package: serde_json::Value = serde_json::from_str(package).expect("JSON");
            let pinned = package["dependencies"]["@anthropic-ai/claude-code"].as_str();
            assert_eq!(pinned, Some(version.to_string().as_str()));
        }
    }
}
