//! Asks the person at the terminal before something runs that they have not confirmed.

use std::collections::BTreeSet;
use std::io::{IsTerminal, stderr, stdin};

use super::options::RunOptions;
use super::{output, person};
use crate::runtime::{Error, PreparedRun, RunStarter, directories};
use crate::store::trust::FolderTrust;

/// The most questions before a run: about the run, and about the folder whose files it uses.
const MAX_QUESTIONS: usize = 2;

/// Prepares a run; if it asks for more than was confirmed and someone is at the terminal, asks them and
/// prepares it again.
pub(super) fn confirmed(
    options: &RunOptions,
    mut prepare: impl FnMut(&RunStarter) -> Result<PreparedRun, Error>,
) -> Result<PreparedRun, Error> {
    let confirmation = person::trust_origin(&options.consent);
    let state = directories::user_state()?;
    let mut starter = RunStarter { state, confirmation, confirmed: BTreeSet::new() };
    let is_person = is_person_at_terminal();
    let may_ask = is_person && !options.json;
    for _ in 0..MAX_QUESTIONS {
        let error = match prepare(&starter) {
            Err(error) if is_person => error,
            prepared => return prepared,
        };
        if let Error::NotTrusted { folder, trust, checksum, .. } = &error
            && let FolderTrust::Reworded(files) = &**trust
        {
            let files = files.join(", ");
            output::tell(&format!(
                "{folder} keeps your trust: only texts have changed, in {files}"
            ));
            starter.confirmed.insert(checksum.clone());
            continue;
        }
        if !may_ask {
            return Err(error);
        }
        let Some(question) = question(&error) else { return Err(error) };
        output::tell(&error.to_string());
        if !is_answered_yes(question.text) {
            return Err(Error::Declined);
        }
        // The answer covers only the files that the question was about, not later changes.
        starter.confirmed.insert(question.checksum);
    }
    prepare(&starter)
}

/// Returns whether a person, not an agent, sits at the terminal.
pub(super) fn is_person_at_terminal() -> bool {
    stdin().is_terminal() && stderr().is_terminal() && person::acting_agent().is_none()
}

/// A question about an error.
struct TrustQuestion {
    text: &'static str,
    /// The checksum of what the person is shown.
    checksum: String,
}

/// Returns the question that settles an error; `None` for an error that no answer settles.
fn question(error: &Error) -> Option<TrustQuestion> {
    let (text, checksum) = match error {
        Error::NotTrusted { checksum, .. } => (
            "Type yes to trust it as it is and run it; the trust is stored, `raymond trust --remove` undoes it: ",
            checksum,
        ),
        Error::NotConfirmed { checksum, .. } => {
            ("Type yes to resume the run as its directory is now: ", checksum)
        }
        _ => return None,
    };
    Some(TrustQuestion { text, checksum: checksum.clone() })
}

/// Asks a question at the terminal; returns whether the answer is yes.
pub(super) fn is_answered_yes(question: &str) -> bool {
    output::tell(question);
    let mut line = String::new();
    stdin().read_line(&mut line).is_ok() && matches!(line.trim(), "y" | "yes")
}
