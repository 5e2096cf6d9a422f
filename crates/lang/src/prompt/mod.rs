//! The language of prompt folders: a state is a markdown file, its frontmatter is the policy.

pub mod check;
pub mod codes;
pub mod document;
pub mod evaluator;
pub mod flow;
pub mod forking;
pub mod frontmatter;
pub mod implied_policy;
pub mod joins;
pub mod judgement;
pub mod scopes;
pub mod script;
pub mod state_error;
pub mod step;
pub mod widenings;
pub mod workflow_map;
