//! `raymond trust`: the folders that may do more than prompt.

use std::path::Path;

use serde_json::json;

use super::exit::{CliExitCode, Error};
use super::{output, table};
use crate::cli::args::hosts::TrustArgs;
use crate::language::graph::vocabulary::GraphVocabulary;
use crate::language::privileges::PrivilegeRequest;
use crate::runtime::checked_workflow::CapturedWorkflow;
use crate::runtime::trust::{ExaminedFolder, examine, folder_name};
use crate::runtime::{Workflow, directories, settings_of};
use crate::store::trust::{self, FolderTrust, TrustOrigin, TrustedFolder};
use crate::store::user_state::UserState;

/// Runs `raymond trust`.
///
/// # Errors
/// [`Error`] if there is no such workflow, or the trust cannot be read or stored.
pub fn trust(args: &TrustArgs) -> Result<CliExitCode, Error> {
    let state = directories::user_state()?;
    let Some(path) = &args.path else { return list(&state, args.json) };
    if args.remove {
        return remove(&state, path);
    }
    let root = args.dir.real_root()?;
    let workflow = Workflow::open(path)?;
    let settings = settings_of(&workflow);
    let files = CapturedWorkflow::read(&root, workflow)?;
    let examined = examine(&files, &settings, &GraphVocabulary::new())?;
    let asks = !examined.requests.is_empty();
    if asks && !args.json {
        output::print(&(examined.lines().join("\n") + "\n"))?;
    }
    if asks && !args.show {
        examined.remember(&state, TrustOrigin::Command)?;
    }
    let (folder, trust) = (&examined.folder, examined.trust(&state)?);
    output::tell(&match &trust {
        _ if !asks => format!("{folder} only prompts, so it needs no trust"),
        FolderTrust::Trusted if !args.show => {
            format!("{folder} is trusted; to undo: raymond trust --remove {folder}")
        }
        trust => standing(folder, trust),
    });
    if args.json {
        return print_json(&examined, !asks || trust == FolderTrust::Trusted);
    }
    Ok(CliExitCode::Success)
}

/// Returns the trust of a folder as text for people.
fn standing(folder: &str, trust: &FolderTrust) -> String {
    match trust {
        FolderTrust::Trusted => format!("{folder} is trusted"),
        FolderTrust::Never => format!("{folder} is not trusted"),
        FolderTrust::OtherKey => format!("{folder} was trusted with another key"),
        FolderTrust::Reworded(files) => {
            format!("{folder} is trusted; only texts have changed since, in {}", files.join(", "))
        }
        FolderTrust::Lost(changes) if changes.is_empty() => {
            format!("{folder} was trusted, and has changed since")
        }
        FolderTrust::Lost(changes) => {
            format!("{folder} was trusted, and has changed since: {}", changes.join(", "))
        }
    }
}

fn print_json(examined: &ExaminedFolder, is_trusted: bool) -> Result<CliExitCode, Error> {
    let request = |request: &PrivilegeRequest| {
        json!({
            "path": request.file,
            "line": request.place.line,
            "column": request.place.column,
            "privilege": request.privilege.name(),
            "purpose": request.purpose,
        })
    };
    let requests: Vec<_> = examined.requests.iter().map(request).collect();
    output::print_json(&json!({
        "folder": examined.folder,
        "trusted": is_trusted,
        "requests": requests,
    }))
}

fn remove(state: &UserState, path: &Path) -> Result<CliExitCode, Error> {
    let folder = if path.is_file() { path.parent().unwrap_or(path) } else { path };
    let folder = folder_name(folder);
    output::tell(&if trust::forget(state, &folder)? {
        format!("{folder} is no longer trusted; runs that were started with that trust keep it")
    } else {
        format!("{folder} was not trusted; `raymond trust --list` shows the folders that are")
    });
    Ok(CliExitCode::Success)
}

fn list(state: &UserState, json: bool) -> Result<CliExitCode, Error> {
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
    let row = |trusted: &TrustedFolder| {
        let TrustedFolder { folder, at, origin, .. } = trusted;
        vec![folder.clone(), at.to_string(), origin.meaning().to_owned()]
    };
    output::print(&table::text(&folders.iter().map(row).collect::<Vec<_>>()))
}
