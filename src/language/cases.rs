//! Test cases of workflows: what a run is given, and what is expected of it. Pure.
//!
//! A file holds one case, or a list of them below `cases`. Every expectation keeps its place, so that a failure
//! names the line that it breaks.

mod case_mismatch;
mod case_permission;
mod case_setting;
mod case_texts;
mod compare;
mod compare_path;
mod expectation;
mod expected_status;
mod fields;
mod file;
mod keys;
mod run_words;
mod text_rule;

pub use self::case_mismatch::{CaseMismatch, PathDifference};
pub use self::case_permission::CasePermission;
pub use self::case_setting::CaseSetting;
pub use self::case_texts::CaseTexts;
pub use self::compare::mismatches;
pub use self::expectation::{Expectation, PathOrder, PlacedExpectation, TextRule};
pub use self::expected_status::ExpectedStatus;
pub use self::file::{CaseCassette, CaseFact, CaseReplies, TestCase, read};
pub(in crate::language) use self::keys::file_shape;
