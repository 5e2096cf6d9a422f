//! The kind of a state by the name of its file: a prompt, a graph, a program or a script.

use strum::VariantArray;

use super::StateName;

/// The kind of a state: the language that it is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, VariantArray)]
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

/// The way in which an agent takes the steps of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepMode {
    /// Claude Code takes a turn.
    Asked,
    /// raymond executes them up to the state's result, unless the agent waits or has a task.
    Executed,
    /// raymond executes them, too, but a tag says which state comes next. So many in a row end the agent.
    Tagged,
    /// raymond executes them, and looks again at once when a fact or the time changes what the state waits for.
    Watching,
}

/// All that the runtime has to know of a kind, apart from its language.
struct KindTerms {
    /// Its name for people.
    noun: &'static str,
    /// The endings of its files.
    endings: &'static [&'static str],
    /// The way in which its steps are taken.
    steps: StepMode,
}

/// Names that would be those of graphs, and are files of the runtime's own.
const RESERVED: [&str; 4] = ["raymond.yaml", "raymond.yml", "replies.yaml", "replies.yml"];

/// The endings of data, which is no script even if it can be executed, as all files of some file systems.
const DATA_ENDINGS: [&str; 44] = [
    "adoc", "bak", "bmp", "bz2", "cfg", "conf", "css", "csv", "db", "diff", "doc", "docx", "gif",
    "gz", "htm", "html", "ico", "ini", "jpeg", "jpg", "json", "jsonl", "lock", "log", "markdown",
    "ndjson", "orig", "patch", "pdf", "png", "rst", "sql", "sqlite", "svg", "tar", "tex", "toml",
    "tsv", "txt", "webp", "xlsx", "xml", "xz", "zip",
];

/// The endings by which a file is a script, whether or not it can be executed.
const SCRIPT_ENDINGS: [&str; 8] = ["sh", "py", "bash", "js", "mjs", "pl", "rb", "ts"];

impl StateKind {
    /// All kinds.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Returns the terms of the kind.
    const fn terms(self) -> KindTerms {
        let (noun, endings, steps): (_, &[_], _) = match self {
            Self::Prompt => ("prompt", &["md"], StepMode::Asked),
            Self::Graph => ("graph", &["yaml", "yml"], StepMode::Executed),
            Self::Program => ("program", &["lisp", "duet"], StepMode::Watching),
            Self::Script => ("script", &SCRIPT_ENDINGS, StepMode::Tagged),
        };
        KindTerms { noun, endings, steps }
    }

    /// Returns the kind of the state with this name, or `None` if it is no state. A file without an ending is a script, and so is one
    /// with an ending of nothing else, if it can be executed.
    #[must_use]
    pub fn of(name: &StateName) -> Option<Self> {
        let name = name.as_str();
        let Some((stem, ending)) = name.rsplit_once('.') else { return Some(Self::Script) };
        let is_one_of =
            |all: &[&str], one: &str| all.iter().any(|own| own.eq_ignore_ascii_case(one));
        if stem.is_empty() || is_one_of(&RESERVED, name) {
            return None;
        }
        let named = Self::ALL.iter().copied().find(|kind| is_one_of(kind.endings(), ending));
        named.or_else(|| (!is_one_of(&DATA_ENDINGS, ending)).then_some(Self::Script))
    }

    /// Returns its name for people.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        self.terms().noun
    }

    /// Returns the endings of its files.
    #[must_use]
    pub const fn endings(self) -> &'static [&'static str] {
        self.terms().endings
    }

    /// Returns the way in which its steps are taken.
    #[must_use]
    pub const fn steps(self) -> StepMode {
        self.terms().steps
    }
}

impl StateName {
    /// Returns whether it is a graph: a YAML file that is not one of the runtime's own.
    #[must_use]
    pub fn is_graph(&self) -> bool {
        StateKind::of(self) == Some(StateKind::Graph)
    }

    /// Returns whether it is a program of S-expressions.
    #[must_use]
    pub fn is_program(&self) -> bool {
        StateKind::of(self) == Some(StateKind::Program)
    }

    /// Returns whether it is a script: a file with the ending of one, or without any ending; or with an ending of nothing
    /// else, if it can be executed.
    #[must_use]
    pub fn is_script(&self) -> bool {
        StateKind::of(self) == Some(StateKind::Script)
    }

    /// Returns whether its name alone makes it a script. Any other script has to be a file that can be executed.
    #[must_use]
    pub fn is_script_by_name(&self) -> bool {
        let ending = self.as_str().rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        self.is_script() && ending.is_none_or(|ending| SCRIPT_ENDINGS.contains(&&*ending))
    }

    /// Returns whether the name has an ending, and it alone makes it a state, so that a word of a text is one.
    #[must_use]
    pub fn is_state_by_ending(&self) -> bool {
        match StateKind::of(self) {
            Some(StateKind::Script) => self.has_ending() && self.is_script_by_name(),
            kind => kind.is_some(),
        }
    }

    /// Returns the way in which its steps are taken, if it is a state.
    #[must_use]
    pub fn steps(&self) -> Option<StepMode> {
        StateKind::of(self).map(StateKind::steps)
    }

    /// Returns whether it is a prompt: a markdown file.
    #[must_use]
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
    fn no_two_kinds_have_the_same_ending_or_noun() {
        let all: Vec<&str> = StateKind::ALL
            .iter()
            .flat_map(|kind| kind.endings().iter().copied().chain([kind.noun()]))
            .collect();
        let different: std::collections::BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(all.len(), different.len(), "{all:?}");
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
