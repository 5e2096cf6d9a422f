//! The action `branch`: a run that shares the records of another up to a place.

use std::ffi::OsString;

use serde_json::{Value, json};
use uuid::Uuid;

use super::super::local_commands::{LocalCommands, run_in, text_in};
use crate::cli::exit::Error;
use crate::cli::{background, engine};
use crate::store::view::load_view;

/// Branches `run` off `at` (a record such as 120, or a step such as main.2#5) in the background.
pub(super) fn branch(commands: &LocalCommands, body: &Value) -> Result<Value, Error> {
    let (root, id) = (commands.root(), run_in(body)?);
    engine::must_be_named(commands.dir(), root, &id)?;
    load_view(root, &id)?;
    let at = text_in(body, "at")?;
    let new = id.with_suffix(&format!("-b{}", &Uuid::new_v4().simple().to_string()[..6]));
    let mut words: Vec<OsString> = vec!["branch".into(), id.as_str().into()];
    // A value that begins with a dash is no option.
    words.extend([format!("--at={at}").into(), "--id".into(), new.as_str().into()]);
    background::new_in_background(root, &new, &words)?;
    Ok(json!({ "run": new }))
}
