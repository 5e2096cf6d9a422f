//! `raymond facts`: the facts that hold in a directory, or those a run has seen.

use super::args::NamedRunArgs;
use super::args::facts::FactsArgs;
use super::exit::{CliExitCode, Error};
use super::{output, run_choice};
use crate::domain::fact::Fact;
use crate::domain::id::RunId;
use crate::domain::printable::one_line;
use crate::runtime::directories;
use crate::store::dataspace::{Dataspace, FactListing};
use crate::store::view::load_view;

/// Runs `raymond facts`.
///
/// # Errors
/// [`Error::Store`] if the directory cannot be read, or there is no such run.
pub fn facts(args: &FactsArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.real_root()?;
    let named = NamedRunArgs { run: args.run.clone(), last: args.last };
    let is_named = named.run.is_some() || named.last;
    let run = is_named.then(|| run_choice::chosen(&named, &root)).transpose()?;
    let mut listing = match &run {
        Some(run) => {
            let facts = load_view(&root, run)?.run.facts.all().collect();
            FactListing { facts, warnings: Vec::new() }
        }
        None => Dataspace::of(&root).with_key(&directories::user_state()?.key()?).facts()?,
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
    let head = ["label", "key", "value", "source", "seq"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> =
        std::iter::once(head).chain(listing.facts.iter().map(row)).collect();
    output::print(&output::table(&rows))
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
        None => format!("there are no facts{of_label}; assert one: raymond signal LABEL --key KEY"),
    }
}
