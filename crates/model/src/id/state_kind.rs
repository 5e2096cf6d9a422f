//! The kind of a state by its name: a prompt, a graph, a program or a script.

use super::StateName;
use crate::state_kind::{StateKind, StepMode};

impl StateKind {
    /// Returns the kind of the state with this name, or `None` if it is no state.
    pub fn of(name: &StateName) -> Option<Self> {
        Self::of_file(name.as_str())
    }
}

impl StateName {
    /// Returns whether it is a graph: a YAML file that is not one of the runtime's own.
    pub fn is_graph(&self) -> bool {
        StateKind::of(self) == Some(StateKind::Graph)
    }

    /// Returns whether it is a program of S-expressions.
    pub fn is_program(&self) -> bool {
        StateKind::of(self) == Some(StateKind::Program)
    }

    /// Returns whether it is a script: a file with the ending of one, or without any ending; or with an ending of nothing
    /// else, if it can be executed.
    pub fn is_script(&self) -> bool {
        StateKind::of(self) == Some(StateKind::Script)
    }

    /// Returns whether its name alone makes it a script. Any other script has to be a file that can be executed.
    pub fn is_script_by_name(&self) -> bool {
        let ending = self.as_str().rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        self.is_script()
            && ending.is_none_or(|ending| StateKind::Script.endings().contains(&&*ending))
    }

    /// Returns whether the name has an ending, and it alone makes it a state, so that a word of a text is one.
    pub fn is_state_by_ending(&self) -> bool {
        match StateKind::of(self) {
            Some(StateKind::Script) => self.has_ending() && self.is_script_by_name(),
            kind => kind.is_some(),
        }
    }

    /// Returns the way in which its steps are taken, if it is a state.
    pub fn steps(&self) -> Option<StepMode> {
        StateKind::of(self).map(StateKind::steps)
    }

    /// Returns whether it is a prompt: a markdown file.
    pub fn is_prompt(&self) -> bool {
        StateKind::of(self) == Some(StateKind::Prompt)
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
        for script in ["CHECK.tool", "check.PHP", "x.lua", "a.b.exe"] {
            let name = StateName::parse(script).expect("a name");
            assert!(name.is_script() && !name.is_script_by_name(), "{script}");
        }
        for none in ["A.txt", ".md", "raymond.yaml", "Replies.YML", ".lisp"] {
            assert_eq!(kind(none), None, "{none}");
        }
    }

    #[test]
    fn file_extension_determines_state_kind() {
        let kind = |name: &str| {
            let state = StateName::parse(name).expect("a state");
            (state.is_prompt(), state.is_graph(), state.is_program())
        };
        assert_eq!(kind("A.md"), (true, false, false));
        assert_eq!(kind("add.YML"), (false, true, false));
        assert_eq!((kind("a.lisp"), kind("a.Duet")), ((false, false, true), (false, false, true)));
        for other in ["raymond.yaml", "replies.yaml", ".yaml", ".md", ".lisp", "x"] {
            assert_eq!(kind(other), (false, false, false), "{other}");
        }
    }

    #[test]
    fn script_has_known_ending_or_none() {
        let is_script = |name: &str| StateName::parse(name).expect("a state").is_script();
        for script in ["BUILD.sh", "b.PY", "deploy", "x.y.rb"] {
            assert!(is_script(script), "{script}");
        }
        for other in ["A.md", "g.yaml", "p.lisp", "x.txt", ".sh", "LICENSE.txt"] {
            assert!(!is_script(other), "{other}");
        }
    }
}
