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
