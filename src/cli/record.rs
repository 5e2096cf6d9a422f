//! `raymond record`: a run as a cassette.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;

use super::exit::{CliExitCode, Error};
use super::{output, settings};
use crate::cli::args::workflows::RecordArgs;
use crate::domain::cassette::{CassetteHeader, ScrubbedCount};
use crate::domain::id::RunId;
use crate::language::scrub::ScrubRules;
use crate::runtime::recording;

/// Runs `raymond record`.
///
/// # Errors
/// [`Error`] if the run cannot be read, or the cassette cannot be written.
pub fn record(args: &RecordArgs) -> Result<CliExitCode, Error> {
    let rules = rules(args)?;
    let root = args.dir.real_root()?;
    let id = settings::chosen(&args.named, &root)?;
    let header = recording::record(&root, &id, &rules, &args.output, args.force)?;
    if args.json {
        let mut value = json!(header);
        value["run"] = json!(id);
        value["path"] = json!(args.output.display().to_string());
        return output::print_json(&value);
    }
    output::print(&summary(&id, &args.output, &header))
}

/// Returns the usual rules and those that are given.
fn rules(args: &RecordArgs) -> Result<ScrubRules, Error> {
    let mut rules = ScrubRules::usual();
    let wrong =
        |option: &str, given: &str, why: String| Error::Usage(format!("{option} {given}: {why}"));
    for (number, pattern) in (1..).zip(&args.scrub) {
        let added = rules.add_pattern(&format!("scrub-{number}"), pattern);
        added.map_err(|why| wrong("--scrub", pattern, why))?;
    }
    for name in &args.scrub_env {
        let value = std::env::var(name).map_err(|_| {
            wrong(
                "--scrub-env",
                name,
                "the variable is not set here; set it, or leave it out".to_owned(),
            )
        })?;
        let added = rules.add_value(&format!("env:{name}"), &value);
        added.map_err(|why| wrong("--scrub-env", name, why))?;
    }
    Ok(rules)
}

fn summary(id: &RunId, path: &Path, header: &CassetteHeader) -> String {
    let turns = output::counted(header.turns, "turn");
    let mut text = format!("recorded {turns} of {id} in {}\n", path.display());
    if header.unfinished {
        text.push_str("the run has not ended; the cassette does not contain later turns\n");
    }
    text.push_str("scrubbed:\n");
    for ScrubbedCount { rule, hits } in &header.scrubbed {
        let _ = writeln!(text, "  {rule}: {hits}");
    }
    let left_out = &header.left_out;
    let parts = [
        (
            left_out.missing_streams,
            "turn has no texts, because its stream is missing",
            "turns have no texts, because their streams are missing",
        ),
        (
            left_out.outside_files,
            "change of a file outside the working directory",
            "changes of files outside the working directory",
        ),
        (
            left_out.unknown_changes,
            "change that the stream does not contain in full",
            "changes that the stream does not contain in full",
        ),
        (
            left_out.commands,
            "command (Bash) was run: what it changed is not known",
            "commands (Bash) were run: what they changed is not known",
        ),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|(count, ..)| *count > 0).collect();
    if !parts.is_empty() {
        text.push_str("left out:\n");
    }
    for (count, singular, plural) in parts {
        let _ = writeln!(text, "  {count} {}", if count == 1 { singular } else { plural });
    }
    text
}
