//! The error of a call that is made again and again: people are told once, and once when it is over.

use crate::runtime::error::Error;

/// The error that people were told last, if it still stands.
#[derive(Debug)]
pub(in crate::runtime) struct ToldError {
    consequence: &'static str,
    told: Option<String>,
}

impl ToldError {
    /// Returns one about calls whose failure means that.
    pub(in crate::runtime) fn about(consequence: &'static str) -> Self {
        Self { consequence, told: None }
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
        let consequence = self.consequence;
        let error = match called {
            Ok(()) => {
                return self.told.take().map(|_| format!("it is no longer so that {consequence}"));
            }
            // The writer of the log says that the engine cannot be reached, and that another raymond has the run.
            Err(Error::Engine(error)) if !error.is_mendable() => return None,
            Err(error) => error.to_string(),
        };
        if self.told.as_ref() == Some(&error) {
            return None;
        }
        let news = format!("{error}; until that is mended, {consequence}");
        self.told = Some(error);
        Some(news)
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
        let mut told = ToldError::about("commands wait");
        let mut news = |called| told.news(called).unwrap_or_default();
        assert_eq!(news(Ok(())), "");
        assert_eq!(news(Err(down())), "", "others tell it");
        assert_eq!(
            news(Err(refused())),
            "the engine postgres://x refused: no right; until that is mended, commands wait"
        );
        assert_eq!([news(Err(refused())), news(Err(down())), news(Err(refused()))], [""; 3]);
        assert!(news(Err(Error::Nothing)).ends_with("; until that is mended, commands wait"));
        assert_eq!(news(Ok(())), "it is no longer so that commands wait");
        assert_eq!(news(Ok(())), "");
    }
}
