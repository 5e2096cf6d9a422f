//! Asks the person at the terminal before something runs that they have not confirmed.

use std::io::{IsTerminal, stderr, stdin};

use super::options::Options;
use super::{output, person};
use crate::runtime::{Error, Prepared, Starter, place};
use crate::store::trust::TrustOrigin;

/// Prepares a run; if it asks for more than was confirmed and someone is at the terminal, asks them and
/// prepares it again.
pub(super) fn confirmed(
    options: &Options,
    mut prepare: impl FnMut(&Starter) -> Result<Prepared, Error>,
) -> Result<Prepared, Error> {
    let confirms = person::trusts(&options.consent).then_some(TrustOrigin::Option);
    let mut starter = Starter { state: place::user_state()?, confirms };
    match prepare(&starter) {
        Err(error @ (Error::NotTrusted { .. } | Error::NotConfirmed { .. })) => {
            if options.json || !is_confirmed(&error) {
                return Err(error);
            }
            starter.confirms = Some(TrustOrigin::Question);
            prepare(&starter)
        }
        prepared => prepared,
    }
}

/// Asks whether what an error tells is what the person wants; nobody at the terminal does not.
fn is_confirmed(error: &Error) -> bool {
    if !(stdin().is_terminal() && stderr().is_terminal()) {
        return false;
    }
    output::tell(&error.to_string());
    output::tell("run it? Type yes to trust it as it is: ");
    let mut line = String::new();
    stdin().read_line(&mut line).is_ok() && matches!(line.trim(), "y" | "yes")
}
