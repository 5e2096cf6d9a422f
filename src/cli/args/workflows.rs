//! The arguments of the commands that look at a workflow without running it, and their help.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::language::graph::read;
use crate::language::program;
use crate::language::prompt::check;
use crate::language::turn_options::tool_rule;

pub(super) const CHECK_HELP: &str = "Examples:
  raymond check workflows/tour           all states of a folder, its manifest, its script, its graphs
  raymond check workflows/tour/SEND.md   this prompt, and what it leads to
  raymond check flow/workflow.yaml --profile seed
  raymond check review.lisp              this program, and the folders it runs
  raymond check . --json | jq -r '.diagnostics[] | select(.severity == \"error\") | .path' | sort -u

All that is wrong is said at once, a line each: PATH:LINE:COLUMN: CODE what is wrong and what to do.
Below a line about a program is the line of its file, with a caret under the place.
`warning:` before the code means that it can run, but perhaps not as it is meant. --json prints
{ valid, diagnostics }; each has path, line, column, code, severity (error or warning) and message.
Exit code 0 if there is no error, 65 if there is. `raymond check --help` lists the codes.";

pub(super) const GRAPH_HELP: &str = "Examples:
  raymond graph workflows/tour                     Mermaid: GitHub draws it in a ```mermaid block
  raymond graph workflows/tour -o tour.svg         a picture that every browser shows
  raymond graph flow/workflow.yaml --format dot | dot -Tpdf -o flow.pdf
  raymond graph review.lisp -o review.svg

A folder is drawn from its first state: solid lines are what policies allow, dashed ones what the text of
a state without policy shows. Thick is a reset; a call, and the result that comes back from it, are
violet; a fork is blue, and thick where it has a list or several stand in one reply. A state that waits for
the agents it has forked narrows to its foot; their results lead to it, blue, and red lines lead on where it
is not met. A graph is drawn with all its nodes and endings; where it goes on because
something failed the line is red. A program is drawn with its states, its roles, and the signals it waits
for or asserts: dashed violet lines are requests and answers, red ones timeouts and failures. The picture has all that is there, also what nothing is wrong with:
`raymond check` tells what is.";

/// Returns the help of `check` with the table of its codes.
pub(super) fn check_help() -> String {
    let rows = |codes: &[(&str, &str)]| {
        let rows: Vec<String> =
            codes.iter().map(|(code, meaning)| format!("  {code}  {meaning}")).collect();
        rows.join("\n")
    };
    format!(
        "{CHECK_HELP}\n\nCodes of prompt folders (those of graphs begin with WF):\n{}\n\nCodes of programs:\n{}",
        rows(&check::CODES),
        rows(&program::codes::CODES)
    )
}

/// Options of `check`.
#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    /// A folder with START.md, a prompt file, a graph (.yaml), or a program (.lisp, .duet)
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// How strictly graphs are read
    #[arg(long, value_enum, default_value = "lenient")]
    pub profile: GraphProfileArg,
    /// A variable that the run will be started with; may be given several times
    #[arg(long = "var", value_name = "KEY")]
    pub variables: Vec<String>,
    /// A rule that the run will be started with; may be given several times
    #[arg(long, value_name = "RULE", value_parser = tool_rule)]
    pub allow_tools: Vec<String>,
    /// The permission mode that the run will be started with [default: acceptEdits]
    #[arg(long, value_name = "MODE")]
    pub permission_mode: Option<String>,
    /// The run will be started with it
    #[arg(long, visible_alias = "trust-workflow")]
    pub trust: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The rules that a graph is checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GraphProfileArg {
    /// What graphs in use do besides the rules is a warning
    Lenient,
    /// All rules of the schema hold
    Seed,
}

impl From<GraphProfileArg> for read::GraphProfile {
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
    /// How it is written [default: as the name after -o ends, else mermaid]
    #[arg(long, value_enum)]
    pub format: Option<DrawingFormat>,
    /// Write it into this file instead of printing it
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
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
                "{}: there are no pictures as .{ending}; end the name in .svg, in .dot or .gv (Graphviz), or in .mmd or .md (Mermaid), or say what it is with --format",
                file.display()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_of_the_file_tells_the_format() {
        let format = |output: &str, format| {
            let output = Some(output.into());
            GraphArgs { path: ".".into(), format, output }.format()
        };
        assert_eq!(format("x.SVG", None), Ok(DrawingFormat::Svg));
        assert_eq!(format("x.gv", None), Ok(DrawingFormat::Dot));
        assert_eq!(format("x.mmd", None), Ok(DrawingFormat::Mermaid));
        assert_eq!(format("x", None), Ok(DrawingFormat::Mermaid));
        assert_eq!(format("x.png", Some(DrawingFormat::Svg)), Ok(DrawingFormat::Svg));
        let why = "x.png: there are no pictures as .png; end the name in .svg, in .dot or .gv (Graphviz), or in .mmd or .md (Mermaid), or say what it is with --format";
        assert_eq!(format("x.png", None), Err(why.to_owned()));
    }
}
