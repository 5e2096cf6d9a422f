//! The question whether the copy of the workflow's files is as it was made, asked before its files are given to a
//! process by their paths.

use std::fmt;
use std::rc::Rc;

/// Who answers; where there is no copy, nothing is asked.
#[derive(Clone, Default)]
pub struct CopyCheck(Option<Rc<dyn Fn() -> Result<(), String>>>);

impl CopyCheck {
    /// Asks this each time; it says what is wrong.
    #[must_use]
    pub fn new(check: impl Fn() -> Result<(), String> + 'static) -> Self {
        Self(Some(Rc::new(check)))
    }

    /// Asks.
    ///
    /// # Errors
    /// What is wrong with the copy.
    pub(super) fn ask(&self) -> Result<(), String> {
        self.0.as_ref().map_or(Ok(()), |check| check())
    }
}

impl fmt::Debug for CopyCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CopyCheck")
    }
}
