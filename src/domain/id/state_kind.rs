//! The kind of a state by the name of its file: a prompt, a graph, a program or a script.

use super::StateName;

/// The kind of a state: the language that it is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateKind {
    /// A markdown file: a turn of Claude Code's.
    Prompt,
    /// A YAML file: a graph.
    Graph,
    /// A file of S-expressions: a program.
    Program,
    /// A file that is executed; whether it can be, its name does not always say.
    Script,
}

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
