//! The problems found in a file of a workflow, and their places: one shape for all languages.
//!
//! A file is read to its end; all problems are reported at once, in the order of their places.

use std::fmt;

use serde::Serialize;

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used, but perhaps not as intended.
    Warning,
    /// The file is right; this is worth knowing.
    Info,
}

impl Severity {
    /// Returns the words before a code.
    fn prefix(self) -> &'static str {
        match self {
            Self::Error => "",
            Self::Warning => "warning: ",
            Self::Info => "info: ",
        }
    }
}

/// A mistake at a place. Diagnostics sort in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Diagnostic {
    /// The file, as it is shown to people.
    pub path: String,
    /// The line, from 1.
    pub line: u64,
    /// The column in characters, from 1.
    pub column: u64,
    /// The code of this kind of mistake.
    pub code: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The problem and its fix.
    pub message: String,
}

impl Diagnostic {
    /// Returns whether the problem makes the file unusable.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Returns the place, the code and the message, for output that shows the severity itself.
    pub fn without_severity(&self) -> String {
        let Self { path, line, column, code, message, .. } = self;
        format!("{path}:{line}:{column}: {code} {message}")
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, column, code, message, severity } = self;
        write!(f, "{path}:{line}:{column}: {}{code} {message}", severity.prefix())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagnostic_is_displayed_in_compiler_format() {
        let diagnostic = Diagnostic {
            path: "a.yaml".into(),
            line: 2,
            column: 7,
            code: "WF201",
            severity: Severity::Error,
            message: "Start node not found: `x`".into(),
        };
        assert_eq!(diagnostic.to_string(), "a.yaml:2:7: WF201 Start node not found: `x`");
        let warning = Diagnostic { severity: Severity::Warning, ..diagnostic };
        assert_eq!(warning.to_string(), "a.yaml:2:7: warning: WF201 Start node not found: `x`");
        assert_eq!(warning.without_severity(), "a.yaml:2:7: WF201 Start node not found: `x`");
        assert_eq!(serde_json::json!(warning)["severity"], "warning");
    }
}
