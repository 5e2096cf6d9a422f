//! `raymond check`: reports all errors of a workflow, without running it.
//!
//! The workflow that a command inspects without running it: a folder, a prompt of it, a graph, or a program.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use console::style;
use serde_json::json;

use crate::cli::args::workflows::CheckArgs;
use crate::cli::exit::{CliExitCode, Error};
use crate::cli::output;
use crate::cli::target::{refuse_cases, similar_path};
use crate::cli::test::case_mistakes;
use crate::domain::id::{StateKind, StateName};
use crate::domain::permission::{RunPermission, StarterConsent};
use crate::domain::printable::{printable, printable_line};
use crate::language::diagnostic::{Diagnostic, Severity, excerpt_in};
use crate::language::graph::profile::GraphProfile;
use crate::language::graph::vocabulary::GraphVocabulary;
use crate::language::prompt::implied_policy::ImpliedPolicy;
use crate::language::prompt::workflow_map::FolderGraph;
use crate::language::prompt::{check, step};
use crate::language::source::WorkflowSource;
use crate::language::turn_options::HINT_CODES;
use crate::plain_file::replace::FileReplacement;
use crate::runtime::check::{has_gateway, missing_program, stray_manifest};
use crate::runtime::error::WorkflowErrors;
use crate::runtime::workflow::folder_within_root;
use crate::store::dataspace::Dataspace;
use crate::store::workflow::WorkflowDir;
use crate::{plain_file, runtime};

/// Runs `raymond check`.
///
/// # Errors
/// [`Error`] if there is nothing to check, or the findings cannot be printed.
pub fn check(args: &CheckArgs) -> Result<CliExitCode, Error> {
    refuse_cases(&args.path)?;
    let mut subject = InspectedWorkflow::open(&args.path)?;
    let defined = Dataspace::of(&args.dir.root()).all_defined()?.defined;
    subject.scope = subject.scope.with_defined_programs(defined.into_iter().map(|one| one.name));
    let graphs = subject.graphs(args.profile.into());
    let consent = StarterConsent {
        tools: Vec::new(),
        every_state: args.allow_tools.clone(),
        trusts_workflow: args.trust,
        widest_mode: args.permission_mode.clone().map(RunPermission::Mode),
    };
    let mut findings = check::check(check::CheckSubject {
        source: &subject.scope,
        entry: subject.entry.as_ref(),
        variables: &args.variables,
        consent: &consent,
        graphs: &graphs,
    });
    if subject.entry.is_none() && !findings.diagnostics.iter().any(Diagnostic::is_error) {
        findings.diagnostics.extend(case_mistakes(&args.path));
    }
    findings.diagnostics.extend(stray_manifest(subject.scope.root()));
    let missing: Vec<Diagnostic> =
        findings.diagnostics.iter().filter_map(missing_program).collect();
    findings.diagnostics.extend(missing);
    findings.diagnostics.retain(|found| !(HINT_CODES.contains(&found.code) && has_gateway()));
    let counts = SeverityCounts::of(&findings.diagnostics);
    let is_valid = counts.errors == 0 && !(args.strict && counts.warnings > 0);
    findings.diagnostics.retain(|found| args.level.shows(found));
    if args.json {
        let found = &findings.diagnostics;
        output::print_json(&json!({ "valid": is_valid, "diagnostics": found }))?;
    } else {
        output::print_styled(&findings.diagnostics.iter().fold(
            String::new(),
            |mut text, found| {
                let _ = writeln!(text, "{}", line(found));
                if let Some(excerpt) = excerpt_in(found, &subject.scope) {
                    let lines = printable(&excerpt).replace('\n', "\n  ");
                    let _ = writeln!(text, "  {lines}");
                }
                text
            },
        ))?;
        output::tell(&closing(&InspectedWorkflow::title(&args.path), findings.files, counts));
    }
    if args.write {
        write_policies(&findings.implied, &subject.scope)?;
    } else if !args.json && !findings.implied.is_empty() {
        let path = args.path.display();
        for policy in &findings.implied {
            let lines = policy.lines("  ");
            output::tell(&format!(
                "{} has no policy; its text implies:\n{}",
                policy.state,
                lines.trim_end()
            ));
        }
        output::tell(&format!(
            "`raymond check {path} --write` writes that into the frontmatter: then an agent whose reply cannot be used is reminded instead of failing"
        ));
    }
    Ok(if is_valid { CliExitCode::Success } else { CliExitCode::Invalid })
}

/// Writes policies into the files of their states. A file that is not a plain one of the folder stays as it is.
fn write_policies(policies: &[ImpliedPolicy], scope: &WorkflowDir) -> Result<(), Error> {
    for policy in policies {
        let path = scope.root().join(policy.state.as_str());
        let io = |doing| {
            let path = path.clone();
            move |error| Error::Io { doing, path, error }
        };
        let text = plain_file::text(&path).map_err(io("read"))?;
        match policy.written_into(&text) {
            Some(written) => {
                let permissions = fs::metadata(&path).map_err(io("read"))?.permissions();
                let file = FileReplacement::of(&path).with_permissions(permissions);
                file.write(written.as_bytes()).map_err(|failed| io("write")(failed.error))?;
                output::tell(&format!("{}: wrote the policy", scope.path(&policy.state)));
            }
            None => output::tell(&format!(
                "{}: not changed; add the policy by hand",
                scope.path(&policy.state)
            )),
        }
    }
    Ok(())
}

