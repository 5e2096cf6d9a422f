//! Test cases of workflows: what a run is given, and what is expected of it. Pure.
//!
//! A file holds one case, or a list of them below `cases`. Every expectation keeps its place, so that a failure
//! names the line that it breaks.

mod compare;
mod expectation;
mod fields;
mod file;
mod keys;
mod text_rule;

pub use self::compare::{CaseMismatch, CaseTexts, PathDifference, mismatches};
pub use self::expectation::{Expectation, ExpectedStatus, PathOrder, PlacedExpectation, TextRule};
pub use self::file::{CaseFact, CaseReplies, CaseSetting, TestCase, read};
pub(in crate::language) use self::keys::file_shape;
