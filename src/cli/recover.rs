//! `raymond recover`: the runs that can go on after a crash, a stop or a pause.

use super::args::RecoverArgs;
use super::exit::{Error, Exit};
use super::{background, list, output};
use crate::domain::run::Status;
use crate::store::layout::Root;

/// `raymond recover`
///
/// # Errors
/// [`Error`] if the directory cannot be read, or a run cannot be taken up.
pub fn recover(args: &RecoverArgs) -> Result<Exit, Error> {
    let path = &args.all_runs.dir.dir;
    let root = std::path::absolute(path).map(Root::new).map_err(|error| Error::Io {
        doing: "find the directory",
        path: path.clone(),
        error,
    })?;
    let mut runs = list::all(&root)?;
    runs.retain(|(_, view)| match view {
        Ok(view) => !view.held && matches!(view.run.status, Status::Running | Status::Paused),
        Err(_) => false,
    });
    if args.all {
        for (id, _) in &runs {
            background::take_up(&root, id, &[])?;
            output::tell(&format!(
                "{id} goes on in the background; raymond log {id} --follow shows it"
            ));
        }
    }
    list::show(&args.all_runs, &runs, "no run is waiting to go on")
}
