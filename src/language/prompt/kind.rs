//! The kind of a folder's file by its name: a prompt, a graph, a program, a script, or no state at all.

use crate::domain::id::StateName;

/// The kind of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateKind {
    /// A markdown file: a turn of Claude Code's.
    Prompt,
    /// A YAML file: a graph.
    Graph,
    /// A file of S-expressions: a program.
    Program,
    /// A file that is executed.
    Script,
}

/// Markdown that lies beside prompts and is for others.
const FOR_OTHERS: [&str; 4] = ["README.md", "CLAUDE.md", "AGENTS.md", "SKILL.md"];

impl StateKind {
    /// Returns the kind of the state with this name, or `None` if it is no state.
    #[must_use]
    pub fn of(name: &StateName) -> Option<Self> {
        if name.is_prompt() {
            return Some(Self::Prompt);
        }
        if name.is_graph() {
            return Some(Self::Graph);
        }
        if name.is_program() {
            return Some(Self::Program);
        }
        name.is_script().then_some(Self::Script)
    }
}

/// Returns whether a file usually lies beside the prompts without being one.
#[must_use]
pub fn is_for_others(name: &StateName) -> bool {
    FOR_OTHERS.iter().any(|file| file.eq_ignore_ascii_case(name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_extension_selects_state_kind() {
        let kind = |name: &str| StateKind::of(&StateName::parse(name).expect("a name"));
        assert_eq!(
            (kind("A.md"), kind("a.MD")),
            (Some(StateKind::Prompt), Some(StateKind::Prompt))
        );
        assert_eq!(
            (kind("g.yaml"), kind("g.yml")),
            (Some(StateKind::Graph), Some(StateKind::Graph))
        );
        assert_eq!(
            (kind("p.lisp"), kind("p.DUET")),
            (Some(StateKind::Program), Some(StateKind::Program))
        );
        assert_eq!((kind("b.sh"), kind("B")), (Some(StateKind::Script), Some(StateKind::Script)));
        for none in ["A.txt", ".md", "raymond.yaml", "replies.yaml", ".lisp"] {
            assert_eq!(kind(none), None, "{none}");
        }
    }
}
