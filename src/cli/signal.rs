//! `raymond signal`: asserts or retracts a fact, for a person, a script or an agent in its turn.

use serde_json::json;

use crate::actor::context::now;
use crate::cli::answer::from_stdin;
use crate::cli::args::facts::SignalArgs;
use crate::cli::exit::{CliExitCode, Error};
use crate::cli::list::all;
use crate::cli::{engine, output, person};
use crate::domain::fact::FactSelection;
use crate::domain::printable::one_line;
use crate::language::hint::closest;
use crate::language::program::checked_program::Program;
use crate::language::program::read::read;
use crate::language::source::WorkflowSource;
use crate::process::ancestry::ActingAgent;
use crate::runtime::{Workflow, run_facts};
use crate::store::dataspace::{
    AppendOutcome, AssertionOutcome, Dataspace, DefinedProgram, FactStatement,
};
use crate::store::layout::RunsRoot;

/// The number of characters that are shown of a value that is replaced.
const MAX_SHOWN_CHARS: usize = 60;

/// Runs `raymond signal`.
///
/// # Errors
/// [`Error::Store`] if the fact is invalid, or cannot be stored.
pub fn signal(args: &SignalArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.real_root()?;
    let space = engine::dataspace(&args.dir, &root)?;
    let (label, key) = (args.label.as_str(), args.key.as_str());
    if args.retract {
        let is_new = space.retract(label, key, None)?;
        let nothing = AssertionOutcome { fact: None, is_new, replaced: None, dropped: 0 };
        return tell(args, &nothing, None);
    }
    let value = match args.value.as_deref() {
        Some("-") => from_stdin("read the value from")?,
        value => value.unwrap_or_default().to_owned(),
    };
    let source = source();
    let hint = |is_by_person: bool, root: &RunsRoot, space: &Dataspace| {
        // An agent asserts many facts, and reads no hints.
        let hint = is_by_person.then(|| hint(root, space, (label, key))).flatten();
        if let Some(hint) = hint.as_deref().filter(|_| !args.json) {
            output::tell(hint);
        }
        hint
    };
    let is_by_person = source == "signal";
    let statement = FactStatement { label, key, value: &value, source: &source, at: now() };
    if args.append {
        let appended = space.append(statement)?;
        return tell_appended(args, &appended, hint(is_by_person, &root, &space).as_deref());
    }
    let assertion = space.assert(statement, None)?;
    tell(args, &assertion, hint(is_by_person, &root, &space).as_deref())
}

fn tell_appended(
    args: &SignalArgs,
    appended: &AppendOutcome,
    hint: Option<&str>,
) -> Result<CliExitCode, Error> {
    let (SignalArgs { label, key, json, .. }, AppendOutcome { fact, before }) = (args, appended);
    if *json {
        let value = json!({ "label": label, "key": key, "changed": true, "fact": fact, "replaced": null, "before": before, "hint": hint });
        return output::print_json(&value);
    }
    let name = one_line(&format!("{label} {key}"));
    let text = match before {
        0 => format!("{name} is asserted ({})\n", fact.seq),
        1 => format!("{name} is appended; one value is before it\n"),
        many => format!("{name} is appended; {many} values are before it\n"),
    };
    output::print(&text)
}

fn tell(
    args: &SignalArgs,
    assertion: &AssertionOutcome,
    hint: Option<&str>,
) -> Result<CliExitCode, Error> {
    let SignalArgs { label, key, json, .. } = args;
    let AssertionOutcome { fact, is_new: changed, replaced, dropped } = assertion;
    if *json {
        let value = json!({ "label": label, "key": key, "changed": changed, "fact": fact, "replaced": replaced, "hint": hint });
        return output::print_json(&value);
    }
    let name = one_line(&format!("{label} {key}"));
    let text = match (fact, changed) {
        (Some(fact), true) => {
            let more =
                if *dropped > 0 { format!(" and {dropped} behind it") } else { String::new() };
            let instead = replaced.as_ref().map_or(String::new(), |old| {
                let value = shown(&old.value);
                format!("; it replaces {value}{more}, which no program had taken ({})", old.seq)
            });
            format!("{name} is asserted ({}){instead}\n", fact.seq)
        }
        (Some(fact), false) => format!("{name} is asserted already ({})\n", fact.seq),
        (None, true) => format!("{name} is retracted\n"),
        (None, false) => format!("{name} is not asserted; nothing to retract\n"),
    };
    output::print(&text)
}

