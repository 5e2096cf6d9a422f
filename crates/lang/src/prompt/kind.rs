//! Files that lie beside prompts and are none.

pub use raymond_model::id::{StateKind, StateName};

/// Markdown that lies beside prompts and is for others.
const FOR_OTHERS: [&str; 4] = ["README.md", "CLAUDE.md", "AGENTS.md", "SKILL.md"];

/// Returns whether a file usually lies beside the prompts without being one.
pub fn is_for_others(name: &StateName) -> bool {
    FOR_OTHERS.iter().any(|file| file.eq_ignore_ascii_case(name.as_str()))
}
