//! The arguments of the commands about workflows: `check`, `graph`, `import`, `new`, `record`, `workflow` and `test`.
//!
//! The help of commands whose arguments need little of it is here, too.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::cli::args::{AllRunsArgs, DirArgs, NamedRunArgs, RunArgs, SingleRunArgs};
use crate::cli::options::{ConsentArgs, mode, parse_switch};
use crate::domain::allowed_address::AllowedAddress;
use crate::domain::model::ModelName;
use crate::domain::money::Usd;
use crate::domain::time::millis;
use crate::language::cases::{CasePermission, CaseSetting};
use crate::language::diagnostic::{Diagnostic, Severity};
use crate::language::graph::profile::GraphProfile;
use crate::language::manifest::budget;
use crate::language::scrub::compiled;
use crate::language::turn_options::{model, tool_rule};
use crate::language::{graph, program, prompt};

const CHECK_HELP: &str = "Examples:
  raymond check workflows/tour           a folder: its prompts, manifest, replies and graphs
  raymond check workflows/tour/SEND.md   a prompt and the states it leads to
  raymond check flow/workflow.yaml --profile seed
  raymond check review.lisp              a program and the folders it runs
  raymond check . --json | jq -r '.diagnostics[] | select(.severity == \"error\") | .path' | sort -u

Prints a line for each problem: PATH:LINE:COLUMN: CODE what is wrong and how to fix it. For programs, the line of
the file follows with a caret under the place. `warning:` before the code means that the workflow can run, but
perhaps not as intended. `info:` is worth knowing; --level info shows it. --json prints { valid,
diagnostics }; each has path, line, column, code, severity (error, warning or info) and message. Exit code 0 without
errors, 65 with errors; --strict counts warnings as errors.";

const GRAPH_HELP: &str = "Examples:
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
fn check_help() -> String {
    let rows = |codes: &[(&str, &str)]| {
        let rows: Vec<String> =
            codes.iter().map(|(code, meaning)| format!("  {code}  {meaning}")).collect();
        rows.join("\n")
    };
    format!(
        "{CHECK_HELP}\n\nCodes of prompt folders:\n{}\n\nCodes of graphs:\n{}\n\nCodes of programs:\n{}",
        rows(&prompt::codes::CODES),
        rows(&graph::keys::CODES),
        rows(&program::codes::CODES)
    )
}

/// Options of `check`.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate switch")]
#[command(after_help = CHECK_HELP, after_long_help = check_help())]
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
#[command(after_help = GRAPH_HELP)]
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
    /// Returns the requested format, or else the format of the file's extension, or else Mermaid.
    ///
    /// # Errors
    /// A text that names the known formats, if the file has another extension.
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

// The arguments of `raymond import`, and its help.

const IMPORT_HELP: &str = "Examples:
  raymond import review.yaml              creates the folder review
  raymond import review.zip -o flows/review

YAML has `states`, which maps each name to the text of a prompt, or to a mapping with `prompt` and frontmatter
keys (allowed_transitions, model, effort, …). The other keys are those of raymond.yaml. raymond warns about unknown
keys and ignores them. A zip contains a folder of prompts. The target folder must not exist: nothing is overwritten.
A zip with links, with paths outside the folder, or with more than 64 MiB is refused (exit 65), and so is invalid YAML.";

/// Options of `import`.
#[derive(Debug, Clone, Args)]
#[command(after_help = IMPORT_HELP)]
pub struct ImportArgs {
    /// A workflow in one file: YAML with `states`, or a zip
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The folder to create [default: the file name without its extension]
    #[arg(long, short, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
}

// The arguments of `raymond new`, and its help.

const NEW_HELP: &str = "Examples:
  raymond new haiku                        a folder with two prompts, scripted replies and tests
  raymond new review --from review-folder  a copy of another sample

The folder must not exist: nothing is overwritten. Without NAME, raymond asks on a terminal.";

/// Options of `new`.
#[derive(Debug, Clone, Args)]
#[command(after_help = NEW_HELP)]
pub struct NewArgs {
    /// The folder to create
    #[arg(value_name = "NAME")]
    pub name: Option<PathBuf>,
    /// The sample to copy, such as tour, review-folder or improve [default: haiku]
    #[arg(long, value_name = "SAMPLE")]
    pub from: Option<String>,
}

