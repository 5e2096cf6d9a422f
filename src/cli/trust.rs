//! `raymond trust`: the folders that may do more than prompt.

use std::path::Path;

use serde_json::json;

use super::args::trust::TrustArgs;
use super::exit::{Error, Exit};
use super::{output, person};
use crate::language::graph::vocabulary::Vocabulary;
use crate::runtime::trust::{ExaminedFolder, examine, folder_name};
use crate::runtime::{Workflow, place, settings_of};
use crate::store::trust::{self, TrustOrigin, TrustedFolder};
use crate::store::user_state::UserState;

/// `raymond trust`
///
/// # Errors
/// [`Error`] if there is no such workflow, or what is trusted cannot be read or kept.
pub fn trust(args: &TrustArgs) -> Result<Exit, Error> {
    let state = place::user_state()?;
    if !(args.list || args.show) {
        person::must_act("say what is trusted")?;
    }
    let Some(path) = &args.path else { return list(&state, args.json) };
    if args.remove {
        return remove(&state, path);
    }
    let root = place::root(&args.dir.dir)?;
    let workflow = Workflow::open(path)?;
    let examined = examine(&root, &workflow, &settings_of(&workflow), &Vocabulary::new(), None)?;
    if args.json {
        print_json(&examined, args.show)?;
    } else {
        output::print(
            &(examined.lines().join("\n") + if examined.requests.is_empty() { "" } else { "\n" }),
        )?;
    }
    if args.show {
        return Ok(Exit::Success);
    }
    examined.remember(&state, TrustOrigin::Command)?;
    let folder = &examined.folder;
    output::tell(&if examined.requests.is_empty() {
        format!("{folder} is trusted; it asks for nothing but prompts")
    } else {
        format!("{folder} is trusted as it is; take that back: raymond trust --remove {folder}")
    });
    Ok(Exit::Success)
}

fn print_json(examined: &ExaminedFolder, only_shown: bool) -> Result<Exit, Error> {
    let request = |one: &crate::language::privileges::PrivilegeRequest| {
        json!({
            "path": one.file,
            "line": one.place.line,
            "column": one.place.column,
            "privilege": one.privilege.name(),
            "purpose": one.purpose,
        })
    };
    let requests: Vec<_> = examined.requests.iter().map(request).collect();
    output::print_json(&json!({
        "folder": examined.folder,
        "trusted": !only_shown,
        "requests": requests,
    }))
}

fn remove(state: &UserState, path: &Path) -> Result<Exit, Error> {
    let folder = if path.is_file() { path.parent().unwrap_or(path) } else { path };
    let folder = folder_name(folder);
    output::tell(&if trust::forget(state, &folder)? {
        format!("{folder} is trusted no longer")
    } else {
        format!("{folder} was not trusted; `raymond trust --list` shows the folders that are")
    });
    Ok(Exit::Success)
}

fn list(state: &UserState, json: bool) -> Result<Exit, Error> {
    let (folders, unproven) = trust::list(state)?;
    for error in unproven {
        output::warn(&error.to_string());
    }
    if json {
        return output::print_json(&folders);
    }
    if folders.is_empty() {
        output::tell("no folder is trusted");
    }
    let row = |one: &TrustedFolder| {
        vec![one.folder.clone(), one.at.to_string(), one.origin.meaning().to_owned()]
    };
    output::print(&output::table(&folders.iter().map(row).collect::<Vec<_>>()))
}
