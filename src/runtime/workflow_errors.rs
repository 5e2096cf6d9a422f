//! The errors of a workflow that was not started because of them.

use crate::domain::id::StateName;
use crate::language::diagnostic::Diagnostic;
use crate::language::diagnostic::excerpt_in;
use crate::language::source::WorkflowSource;

/// The advice that a start gives beside that to mend the errors.
pub const NO_CHECK_ADVICE: &str = ", or start the workflow as it is: --no-check";

/// The errors of a workflow that was not started because of them.
#[derive(Debug, thiserror::Error)]
#[error("{}\n{}", .errors.iter().zip(.excerpts).map(|(error, excerpt)| with_excerpt(error.to_string(), excerpt.as_deref())).collect::<Vec<_>>().join("\n"), self.advice())]
pub struct WorkflowErrors {
    /// The path of the first state.
    pub(super) entry: String,
    /// The errors, in the order of the files.
    pub errors: Vec<Diagnostic>,
    /// The line of each that stands in a program, with a caret under the place.
    pub excerpts: Vec<Option<String>>,
    /// The files that these are the errors of.
    scope: RefusalScope,
}

/// The files whose errors stopped a run from being started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusalScope {
    /// All files that the first state leads to; the run may be started all the same.
    Workflow,
    /// All files that a state leads to which agents of a run continue with.
    Continued,
    /// The same, and a file that has to be readable.
    ContinuedWith(&'static str),
    /// The first state alone, which has to be readable.
    FirstState,
    /// A file that has to be readable, and all files that the first state leads to.
    WithRequired(&'static str),
}

impl WorkflowErrors {
    /// Returns the errors of the workflow that begins with `entry`, or `None` if there are none.
    pub(super) fn new(
        source: &dyn WorkflowSource,
        entry: &StateName,
        errors: Vec<Diagnostic>,
        scope: RefusalScope,
    ) -> Option<Self> {
        if errors.is_empty() {
            return None;
        }
        let excerpts = errors.iter().map(|one| excerpt_in(one, source)).collect();
        Some(Self { entry: source.path(entry), errors, excerpts, scope })
    }

    /// Returns the closing line: the number of errors, and what to do.
    pub fn advice(&self) -> String {
        let (errors, them) = match self.errors.len() {
            1 => ("an error".to_owned(), "it"),
            more => (format!("{more} errors"), "them"),
        };
        let entry = &self.entry;
        let (files, or_else) = match self.scope {
            RefusalScope::Workflow => {
                (format!("the files that {entry} leads to"), NO_CHECK_ADVICE.to_owned())
            }
            RefusalScope::Continued => (format!("the files that {entry} leads to"), String::new()),
            RefusalScope::ContinuedWith(file) => {
                (format!("{file} and the files that {entry} leads to"), String::new())
            }
            RefusalScope::FirstState => (
                entry.clone(),
                ": the first state of a workflow has to be readable, also with --no-check"
                    .to_owned(),
            ),
            RefusalScope::WithRequired(file) => (
                format!("{file} and the files that {entry} leads to"),
                format!(": {file} has to be readable, also with --no-check"),
            ),
        };
        format!("{errors} in {files}, and nothing was started; fix {them}{or_else}")
    }
}

/// Returns the line of an error, followed by that of the program, if it has one.
fn with_excerpt(line: String, excerpt: Option<&str>) -> String {
    match excerpt {
        Some(excerpt) => format!("{line}\n  {}", excerpt.replace('\n', "\n  ")),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::diagnostic::Severity;

    #[test]
    fn advice_names_no_check_only_where_it_helps() {
        let found = |line| Diagnostic {
            path: "START.md".into(),
            line,
            column: 1,
            code: "RF002",
            severity: Severity::Error,
            message: "unknown key `modle`".into(),
        };
        let advice = |scope, errors: &[Diagnostic]| {
            let excerpts = vec![None; errors.len()];
            let errors = errors.to_vec();
            WorkflowErrors { entry: "START.md".into(), errors, excerpts, scope }.advice()
        };
        assert_eq!(
            advice(RefusalScope::Workflow, &[found(1), found(2)]),
            "2 errors in the files that START.md leads to, and nothing was started; fix them, or start the workflow as it is: --no-check"
        );
        assert_eq!(
            advice(RefusalScope::Continued, &[found(1)]),
            "an error in the files that START.md leads to, and nothing was started; fix it"
        );
        assert_eq!(
            advice(RefusalScope::FirstState, &[found(1)]),
            "an error in START.md, and nothing was started; fix it: the first state of a workflow has to be readable, also with --no-check"
        );
        assert_eq!(
            advice(RefusalScope::WithRequired("raymond.yaml"), &[found(1)]),
            "an error in raymond.yaml and the files that START.md leads to, and nothing was started; fix it: raymond.yaml has to be readable, also with --no-check"
        );
    }
}
