//! What is wrong with a file of a workflow, and where: one shape for all languages.
//!
//! A file is read to its end, and everything that was found is said at once, in the order of the places.

use std::fmt;

use serde::Serialize;

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used, but perhaps not as it is meant.
    Warning,
}

/// Something that is wrong at a place. Sorted, they stand in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Diagnostic {
    /// The file, as it is shown to people.
    pub path: String,
    /// The line, from 1.
    pub line: u64,
    /// The column in characters, from 1.
    pub column: u64,
    /// Which kind of mistake it is.
    pub code: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What is wrong there and what to do.
    pub message: String,
}

impl Diagnostic {
    /// Whether the file cannot be used for it.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The place, the code and the message, where whoever says it says how much it matters.
    #[must_use]
    pub fn told(&self) -> String {
        let Self { path, line, column, code, message, .. } = self;
        format!("{path}:{line}:{column}: {code} {message}")
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let warning = if self.is_error() { "" } else { "warning: " };
        let Self { path, line, column, code, message, .. } = self;
        write!(f, "{path}:{line}:{column}: {warning}{code} {message}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_as_compilers_say_it() {
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
        assert_eq!(warning.told(), "a.yaml:2:7: WF201 Start node not found: `x`");
        assert_eq!(serde_json::json!(warning)["severity"], "warning");
    }
}