// The arguments of `record`, and its help.

const RECORD_HELP: &str = "Examples:
  raymond record RUN -o cassettes/tour
  raymond run workflows/tour --agent replay:cassettes/tour
  raymond record RUN -o DIR --scrub 'acme-[0-9]+' --scrub-env DEPLOY_TOKEN
  raymond record RUN -o DIR --json | jq .scrubbed

A cassette contains the prompts, answers, costs, failures, refused tools and file changes of each turn, in two files:
cassette.json and turns.jsonl. raymond replaces common forms of credentials with [scrubbed:RULE], and the summary
shows how often each rule matched. No rule finds every secret: read a cassette before you share it.
A cassette does not contain changes by commands (Bash), or changes outside the working directory.";

/// Options of `record`.
#[derive(Debug, Clone, Args)]
#[command(after_help = RECORD_HELP)]
pub struct RecordArgs {
    /// The run.
    #[command(flatten)]
    pub named: NamedRunArgs,
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
    /// The directory to write the cassette to
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
    /// Replace an existing cassette
    #[arg(long)]
    pub force: bool,
    /// Scrub text that matches this regular expression; repeatable
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    pub scrub: Vec<String>,
    /// Scrub the value of this environment variable; repeatable
    #[arg(long, value_name = "NAME")]
    pub scrub_env: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn pattern(text: &str) -> Result<String, String> {
    compiled(text).map(|_| text.to_owned())
}

// The arguments of `raymond workflow`, and their help.

pub(super) const WORKFLOW_HELP: &str = "Examples:
  raymond workflow start workflows/planner-worker-review --id feature-42
  raymond signal plan/ready --key feature-42        the fact that its first state waits for
  raymond workflow watch feature-42                 its states, its requests and their answers
  raymond workflow define workflows/standing-reviewer
  raymond workflow start standing-reviewer --id nightly
  raymond workflow list

A program is a conversation of several agents as S-expressions (.lisp). `raymond check FILE` reports its errors,
`raymond graph FILE` draws it, `raymond run FILE` runs it in the foreground, and `raymond signal` asserts the
facts that it waits for.";

const START_HELP: &str = "Examples:
  raymond workflow start workflows/planner-worker-review --id feature-42
  raymond workflow start standing-reviewer --id nightly

TARGET is a program (.lisp, .duet), a folder with workflow.lisp, or the name of a defined program.
`raymond start` starts prompts and graphs in the background.";

const WATCH_HELP: &str =
    "Examples:
  raymond workflow watch feature-42
  raymond workflow watch --last

Shows past and new events until the run ends or stops, in the language's notation of facts: workflow/state,
workflow/log, agent-request and agent-response with their texts. `raymond log` shows the same events in words.
The exit code is that of the run. --json prints each record as a line of JSON, under the names of `raymond log`.";

/// Commands about programs.
#[derive(Debug, Subcommand)]
pub enum WorkflowCommand {
    /// Check a program and store it under its name
    Define(DefineArgs),
    /// Start a program in the background, from a file or by its defined name; prints the run's id
    #[command(after_help = START_HELP)]
    Start(Box<RunArgs>),
    /// Show a program's states, requests and answers as they come
    #[command(after_help = WATCH_HELP)]
    Watch(SingleRunArgs),
    /// Show the runs of programs
    #[command(after_help = WORKFLOW_LIST_HELP)]
    List(AllRunsArgs),
}

/// Options of `workflow define`.
#[derive(Debug, Clone, Args)]
#[command(after_help = DEFINE_HELP)]
pub struct DefineArgs {
    /// The program's file
    pub file: PathBuf,
    /// The directory of the definitions.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

// The help of the commands whose arguments need little of it: examples.

pub(super) const STATUS_HELP: &str = "Examples:
  raymond status RUN
  raymond status --last                  the most recently started run
  raymond status RUN --json | jq -r .status";

pub(super) const PENDING_HELP: &str = "Examples:
  raymond pending                        questions, signals that programs wait for, parked agents
  raymond pending --json | jq -r '.[].command'

--json prints an array of { run, agent, kind, since, until, command } with the parts of each kind.";

pub(super) const COMPLETIONS_HELP: &str = "Examples:
  source <(raymond completions bash)     in ~/.bashrc; zsh the same in ~/.zshrc, after compinit
  raymond completions fish > ~/.config/fish/completions/raymond.fish

The script asks raymond, so it also completes runs, the agents of the run on the command line, and defined programs.";

const DEFINE_HELP: &str = "Examples:
  raymond workflow define workflows/standing-reviewer
  raymond workflow define review.lisp    then: raymond workflow start review

--json prints { name, file, program }.";

const WORKFLOW_LIST_HELP: &str = "Examples:
  raymond workflow list
  raymond workflow list --json | jq -r '.definitions[].name'

`raymond` lists the defined programs. --json prints { definitions, runs }.";

// The arguments of `test`, and its help.

const TEST_HELP: &str = "Examples:
  raymond test                           all cases below the current directory
  raymond test workflows/tour            the cases of a workflow, in its tests/*.yaml
  raymond test flow/tests/ways.yaml --case 'budget used up'
  raymond test --junit report.xml        for CI
  raymond test flow --kill-sweep         repeat each case for each record: kill it after the record, and resume it
  raymond test flow --real --models haiku,sonnet --times 5 --budget 2

A case is a run with scripted replies: it calls no model, costs nothing, and does not need Claude Code. Each case runs
in separate directories, which are removed afterwards. Prints a line for each case. A failed case also shows the path
with the first difference and the line of the expectation. Exit code 0 if all cases pass, 1 if a case fails, 65 if a
file of cases is invalid. A workflow that does more than prompt must be trusted: see `raymond trust`.

--real runs the cases with Claude Code, which costs money: at most --budget. It ignores scripted replies and cassettes,
and checks the same expectations. Prints for each case and model how many runs passed, the 95 % interval of that rate,
cost and time. Exit code 1 if a run failed, 75 if runs are left out because the budget is used up.

--json prints { cases, passed, failed, coverage }; each case has workflow, file, line, name, status, duration_ms,
mismatches, error, result, cost_usd and turns.";

/// Options of `test`.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate switch")]
#[command(after_help = TEST_HELP)]
pub struct TestArgs {
    /// A workflow's folder, a folder of several, or a file of cases
    #[arg(default_value = ".", hide_default_value = true)]
    pub path: PathBuf,

    /// Run only the cases with this text in their name; repeatable
    #[arg(long = "case", value_name = "NAME")]
    pub cases: Vec<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Write a `JUnit` XML report to this file
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,

    /// Update the golden files of the cases
    #[arg(long)]
    pub update: bool,

    /// Kill each run after each of its records, resume it, and expect the same result
    #[arg(long)]
    pub kill_sweep: bool,

    /// Number of cases to run at a time [default: the number of cores; with --real 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    pub jobs: Option<u16>,

    /// List the states that no case enters, and the transitions that no case takes
    #[arg(long)]
    pub coverage: bool,

    /// Trust the workflows that are tested.
    #[command(flatten)]
    pub trust: TrustSwitches,

    /// The options of tests with the real agent program.
    #[command(flatten)]
    pub live: LiveArgs,
}

/// Trust in the workflows that are tested.
#[derive(Debug, Clone, Default, Args)]
pub struct TrustSwitches {
    /// Trust the workflows' folders for these runs, so that their commands are executed. Not remembered.
    /// `RAYMOND_TRUST=true` does the same
    #[arg(long, visible_alias = "trust-workflow")]
    pub trust: bool,

    /// Trust the workflows' folders, as `RAYMOND_TRUST` says
    #[arg(long, hide = true, env = "RAYMOND_TRUST", value_parser = parse_switch)]
    pub trust_by_environment: bool,
}

impl TrustSwitches {
    /// Returns them as the consent of a run.
    pub fn consent(&self) -> ConsentArgs {
        let Self { trust, trust_by_environment } = *self;
        ConsentArgs { trust, trust_by_environment, ..ConsentArgs::default() }
    }
}

// The arguments of `test --real`.

/// The options of tests with the real agent program.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Real runs")]
pub struct LiveArgs {
    /// Run the cases with Claude Code, within a budget, and print how often each case passes
    #[arg(long = "real", alias = "live", conflicts_with_all = ["update", "kill_sweep", "coverage"])]
    pub live: bool,

    /// The models to use, in turn, for states that name none [default: those of the workflows]
    #[arg(long, value_name = "MODEL", value_delimiter = ',', value_parser = model, requires = "live")]
    pub models: Vec<ModelName>,

    /// The number of runs of each case with each model
    #[arg(long, value_name = "N", default_value_t = 1, requires = "live", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub times: u32,

    /// Maximum cost of all runs together, in US dollars
    #[arg(long, value_name = "USD", default_value = "1.00", requires = "live", value_parser = budget)]
    pub budget: Usd,

    /// Time limit of a run; the `time_limit` of a case applies to scripted runs only
    #[arg(long, value_name = "TIME", default_value = "15m", requires = "live", value_parser = millis)]
    pub time_limit: u64,

    /// The permissions of the runs.
    #[command(flatten)]
    pub permissions: LivePermissions,
}

/// The permissions that the person gives to real runs. A case only asks for them.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Real runs")]
pub struct LivePermissions {
    /// Permission mode of Claude Code, as for `raymond run`
    #[arg(
        long,
        value_name = "MODE",
        value_parser = mode(),
        hide_possible_values = true,
        requires = "live",
        conflicts_with = "dangerously_skip_permissions"
    )]
    pub permission_mode: Option<String>,

    /// Allow a tool without asking in states that list it, as for `raymond run`; repeatable
    #[arg(long = "allow-tool", aliases = ["allow-tools", "allowed-tools", "allowedTools"], value_name = "RULE", requires = "live", value_parser = tool_rule)]
    pub allow_tools: Vec<String>,

    /// Allow graphs to fetch from this non-public address, as for `raymond run`; repeatable
    #[arg(long, value_name = "ADDR", requires = "live", value_parser = str::parse::<AllowedAddress>)]
    pub allow_address: Vec<AllowedAddress>,

    /// Let Claude Code do everything without asking; only for disposable machines
    #[arg(long, requires = "live")]
    pub dangerously_skip_permissions: bool,
}

impl LivePermissions {
    /// Returns the option that the person would have to give for a setting of a case. Returns `None` if it is given, or
    /// if the setting is not a permission.
    pub fn missing_for(&self, setting: &CaseSetting) -> Option<String> {
        let value = setting.value.as_deref().unwrap_or_default();
        let (option, is_given) = match setting.permission()? {
            CasePermission::PermissionMode => {
                let is_given = self.permission_mode.as_deref() == Some(value);
                ("--permission-mode", is_given || self.dangerously_skip_permissions)
            }
            CasePermission::AllowTools => {
                ("--allow-tool", self.allow_tools.iter().any(|rule| rule == value))
            }
            CasePermission::AllowAddress => {
                let address = value.parse::<AllowedAddress>();
                let is_given = address.is_ok_and(|address| self.allow_address.contains(&address));
                ("--allow-address", is_given)
            }
        };
        (!is_given).then(|| format!("{option} '{value}'"))
    }

    /// Returns them as options of `raymond run`.
    pub fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        let mode = self.permission_mode.iter();
        arguments.extend(mode.map(|mode| format!("--permission-mode={mode}").into()));
        let rules = self.allow_tools.iter();
        arguments.extend(rules.map(|rule| format!("--allow-tool={rule}").into()));
        let addresses = self.allow_address.iter();
        arguments.extend(addresses.map(|address| format!("--allow-address={address}").into()));
        let all = self.dangerously_skip_permissions;
        arguments.extend(all.then(|| "--dangerously-skip-permissions".into()));
        arguments
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

#[cfg(test)]
mod examples_tests {
    use clap::{Command, CommandFactory};

    use crate::cli::args::Cli;

    fn without_example(of: &Command, before: &str) -> Vec<String> {
        let missing = of.get_subcommands().flat_map(|command| {
            let name = format!("{before} {}", command.get_name());
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            // `start` shows the examples of `run`.
            let is_shown = help.contains("Examples:\n") && help.contains("\n  raymond ");
            let below = without_example(command, &name);
            below.into_iter().chain((!is_shown).then_some(name)).collect::<Vec<_>>()
        });
        missing.collect()
    }

    #[test]
    fn help_of_every_command_has_examples() {
        assert_eq!(without_example(&Cli::command(), "raymond"), Vec::<String>::new());
    }
}
