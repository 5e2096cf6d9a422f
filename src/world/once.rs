//! What must not be done twice, and cannot tell whether it was done: a shell's command, and types of
//! one's own that are like it. There is a note before it begins and one when it has ended.

use std::sync::Arc;

use serde_json::Value;

use super::note::{Note, Told};
use super::outcome::Trouble;
use super::shared::{Shared, blocking};

/// Does `work`, unless a runtime before this one has, or may have.
pub(super) async fn once(
    shared: &Arc<Shared>,
    stem: &str,
    again: bool,
    what: &str,
    work: impl Future<Output = Result<Value, Trouble>>,
) -> Result<Value, Trouble> {
    let note = Note::of(&shared.place.steps, &shared.place.proofs, stem);
    let begun = note.clone();
    let told = blocking(shared, move |_| {
        let told = if again { begun.told()? } else { Told::Nothing };
        if told == Told::Nothing {
            begun.begin()?;
        }
        Ok::<Told, String>(told)
    });
    match told.await?? {
        Told::Done(outcome) => return outcome.map_err(Trouble::Failed),
        Told::Begun => return Err(Trouble::Lost(lost(what))),
        Told::Nothing => {}
    }
    let done = match work.await {
        Ok(value) => Ok(value),
        Err(Trouble::Failed(why)) => Err(why),
        Err(trouble) => return Err(trouble),
    };
    let noted = done.clone();
    blocking(shared, move |_| note.end(&noted)).await??;
    done.map_err(Trouble::Failed)
}

fn lost(what: &str) -> String {
    format!(
        "WF502 {what} had begun when raymond ended, and whether it was done is not known; the \
         restart policy says whether it is done again"
    )
}
