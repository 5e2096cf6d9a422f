//! The reasons that a state of a folder cannot be used.

use crate::{source, yaml};

/// The reasons that a state cannot be used. Each text begins with the file, and the place in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Its file cannot be used.
    #[error(transparent)]
    Source(#[from] source::Error),
    /// Its file is of another kind.
    #[error(
        "{path}: this is not a state: a state is a prompt, NAME.md, a graph, NAME.yaml, a program, NAME.lisp or NAME.duet, or a script such as NAME.sh or any file that can be executed"
    )]
    NotAPrompt {
        /// The file.
        path: String,
    },
    /// Its file does not say what executes it.
    #[error(
        "{path}:1:1: this is not a state: a file without the ending .sh, .bash or .py is a script only if its first line says what executes it, such as #!/usr/bin/env node"
    )]
    NoInterpreter {
        /// The file.
        path: String,
    },
    /// Its file has a mistake.
    #[error("{path}:{error}")]
    Document {
        /// The file.
        path: String,
        /// The mistake and its place.
        error: yaml::Error,
    },
}
