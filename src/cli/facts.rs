//! `raymond facts`: the facts that hold in a directory, or those a run has seen; and the end of old ones.

use super::args::NamedRunArgs;
use super::args::readers::FactsArgs;
use super::exit::{CliExitCode, Error};
use super::{engine, output, settings, table};
use crate::actor::context::now;
use crate::domain::fact::Fact;
use crate::domain::id::RunId;
use crate::domain::time::millis;
use crate::domain::tool_call::one_line;
use crate::store::dataspace::FactListing;
use crate::store::layout::RunsRoot;
use crate::store::view::load_view;

/// Runs `raymond facts`.
///
/// # Errors
/// [`Error::Store`] if the directory cannot be read, or there is no such run.
pub fn facts(args: &FactsArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.real_root()?;
    if args.prune {
        return prune(args, &root);
    }
    let named = NamedRunArgs { run: args.run.clone(), last: args.last };
    let is_named = named.run.is_some() || named.last;
    let run = is_named.then(|| settings::chosen(&named, &root)).transpose()?;
    let mut listing = match &run {
        Some(run) => {
            let facts = load_view(&root, run)?.run.facts.all().collect();
            FactListing { facts, warnings: Vec::new() }
        }
        None => engine::dataspace(&args.dir, &root)?.facts()?,
    };
    if let Some(label) = &args.label {
        listing.facts.retain(|fact| fact.label == *label);
    }
    for warning in &listing.warnings {
        output::warn(warning);
    }
    if args.json {
        return output::print_json(&listing.facts);
    }
    if listing.facts.is_empty() {
        output::tell(&nothing(run.as_ref(), args.label.as_deref()));
        return Ok(CliExitCode::Success);
    }
    let mut rows = vec![["label", "key", "value", "source", "seq"].map(str::to_owned).to_vec()];
    rows.extend(listing.facts.iter().map(row));
    output::print(&table::text(&rows))
}

/// Retracts the facts of a label, of a run and of an age: those that fit all that is given.
fn prune(args: &FactsArgs, root: &RunsRoot) -> Result<CliExitCode, Error> {
    if args.label.is_none() && args.run.is_none() && !args.last && args.older_than.is_none() {
        let why = "say which facts to retract: --label LABEL, --older-than DURATION, or a run";
        return Err(Error::Usage(why.to_owned()));
    }
    let age = args.older_than.as_deref().map(millis).transpose();
    let age = age.map_err(|why| Error::Usage(format!("--older-than: {why}")))?;
    let run = match (&args.run, args.last) {
        // The directory of the run may be gone.
        (Some(run), _) if !root.run(run).path().is_dir() => Some(run.clone()),
        (None, false) => None,
        (run, last) => Some(settings::chosen(&NamedRunArgs { run: run.clone(), last }, root)?),
    };
    let space = engine::dataspace(&args.dir, root)?;
    let FactListing { facts, warnings } = space.facts()?;
    for warning in &warnings {
        output::warn(warning);
    }
    let is_chosen = |fact: &Fact| {
        args.label.as_ref().is_none_or(|label| fact.label == *label)
            && age.is_none_or(|age| fact.at.plus(age) <= now())
            && run.as_ref().is_none_or(|run| is_of(fact, run))
    };
    let mut pruned = Vec::new();
    for fact in facts.into_iter().filter(is_chosen) {
        if space.retract(&fact.label, &fact.key, None)? {
            pruned.push(fact);
        }
    }
    if args.json {
        return output::print_json(&pruned);
    }
    let what = if pruned.len() == 1 { "fact is" } else { "facts are" };
    output::print(&format!("{} {what} retracted\n", pruned.len()))
}

/// Returns whether a fact has a run as its key, or was asserted by it.
fn is_of(fact: &Fact, run: &RunId) -> bool {
    let source = fact.source.split('/').next().unwrap_or_default();
    fact.key == run.as_str() || source == run.as_str()
}

fn row(fact: &Fact) -> Vec<String> {
    let texts = [&fact.label, &fact.key, &fact.value, &fact.source];
    let mut row: Vec<String> = texts.map(|text| one_line(text)).into();
    row.push(fact.seq.to_string());
    row
}

fn nothing(run: Option<&RunId>, label: Option<&str>) -> String {
    let of_label = label.map(|label| format!(" of the label {label}"));
    let of_label = of_label.unwrap_or_default();
    match run {
        Some(run) => format!(
            "{run} has seen no current facts{of_label}; a live run sees the facts that its program reads; `raymond workflow watch {run}` also shows those that were taken or retracted"
        ),
        None => format!("no facts{of_label}; assert one: raymond signal LABEL --key KEY"),
    }
}
