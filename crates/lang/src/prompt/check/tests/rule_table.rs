//! Tables of rules: folders, and what the check finds in them.

use super::*;

/// A rule: its name, the files of a folder, and what is found in them.
pub(super) type Rule =
    (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

fn found(files: &[(&str, &str)]) -> Vec<String> {
    let source = folder(files);
    let graphs = |_: &dyn WorkflowSource, _: &StateName| FolderGraph::default();
    let subject = CheckSubject {
        source: &source,
        entry: None,
        variables: &[],
        consent: &StarterConsent::default(),
        graphs: &graphs,
    };
    let line = |diagnostic: &Diagnostic| {
        let severity = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        };
        format!(
            "{}:{}:{} {severity} {}",
            diagnostic.path, diagnostic.line, diagnostic.column, diagnostic.code
        )
    };
    check(subject).diagnostics.iter().map(line).collect()
}

/// Checks that each rule of a table is found at its place with its severity, and that nothing else is.
pub(super) fn check_rules(rules: &[Rule]) {
    let wrong: Vec<String> = rules
        .iter()
        .filter_map(|(rule, files, expected)| {
            let found = found(files);
            (found != *expected).then(|| format!("{rule}: {found:?} instead of {expected:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
