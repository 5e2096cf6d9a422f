//! Asks the person at the terminal before something runs that they have not confirmed.

use std::io::{IsTerminal, stderr, stdin};

use super::options::Options;
use super::{output, person};
use crate::runtime::{Error, Prepared, RunStarter, place};
use crate::store::trust::TrustOrigin;

/// Prepares a run; if it asks for more than was confirmed and someone is at the terminal, asks them and
/// prepares it again.
pub(super) fn confirmed(
    options: &Options,
    mut prepare: impl FnMut(&RunStarter) -> Result<Prepared, Error>,
) -> Result<Prepared, Error> {
    let confirms = person::trusts(&options.consent).then_some(TrustOrigin::Option);
    let mut starter = RunStarter { state: place::user_state()?, confirms, shown: None };
    match prepare(&starter) {
        Err(error @ (Error::NotTrusted { .. } | Error::NotConfirmed { .. })) => {
            if options.json || !(stdin().is_terminal() && stderr().is_terminal()) {
                return Err(error);
            }
            if !is_confirmed(&error) {
                return Err(Error::Declined);
            }
            starter.confirms = Some(TrustOrigin::Question);
            // What changes while the question stands was not what the answer is about.
            starter.shown = shown(&error);
            prepare(&starter)
        }
        prepared => prepared,
    }
}

/// Asks whether what an error tells is what the person wants.
fn is_confirmed(error: &Error) -> bool {
    output::tell(&error.to_string());
    output::tell(
        "Type yes to trust it as it is and run it; the trust is remembered, `raymond trust --remove` takes it back: ",
    );
    let mut line = String::new();
    stdin().read_line(&mut line).is_ok() && matches!(line.trim(), "y" | "yes")
}

/// Returns the checksum of what an error tells the person.
fn shown(error: &Error) -> Option<String> {
    match error {
        Error::NotTrusted { checksum, .. } | Error::NotConfirmed { checksum, .. } => {
            Some(checksum.clone())
        }
        _ => None,
    }
}
