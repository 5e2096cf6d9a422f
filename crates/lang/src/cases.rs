//! Test cases of workflows: what a run is given, and what is expected of it. Pure.
//!
//! A file holds one case, or a list of them below `cases`. Every expectation keeps its place, so that a failure
//! names the line that it breaks.

mod compare;
mod expectation;
mod file;
mod keys;

pub use self::compare::mismatches;
pub use self::compare::{CaseMismatch, PathDifference};
pub use self::expectation::{Expectation, PathOrder, PlacedExpectation, TextRule};
pub use self::file::CaseSetting;
pub use self::file::CaseTexts;
pub use self::file::{CaseCassette, CaseFact, CaseReplies, TestCase, read};
pub use self::keys::CasePermission;
pub use self::keys::ExpectedStatus;
pub(crate) use self::keys::file_shape;
