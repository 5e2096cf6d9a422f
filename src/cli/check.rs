//! `raymond check`, `graph` and `rules`: the errors of a workflow, its drawing, and the rules from a run's approvals.
//!
//! `raymond check` reports all errors of a workflow, without running it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use console::style;
use serde_json::json;

use super::args::SingleRunArgs;
use super::args::workflows::{DrawingFormat, GraphArgs};
use super::{settings, table};
use crate::cli::args::workflows::CheckArgs;
use crate::cli::exit::{CliExitCode, Error};
use crate::cli::output;
use crate::cli::target::{refuse_cases, similar_path};
use crate::cli::test::case_mistakes;
use crate::domain::id::{StateKind, StateName};
use crate::domain::privilege::{RunPermission, StarterConsent};
use crate::domain::tool_call::{one_line, printable, printable_line};
use crate::domain::views::ApprovalRuleRow;
use crate::language::diagnostic::{Diagnostic, Severity, excerpt_in, shown};
use crate::language::drawing::{dot, mermaid, svg};
use crate::language::flow::Flow;
use crate::language::graph::profile::GraphProfile;
use crate::language::graph::vocabulary::GraphVocabulary;
use crate::language::prompt::check::beginning;
use crate::language::prompt::implied_policy::ImpliedPolicy;
use crate::language::prompt::workflow_map::{
    FolderGraph, FolderState, WorkflowMap, WorkflowMapOptions,
};
use crate::language::prompt::{check, step};
use crate::language::source::WorkflowSource;
use crate::language::turn_options::HINT_CODES;
use crate::language::{graph, program};
use crate::runtime::check::{has_gateway, missing_program, stray_manifest};
use crate::runtime::error::WorkflowErrors;
use crate::runtime::workflow::folder_within_root;
use crate::store::dataspace::Dataspace;
use crate::store::plain_file::FileReplacement;
use crate::store::view::load_view;
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
    subject.scope =
        subject.scope.with_defined_programs(defined.into_iter().map(|program| program.name));
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
        let text = plain_file::text(&path).map_err(Error::io("read", &path))?;
        match policy.written_into(&text) {
            Some(written) => {
                let metadata = fs::metadata(&path).map_err(Error::io("read", &path))?;
                let file = FileReplacement::of(&path).with_permissions(metadata.permissions());
                let wrote = file.write(written.as_bytes()).map_err(|failed| failed.error);
                wrote.map_err(Error::io("write", &path))?;
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
        let count = |severity| found.iter().filter(|found| found.severity == severity).count();
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
    let count = |number, what| (number > 0).then(|| output::counted(number, what));
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

/// The workflow that a command inspects without running it: a folder, a prompt of it, a graph, or a program.
pub(super) struct InspectedWorkflow {
    /// Its folder, displayed as it was given.
    pub(super) scope: WorkflowDir,
    /// The prompt, the graph or the program; `None` for the whole folder.
    pub(super) entry: Option<StateName>,
}

impl InspectedWorkflow {
    /// Opens the workflow at a path. Its documents are also looked up in the repository that contains it, so the result
    /// does not depend on the current directory.
    ///
    /// # Errors
    /// [`Error`] if nothing is there, or the path is not a workflow.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let scope = |folder: &Path| -> Result<WorkflowDir, Error> {
            let scope = folder_within_root(folder)?;
            let repository = scope.root().ancestors().find(|above| above.join(".git").exists());
            let repository = repository.map(Path::to_owned);
            let opened = repository.map_or(Ok(scope.clone()), |root| scope.with_workspace(&root));
            let scope = opened.map_err(Error::io("open the directory", folder))?;
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
                &self.scope,
                source,
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

// `raymond graph`: draws a workflow.

/// Runs `raymond graph`.
///
/// # Errors
/// [`Error`] if there is nothing to draw, or the picture cannot be written.
pub fn graph(args: &GraphArgs) -> Result<CliExitCode, Error> {
    let format = args.format().map_err(Error::Usage)?;
    let subject = InspectedWorkflow::open(&args.path)?;
    let drawing = match draw(&subject, &InspectedWorkflow::title(&args.path)) {
        Ok(drawing) => drawing,
        Err(reasons) => {
            for reason in &reasons {
                output::complain(reason);
            }
            return Ok(CliExitCode::Invalid);
        }
    };
    // No picture of many more nodes can be read, and Mermaid draws 500 edges.
    let drawing = drawing.folded(usize::try_from(args.max_nodes).unwrap_or(usize::MAX));
    if drawing.hidden > 0 {
        output::tell(&format!(
            "{}: the picture has the {} nodes next to the start, and one for the other {}; --max-nodes shows more",
            drawing.title, args.max_nodes, drawing.hidden
        ));
    }
    let text = match format {
        DrawingFormat::Mermaid => mermaid::write(&drawing),
        DrawingFormat::Dot => dot::write(&drawing),
        DrawingFormat::Svg => svg::write(&drawing),
    };
    match &args.output {
        Some(file) => std::fs::write(file, text)
            .map(|()| CliExitCode::Success)
            .map_err(Error::io("write the picture", file)),
        None => output::print_exactly(&text),
    }
}

/// Draws a workflow, or returns the reasons against it.
pub(super) fn draw(subject: &InspectedWorkflow, title: &str) -> Result<Flow, Vec<String>> {
    let entry = beginning(&subject.scope, subject.entry.as_ref())
        .map_err(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let graphs = subject.graphs(GraphProfile::Lenient);
    let reach = WorkflowMapOptions { by_text: true, max_states: usize::MAX, graphs: Some(&graphs) };
    let workflow_map = WorkflowMap::of(&entry, &subject.scope, reach);
    let state = workflow_map.states.get(&entry);
    match state {
        Some(FolderState::Graph(_) | FolderState::Program(_)) => {
            let graph =
                state.and_then(FolderState::graph).map(|graph| graph::flow::flow(graph, title));
            let program = state.and_then(FolderState::program);
            let flow = graph.or_else(|| program.map(|program| program::flow::flow(program, title)));
            flow.ok_or_else(|| {
                let found = state.map_or(&[][..], FolderState::diagnostics).iter();
                // A finding in a program is shown with its line.
                let text = match state {
                    Some(FolderState::Program(_)) => subject.scope.read(&entry).unwrap_or_default(),
                    _ => String::new(),
                };
                found.filter(|found| found.is_error()).map(|found| shown(found, &text)).collect()
            })
        }
        Some(FolderState::Unreadable(error)) => Err(vec![error.to_string()]),
        _ => Ok(workflow_map.flow(title)),
    }
}

// `raymond rules`: the rules that were given with answers to approvals of a run.

/// Runs `raymond rules`.
///
/// # Errors
/// [`Error::Store`] if there is no such run.
pub fn rules(args: &SingleRunArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.root();
    let id = settings::chosen(&args.named, &root)?;
    let run = load_view(&root, &id)?.run;
    let rules: Vec<_> = run.approval_rules.iter().map(ApprovalRuleRow::from).collect();
    if args.json {
        return output::print_json(&json!({ "run": run.workflow_id, "rules": rules }));
    }
    if rules.is_empty() {
        output::tell(&format!(
            "no rule was given in {id}; allow-always, as an answer to a tool call that needs approval, gives one"
        ));
        return Ok(CliExitCode::Success);
    }
    let mut rows = vec![["rule", "in", "given with", "by"].map(str::to_owned).to_vec()];
    rows.extend(rules.iter().map(as_row));
    output::print(&table::text(&rows))
}

fn as_row(row: &ApprovalRuleRow<'_>) -> Vec<String> {
    vec![
        one_line(&row.rule),
        row.state.map_or("the run".to_owned(), ToString::to_string),
        row.approval.clone(),
        row.by.unwrap_or("a person").to_owned(),
    ]
}
