//! The file with the results of a join, as a turn at a host finds it.

use std::path::Path;

use crate::domain::turn::TurnInput;
use crate::language::prompt::context::{RESULTS, RESULTS_FILE};
use crate::store;
use crate::store::files::{make_dir, replace};

/// Writes the results that a turn has waited for into a file of this host. Its path takes the place of the one on the
/// supervisor's machine, in the prompt and in the values.
pub(super) fn place_results(input: &mut TurnInput, results: &Path) -> Result<(), store::Error> {
    let (Some(elsewhere), Some(list)) =
        (input.values.get(RESULTS_FILE).cloned(), input.values.get(RESULTS).cloned())
    else {
        return Ok(());
    };
    let Some(name) = Path::new(&elsewhere).file_name() else { return Ok(()) };
    let path = results.join(name);
    make_dir(results)?;
    replace(&path, list.as_bytes())?;
    let here = path.display().to_string();
    if input.reads_results {
        input.prompt = input.prompt.replace(&elsewhere, &here);
    }
    input.values.insert(RESULTS_FILE.to_owned(), here);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prompt_names_the_file_of_this_host() {
        let kept = tempfile::tempdir().expect("a folder");
        let results = kept.path().join("results");
        let elsewhere = "/supervisor/results/main-2.json";
        let mut input: TurnInput = serde_json::from_value(json!({
            "version": 1, "turn": { "agent": "main", "step": 2, "turn": 0 }, "state": "A.md",
            "reads_results": true, "visit": 0,
            "session": { "session_id": "a", "origin": "fresh" }, "model": null,
            "limits": { "idle_timeout_ms": 1, "timeout_ms": 1, "shutdown_ms": 1 },
            "prompt": format!("read {elsewhere}, all of {elsewhere}"),
            "values": { "results": "[1]", "results_file": elsewhere },
        }))
        .expect("an input");
        place_results(&mut input, &results).expect("placed");
        let here = results.join("main-2.json").display().to_string();
        assert_eq!(std::fs::read_to_string(&here).expect("it is there"), "[1]");
        assert_eq!(input.prompt, format!("read {here}, all of {here}"));
        assert_eq!(input.values.get(RESULTS_FILE), Some(&here));
    }
}