/// The number of errors and of warnings, whether they are shown or not.
#[derive(Clone, Copy)]
struct SeverityCounts {
    errors: usize,
    warnings: usize,
}

impl SeverityCounts {
    fn of(found: &[Diagnostic]) -> Self {
        let count = |severity| found.iter().filter(|one| one.severity == severity).count();
        Self { errors: count(Severity::Error), warnings: count(Severity::Warning) }
    }
}

/// Prints the errors that kept a workflow from being started to stderr, as [`check`](check()) prints them.
pub(super) fn complain_of(found: &WorkflowErrors) {
    for (error, excerpt) in found.errors.iter().zip(&found.excerpts) {
        let excerpt = excerpt.as_ref().map(|excerpt| format!("\n{excerpt}"));
        output::tell(&format!("{error}{}", excerpt.unwrap_or_default()));
    }
    output::complain(&found.advice());
}

/// Formats a diagnostic, in colours on a terminal.
fn line(found: &Diagnostic) -> String {
    let Diagnostic { path, line, column, code, message, .. } = found;
    let place = style(format!("{}:{line}:{column}:", printable_line(path))).bold();
    let message = printable_line(&message.replace('\n', " "));
    match found.severity {
        Severity::Error => format!("{place} {} {message}", style(code).red().bold()),
        Severity::Warning => {
            format!(
                "{place} {} {} {message}",
                style("warning:").yellow().bold(),
                style(code).yellow()
            )
        }
        Severity::Info => format!("{place} {} {} {message}", style("info:").bold(), style(code)),
    }
}

/// Returns the closing line: the number of errors, warnings and files.
fn closing(title: &str, files: usize, counts: SeverityCounts) -> String {
    let count = |number: usize, what: &str| match number {
        0 => None,
        1 => Some(format!("1 {what}")),
        _ => Some(format!("{number} {what}s")),
    };
    let files = count(files, "file");
    let found: Vec<String> = [count(counts.errors, "error"), count(counts.warnings, "warning")]
        .into_iter()
        .flatten()
        .collect();
    match (found.join(", "), files) {
        (found, None) => format!("{title}: {found}"),
        (found, Some(files)) if found.is_empty() => format!("{title}: {files}, no problems"),
        (found, Some(files)) => format!("{found} in {files}"),
    }
}

/// The workflow that is inspected.
pub(super) struct InspectedWorkflow {
    /// Its folder, displayed as it was given.
    pub(super) scope: WorkflowDir,
    /// The prompt, the graph or the program; `None` for the whole folder.
    pub(super) entry: Option<StateName>,
}

impl InspectedWorkflow {
    /// Opens the workflow that a path names. Its documents are looked for in the repository that it is in, too: the
    /// result does not depend on the current directory.
    ///
    /// # Errors
    /// [`Error`] if there is none, or the path is no workflow.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let scope = |folder: &Path| -> Result<WorkflowDir, Error> {
            let scope = folder_within_root(folder)?;
            let repository = scope.root().ancestors().find(|above| above.join(".git").exists());
            let repository = repository.map(Path::to_owned);
            let opened = repository.map_or(Ok(scope.clone()), |root| scope.with_workspace(&root));
            let (doing, path) = ("open the directory", folder.to_owned());
            let scope = opened.map_err(|error| Error::Io { doing, path, error })?;
            Ok(scope.shown_as(folder).read_once())
        };
        if path.is_dir() {
            return Ok(Self { scope: scope(path)?, entry: None });
        }
        if path.symlink_metadata().is_err() {
            return Err(match similar_path(path) {
                Some(similar) => Error::Usage(format!(
                    "{}: there is no such file or folder; did you mean {}?",
                    path.display(),
                    similar.display()
                )),
                None => runtime::Error::NoWorkflow { path: path.to_owned() }.into(),
            });
        }
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let entry = StateName::parse(name)?;
        if StateKind::of(&entry).is_none() {
            let path = path.display().to_string();
            return Err(runtime::Error::from(step::Error::NotAPrompt { path }).into());
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Ok(Self { scope: scope(folder.unwrap_or(Path::new(".")))?, entry: Some(entry) })
    }

    /// Returns a reader of its graphs.
    pub(super) fn graphs(
        &self,
        profile: GraphProfile,
    ) -> impl Fn(&dyn WorkflowSource, &StateName) -> FolderGraph {
        let vocabulary = GraphVocabulary::default();
        move |source: &dyn WorkflowSource, name: &StateName| {
            runtime::workflow::read_graph(
                (&self.scope, source),
                self.entry.as_ref(),
                &vocabulary,
                profile,
                name,
            )
        }
    }

    /// Returns its title: the path that was given.
    pub(super) fn title(path: &Path) -> String {
        let whole: PathBuf = path.components().collect();
        whole.display().to_string()
    }
}
