//! `raymond signal`: asserts or retracts a fact, for a person, a script or an agent in its turn.

use serde_json::json;

use super::answer::from_stdin;
use super::args::facts::SignalArgs;
use super::exit::{CliExitCode, Error};
use super::{output, person};
use crate::actor::clock::now;
use crate::domain::fact::Fact;
use crate::domain::printable::one_line;
use crate::process::ancestry::ActingAgent;
use crate::runtime::directories;
use crate::store::dataspace::{Dataspace, FactStatement};

/// Runs `raymond signal`.
///
/// # Errors
/// [`Error::Store`] if the fact is invalid, or cannot be stored.
pub fn signal(args: &SignalArgs) -> Result<CliExitCode, Error> {
    let space = Dataspace::of(&args.dir.real_root()?).with_key(&directories::user_state()?.key()?);
    let (label, key) = (args.label.as_str(), args.key.as_str());
    if args.retract {
        let changed = space.retract(label, key, None)?;
        return tell(args, changed, None);
    }
    let value = match args.value.as_deref() {
        Some("-") => from_stdin("read the value from")?,
        value => value.unwrap_or_default().to_owned(),
    };
    let source = source();
    let statement = FactStatement { label, key, value: &value, source: &source, at: now() };
    let assertion = space.assert(statement, None)?;
    tell(args, assertion.is_new, assertion.fact.as_ref())
}

fn tell(args: &SignalArgs, changed: bool, fact: Option<&Fact>) -> Result<CliExitCode, Error> {
    let SignalArgs { label, key, json, .. } = args;
    if *json {
        let value = json!({ "label": label, "key": key, "changed": changed, "fact": fact });
        return output::print_json(&value);
    }
    let name = one_line(&format!("{label} {key}"));
    let text = match (fact, changed) {
        (Some(fact), true) => format!("{name} is asserted ({})\n", fact.seq),
        (Some(fact), false) => format!("{name} is asserted already ({})\n", fact.seq),
        (None, true) => format!("{name} is retracted\n"),
        (None, false) => format!("{name} is not asserted; nothing to retract\n"),
    };
    output::print(&text)
}

/// Returns the source of a fact: the acting agent, the run of the environment, or `signal`.
fn source() -> String {
    if let Some(ActingAgent { run, agent }) = person::acting_agent() {
        return format!("{run}/{agent}");
    }
    let run = std::env::var("RAYMOND_RUN").ok().filter(|run| !run.is_empty());
    run.unwrap_or_else(|| "signal".to_owned())
}
