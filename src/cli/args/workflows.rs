//! The arguments of the commands that look at a workflow without running it, and their help.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::DirArgs;

use crate::language::diagnostic::{Diagnostic, Severity};
use crate::language::graph::profile::GraphProfile;
use crate::language::turn_options::tool_rule;
use crate::language::{graph, program, prompt};

pub(super) const CHECK_HELP: &str = "Examples:
  raymond check workflows/tour           a folder: its prompts, manifest, replies and graphs
  raymond check workflows/tour/SEND.md   a prompt and the states it leads to
  raymond check flow/workflow.yaml --profile seed
  raymond check review.lisp              a program and the folders it runs
  raymond check . --json | jq -r '.diagnostics[] | select(.severity == \"error\") | .path' | sort -u

Prints a line for each problem: PATH:LINE:COLUMN: CODE what is wrong and how to fix it. For programs, the line of
the file follows with a caret under the place. `warning:` before the code means that the workflow can run, but
perhaps not as intended. `info:` is worth knowing; --level info shows it. --json prints { valid,
diagnostics }; each has path, line, column, code, severity (error, warning or info) and message. Exit code 0 without
errors, 65 with errors; --strict counts warnings as errors. `raymond check --help` lists the codes.";

pub(super) const GRAPH_HELP: &str = "Examples:
  raymond graph workflows/tour                     Mermaid: GitHub draws it in a ```mermaid block
  raymond graph workflows/tour -o tour.svg         a picture for browsers
  raymond graph flow/workflow.yaml --format dot | dot -Tpdf -o flow.pdf
  raymond graph review.lisp -o review.svg

A folder is drawn from its first state. Solid lines are transitions that policies allow, dashed lines those that
the text of a state without policy mentions. Resets are thick, calls and their results violet, forks blue (thick
with a list or several forks in one reply). A state that joins its forks is a trapezium: blue lines lead to it
from their results, red lines from it if the join is missed. Graphs show all nodes and endings; red lines follow
a failure. Programs show states, roles, and the signals they wait for or assert; dashed violet lines are requests
and answers, red lines timeouts and failures. `raymond check` reports errors; the drawing does not.";

/// Returns the name of a variable that is given with or without its value.
fn variable_name(text: &str) -> Result<String, String> {
    let name = text.split_once('=').map_or(text, |(name, _)| name);
    if name.is_empty() { Err("write KEY or KEY=VALUE".to_owned()) } else { Ok(name.to_owned()) }
}

/// Returns the help of `check` with the table of its codes.
pub(super) fn check_help() -> String {
    let rows = |codes: &[(&str, &str)]| {
        let rows: Vec<String> =
            codes.iter().map(|(code, meaning)| format!("  {code}  {meaning}")).collect();
        rows.join("\n")
    };
    format!(
        "{CHECK_HELP}\n\nCodes of prompt folders:\n{}\n\nCodes of graphs:\n{}\n\nCodes of programs:\n{}",
        rows(&prompt::codes::CODES),
        rows(&graph::codes::CODES),
        rows(&program::codes::CODES)
    )
}

/// Options of `check`.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate switch")]
pub struct CheckArgs {
    /// A folder with START.md, a prompt file, a graph (.yaml), or a program (.lisp, .duet)
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// The directory of the runs and of the defined programs
    #[command(flatten)]
    pub dir: DirArgs,
    /// How strictly graphs are read
    #[arg(long, value_enum, default_value = "lenient")]
    pub profile: GraphProfileArg,
    /// Assume that the run gets this variable; the value is optional; repeatable
    #[arg(long = "var", value_name = "KEY[=VALUE]", value_parser = variable_name)]
    pub variables: Vec<String>,
    /// Assume that the run gets this tool rule; repeatable
    #[arg(long = "allow-tool", aliases = ["allow-tools", "allowed-tools", "allowedTools"], value_name = "RULE", value_parser = tool_rule)]
    pub allow_tools: Vec<String>,
    /// Assume that the run gets this permission mode [default: acceptEdits]
    #[arg(long, value_name = "MODE")]
    pub permission_mode: Option<String>,
    /// Assume that the run gets --trust
    #[arg(long, visible_alias = "trust-workflow")]
    pub trust: bool,
    /// The lowest severity to show
    #[arg(long, value_enum, default_value = "warning")]
    pub level: ShownLevel,
    /// Write the policies that the texts imply into the frontmatter of states without one
    #[arg(long)]
    pub write: bool,
    /// Exit with 65 for warnings as well
    #[arg(long)]
    pub strict: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The least severity that `check` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ShownLevel {
    /// Everything, including information
    Info,
    /// Warnings and errors
    Warning,
    /// Only errors
    Error,
}

impl ShownLevel {
    /// Returns whether a problem is shown.
    pub fn shows(self, found: &Diagnostic) -> bool {
        match self {
            Self::Info => true,
            Self::Warning => found.severity <= Severity::Warning,
            Self::Error => found.is_error(),
        }
    }
}

/// The rules that a graph is checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GraphProfileArg {
    /// Common deviations from the schema are warnings
    Lenient,
    /// All rules of the schema apply
    Seed,
}

impl From<GraphProfileArg> for GraphProfile {
    fn from(profile: GraphProfileArg) -> Self {
        match profile {
            GraphProfileArg::Lenient => Self::Lenient,
            GraphProfileArg::Seed => Self::Seed,
        }
    }
}

/// Options of `graph`.
#[derive(Debug, Clone, Args)]
pub struct GraphArgs {
    /// A folder with START.md, a prompt file, a graph (.yaml), or a program (.lisp, .duet)
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// The format of the drawing [default: by the extension of the output file, else mermaid]
    #[arg(long, value_enum)]
    pub format: Option<DrawingFormat>,
    /// Write to this file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Maximum number of nodes to show, nearest to the start first; one node stands for the rest
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_nodes: u32,
}

/// The format of a drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DrawingFormat {
    /// A Mermaid flowchart
    Mermaid,
    /// The language of Graphviz
    Dot,
    /// A picture
    Svg,
}

impl GraphArgs {
    /// Returns the format that was asked for, else the one that the file's name ends in, else Mermaid.
    ///
    /// # Errors
    /// A text that names the known formats, if the file's name ends in another one.
    pub fn format(&self) -> Result<DrawingFormat, String> {
        if let Some(format) = self.format {
            return Ok(format);
        }
        let Some(file) = &self.output else { return Ok(DrawingFormat::Mermaid) };
        match file.extension().map(|ending| ending.to_string_lossy().to_lowercase()).as_deref() {
            Some("svg") => Ok(DrawingFormat::Svg),
            Some("dot" | "gv") => Ok(DrawingFormat::Dot),
            None | Some("mmd" | "mermaid" | "md" | "txt") => Ok(DrawingFormat::Mermaid),
            Some(ending) => Err(format!(
                "{}: unknown drawing format .{ending}; use .svg, .dot or .gv (Graphviz), .mmd or .md (Mermaid), or give --format",
                file.display()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_extension_selects_drawing_format() {
        let format = |output: &str, format| {
            let output = Some(output.into());
            GraphArgs { path: ".".into(), format, output, max_nodes: 300 }.format()
        };
        assert_eq!(format("x.SVG", None), Ok(DrawingFormat::Svg));
        assert_eq!(format("x.gv", None), Ok(DrawingFormat::Dot));
        assert_eq!(format("x.mmd", None), Ok(DrawingFormat::Mermaid));
        assert_eq!(format("x", None), Ok(DrawingFormat::Mermaid));
        assert_eq!(format("x.png", Some(DrawingFormat::Svg)), Ok(DrawingFormat::Svg));
        let why = "x.png: unknown drawing format .png; use .svg, .dot or .gv (Graphviz), .mmd or .md (Mermaid), or give --format";
        assert_eq!(format("x.png", None), Err(why.to_owned()));
    }
}