/// Returns a value on one line, cut if it is long.
fn shown(value: &str) -> String {
    if value.is_empty() {
        return "the empty value".to_owned();
    }
    let mut shown: String = one_line(value).chars().take(MAX_SHOWN_CHARS + 1).collect();
    if let Some((cut, _)) = shown.char_indices().nth(MAX_SHOWN_CHARS) {
        shown.truncate(cut);
        shown.push('…');
    }
    format!("`{shown}`")
}

/// Returns the source of a fact: the acting agent, the run of the environment, or `signal`.
fn source() -> String {
    if let Some(ActingAgent { run, agent, .. }) = person::acting_agent() {
        return format!("{run}/{agent}");
    }
    let run = std::env::var("RAYMOND_RUN").ok().filter(|run| !run.is_empty());
    run.unwrap_or_else(|| "signal".to_owned())
}

/// The facts that somebody looks at.
#[derive(Default)]
struct SoughtByPrograms {
    /// Those of unfinished runs.
    of_runs: FactSelection,
    /// The labels of programs that are defined, or that a run may look at later.
    labels: Vec<String>,
}

/// Returns a hint about a fact that no unfinished run and no defined program looks at; `None` if one does.
pub(super) fn hint(
    root: &RunsRoot,
    space: &Dataspace,
    (label, key): (&str, &str),
) -> Option<String> {
    let sought = sought(root, space);
    let SoughtByPrograms { of_runs, labels } = &sought;
    if of_runs.has_key(label, key) {
        return None;
    }
    let shown = one_line(label);
    let meant = |closest: Option<&str>| {
        closest.map_or(String::new(), |meant| format!("; did you mean {}?", one_line(meant)))
    };
    if let Some(keys) = of_runs.keys_of(label) {
        let meant = closest(key, keys.iter().copied());
        let meant = meant.or_else(|| keys.first().copied().filter(|_| keys.len() == 1));
        let meant = meant
            .map_or(String::new(), |meant| format!("; did you mean --key {}?", one_line(meant)));
        let key = if key.is_empty() {
            "the empty key".to_owned()
        } else {
            format!("the key {}", one_line(key))
        };
        return Some(format!("no unfinished run looks at the fact {shown} of {key} now{meant}"));
    }
    if labels.iter().any(|own| own == label) {
        return None;
    }
    if of_runs.is_empty() && labels.is_empty() {
        return Some(format!(
            "nobody waits for {shown}: no unfinished run and no defined program looks at any fact"
        ));
    }
    let known = of_runs.labels().chain(labels.iter().map(String::as_str));
    let meant = meant(closest(label, known));
    Some(format!(
        "no unfinished run and no defined program looks at facts of the label {shown}{meant}"
    ))
}

fn sought(root: &RunsRoot, space: &Dataspace) -> SoughtByPrograms {
    let mut sought = SoughtByPrograms::default();
    for run in all(root).unwrap_or_default() {
        let Ok(view) = run.view else { continue };
        if view.run.can_resume() {
            sought.of_runs.extend(&run_facts::sought(&view.run));
            sought.labels.extend(view.run.definitions.values().flat_map(|own| own.labels.clone()));
        }
    }
    for defined in space.all_defined().unwrap_or_default().defined {
        sought.labels.extend(program_of(&defined).map(|own| own.labels).unwrap_or_default());
    }
    sought
}

fn program_of(defined: &DefinedProgram) -> Option<Program> {
    let Workflow { scope, entry, .. } = Workflow::kept(&defined.file, defined.text.clone()).ok()?;
    read(&scope.path(&entry), &defined.text, &scope).program
}
