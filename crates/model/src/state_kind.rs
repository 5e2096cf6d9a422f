//! The languages of states: their names, the endings of their files, and the way in which their steps are taken.
//!
//! A further language begins with a line here. No room needs another one for its name.

use strum::VariantArray;

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

/// The endings of data files. A data file is not a script even if it is executable, like every file on some file
/// systems.
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

    /// Returns the kind of the state that a file of this name is, or `None` if it is not a state. A file without an
    /// ending is a script, and so is a file whose ending has no other meaning, if it is executable.
    pub fn of_file(name: &str) -> Option<Self> {
        let Some((stem, ending)) = name.rsplit_once('.') else { return Some(Self::Script) };
        let is_among =
            |all: &[&str], word: &str| all.iter().any(|known| known.eq_ignore_ascii_case(word));
        if stem.is_empty() || is_among(&RESERVED, name) {
            return None;
        }
        let named = Self::ALL.iter().copied().find(|kind| is_among(kind.endings(), ending));
        named.or_else(|| (!is_among(&DATA_ENDINGS, ending)).then_some(Self::Script))
    }

    /// Returns its name for people.
    pub const fn noun(self) -> &'static str {
        self.terms().noun
    }

    /// Returns the endings of its files.
    pub const fn endings(self) -> &'static [&'static str] {
        self.terms().endings
    }

    /// Returns the way in which its steps are taken.
    pub const fn steps(self) -> StepMode {
        self.terms().steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_kinds_have_the_same_ending_or_noun() {
        let all: Vec<&str> = StateKind::ALL
            .iter()
            .flat_map(|kind| kind.endings().iter().copied().chain([kind.noun()]))
            .collect();
        let different: std::collections::BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(all.len(), different.len(), "{all:?}");
    }
}
