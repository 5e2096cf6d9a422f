//! The language of prompt folders: a state is a markdown file, its frontmatter is the policy.

pub mod document;
pub mod evaluator;
pub mod frontmatter;
pub mod step;
pub mod survey;
