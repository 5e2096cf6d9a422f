//! From options to a run's settings: all of them for a new run, the given ones for one that goes on.

use std::path::{Path, PathBuf};

use super::args::{Answerer, Birth, Options, RunArgs};
use super::exit::Error;
use crate::domain::settings::{self, Permission, Settings, Supervision};

/// The settings of a new run.
///
/// # Errors
/// [`Error::Io`] if the directory to work in cannot be entered.
pub fn new(args: &RunArgs) -> Result<Settings, Error> {
    let birth = &args.birth;
    let cwd = birth.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
    let mut settings = Settings {
        cwd: directory(&cwd)?,
        variables: birth.variables.iter().cloned().collect(),
        answerer: match birth.agent {
            Some(Answerer::Scripted) => settings::Answerer::Scripted,
            Some(Answerer::Claude) | None => settings::Answerer::Claude,
        },
        ..Settings::default()
    };
    overlay(&args.options, &mut settings);
    Ok(settings)
}

/// The settings of a run that goes on: its own, and over them what was given now.
///
/// # Errors
/// [`Error::Usage`] for options that only a new run can take.
pub fn again(birth: &Birth, options: &Options, mut settings: Settings) -> Result<Settings, Error> {
    let fixed = [
        ("--id", birth.id.is_some()),
        ("--input", birth.input.is_some()),
        ("--var", !birth.variables.is_empty()),
        ("--cwd", birth.cwd.is_some()),
        ("--agent", birth.agent.is_some()),
    ];
    if let Some((option, _)) = fixed.into_iter().find(|(_, given)| *given) {
        return Err(Error::Usage(format!(
            "{option} is fixed when a run starts, and this one goes on; leave it out, or start a new run from its folder"
        )));
    }
    overlay(options, &mut settings);
    Ok(settings)
}

fn overlay(args: &Options, settings: &mut Settings) {
    fn set<T: Clone>(target: &mut T, given: Option<&T>) {
        if let Some(given) = given {
            target.clone_from(given);
        }
    }
    settings.model = args.model.or(settings.model);
    settings.budget_usd = args.budget.or(settings.budget_usd);
    settings.debug |= args.debug;
    set(&mut settings.max_procs, args.max_procs.map(usize::from).as_ref());
    set(&mut settings.claude, args.claude.as_deref().map(program).as_ref());
    if !args.claude_args.is_empty() {
        settings.claude_args.clone_from(&args.claude_args);
    }
    if args.dangerously_skip_permissions {
        settings.permission = Permission::SkipAll;
    } else if let Some(mode) = &args.permission_mode {
        settings.permission = Permission::Mode(mode.clone());
    }
    let Supervision {
        max_restarts, backoff_min_ms, backoff_max_ms, timeout_ms, shutdown_ms, ..
    } = &mut settings.supervision;
    set(max_restarts, args.max_restarts.as_ref());
    set(timeout_ms, args.timeout.as_ref());
    set(shutdown_ms, args.shutdown.as_ref());
    if let Some((min, max)) = args.backoff {
        (*backoff_min_ms, *backoff_max_ms) = (min, max);
    }
}

/// A program that is named by a path is the same wherever the run goes on.
fn program(given: &str) -> String {
    let path = if given.contains('/') { std::path::absolute(given).ok() } else { None };
    path.and_then(|path| path.into_os_string().into_string().ok())
        .unwrap_or_else(|| given.to_owned())
}

/// The real path of a directory, as text that the journal can hold.
///
/// # Errors
/// [`Error::Io`] and [`Error::Usage`].
pub fn directory(path: &Path) -> Result<String, Error> {
    let real = path
        .canonicalize()
        .and_then(|real| {
            if real.is_dir() { Ok(real) } else { Err(std::io::ErrorKind::NotADirectory.into()) }
        })
        .map_err(|error| Error::Io {
            doing: "work in the directory",
            path: path.to_owned(),
            error,
        })?;
    real.into_os_string().into_string().map_err(|_| {
        Error::Usage(format!("{}: the path of a directory has to be UTF-8 text", path.display()))
    })
}
