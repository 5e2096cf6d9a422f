//! `raymond man`: the manual pages, one for each command.

use clap::CommandFactory;

use super::args::Cli;
use super::args::clean::ManArgs;
use super::exit::{CliExitCode, Error};
use super::output;

/// Runs `raymond man`.
///
/// # Errors
/// [`Error::Io`] if a page cannot be written.
pub fn man(args: &ManArgs) -> Result<CliExitCode, Error> {
    let failed =
        |error| Error::Io { doing: "write the manual pages in", path: args.dir.clone(), error };
    std::fs::create_dir_all(&args.dir).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), &args.dir).map_err(failed)?;
    let first = args.dir.join("raymond.1");
    output::tell(&format!("the pages are written; read the first: man {}", first.display()));
    Ok(CliExitCode::Success)
}
