//! The error of a call that is made again and again: people are told once, and once when it is over.

use std::collections::BTreeSet;

use crate::runtime::error::Error;

/// The number of calls in a row that have to fail before people are told.
const FAILURES: u32 = 2;

/// The most errors that are told of the same calls.
const MOST_TOLD: usize = 3;

/// The errors of a call that stand now. One call may fail by chance, such as when another program writes the same file.
#[derive(Debug)]
pub(in crate::runtime) struct ToldError {
    /// The consequence of a failure, and the state once the call succeeds again.
    sentences: (&'static str, &'static str),
    /// The number of calls in a row that failed.
    failures: u32,
    /// The errors that people were told, until a call succeeds.
    told: BTreeSet<String>,
}

impl ToldError {
    /// Returns one about calls whose failure means the first, and whose success the second.
    pub(in crate::runtime) fn about(failed: &'static str, mended: &'static str) -> Self {
        Self { sentences: (failed, mended), failures: 0, told: BTreeSet::new() }
    }

    /// Notes what came of a call, and warns of an error that is new.
    pub(in crate::runtime) fn note(&mut self, called: Result<(), Error>) {
        if let Err(error) = &called {
            tracing::debug!("{error}");
        }
        if let Some(news) = self.news(called) {
            tracing::warn!("{news}");
        }
    }

    /// Returns what people are to be told now.
    fn news(&mut self, called: Result<(), Error>) -> Option<String> {
        let (failed, mended) = self.sentences;
        let error = match called {
            Ok(()) => {
                self.failures = 0;
                let was_told = !std::mem::take(&mut self.told).is_empty();
                return was_told.then(|| mended.to_owned());
            }
            // The writer of the log says that the engine cannot be reached, and that another raymond has the run.
            Err(Error::Engine(error)) if !error.is_mendable() => return None,
            Err(error) => error.to_string(),
        };
        self.failures = self.failures.saturating_add(1);
        let is_news = self.failures >= FAILURES && self.told.len() < MOST_TOLD;
        let is_news = is_news && self.told.insert(error.clone());
        is_news.then(|| format!("{error}; until this is fixed, {failed}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EngineError;

    #[test]
    fn error_that_a_person_can_mend_is_told_once_and_so_is_its_end() {
        let (engine, why) = ("postgres://x".to_owned(), "no right".to_owned());
        let refused =
            || Error::from(EngineError::Refused { engine: engine.clone(), why: why.clone() });
        let down =
            || Error::from(EngineError::Unreachable { engine: engine.clone(), why: why.clone() });
        let mut told = ToldError::about("commands wait", "commands are taken");
        let mut news = |called| told.news(called).unwrap_or_default();
        assert_eq!(news(Ok(())), "");
        assert_eq!(news(Err(down())), "", "others tell it");
        assert_eq!(news(Err(refused())), "", "it may have failed by chance");
        assert_eq!(
            news(Err(refused())),
            "the engine postgres://x refused: no right; until this is fixed, commands wait"
        );
        assert_eq!([news(Err(refused())), news(Err(down())), news(Err(refused()))], [""; 3]);
        assert!(news(Err(Error::Nothing)).ends_with("; until this is fixed, commands wait"));
        assert_eq!([news(Err(refused())), news(Err(Error::Nothing))], [""; 2], "both were told");
        assert_eq!([news(Ok(())), news(Ok(()))], ["commands are taken", ""]);
        assert_eq!([news(Err(refused())), news(Ok(()))], [""; 2]);
    }
}
