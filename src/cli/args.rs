//! The command line's grammar, and the texts of its help.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::domain::id::RunId;
use crate::domain::money::Usd;
use crate::domain::settings::Model;
use crate::language::duration::millis;
use crate::language::prompt::step::RESERVED;

/// Run workflows of Claude Code agents, durably and supervised.
#[derive(Debug, Parser)]
#[command(
    name = "raymond",
    version,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "A path alone means `run`: raymond workflows/tour\n\n\
        Exit codes: 0 all agents ended well, 1 an agent failed, 64 wrong usage, 65 invalid workflow or\n\
        state, 69 Claude Code cannot be started or is not logged in, 73 held by another raymond, 74\n\
        input/output error, 75 paused (budget), 130 interrupted. After 69, 75 and 130: `raymond run RUN`\n\
        goes on."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a workflow, or go on with a run
    #[command(after_help = RUN_HELP)]
    Run(RunArgs),
    /// Go on with a run that was paused, interrupted or killed
    Resume(ResumeArgs),
    /// Run in the background; prints the run's id
    #[command(after_help = RUN_HELP)]
    Start(RunArgs),
    /// Show where a run stands
    Status(OneRun),
    /// Show all runs
    List(AllRuns),
    /// Show what happened in a run
    Log(LogArgs),
    /// Ask a run to stop; it can go on later
    Stop(StopArgs),
    /// Show the runs that can go on, or let them all go on
    Recover(RecoverArgs),
    /// Print a script that completes commands and options in a shell
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

const RUN_HELP: &str = "Examples:
  raymond run workflows/tour --agent scripted      try a workflow without calling a model
  raymond run workflows/classify --input \"I like it\" --model haiku
  raymond run workflows/dispatch --budget 2 --max-procs 4
  raymond run dispatch-20260115-143022-1a2b         go on with a run
  raymond run workflows/tour -- --effort low        what follows -- goes to Claude Code";

/// Options of `run`, `start` and `resume`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// A prompt file, a folder with START.md, or the id of a run to go on with
    pub target: String,

    /// Where the runs are.
    #[command(flatten)]
    pub dir: Dir,

    /// What is fixed when a run starts.
    #[command(flatten)]
    pub birth: Birth,

    /// What can be changed when it goes on.
    #[command(flatten)]
    pub options: Options,
}

/// Options of `resume`.
#[derive(Debug, Clone, Args)]
pub struct ResumeArgs {
    /// The run's id
    #[arg(value_name = "RUN")]
    pub run: String,

    /// Where the runs are.
    #[command(flatten)]
    pub dir: Dir,

    /// What can be changed when it goes on.
    #[command(flatten)]
    pub options: Options,
}

/// What is fixed when a run starts.
#[derive(Debug, Clone, Default, Args)]
pub struct Birth {
    /// Name the run instead of letting raymond choose an id
    #[arg(long, value_parser = RunId::parse)]
    pub id: Option<RunId>,

    /// Text for {{input}} in the first state
    #[arg(long, value_name = "TEXT")]
    pub input: Option<String>,

    /// Text for {{KEY}} in every state; may be given several times
    #[arg(long = "var", value_name = "KEY=VALUE", value_parser = variable)]
    pub variables: Vec<(String, String)>,

    /// Who answers the prompts [default: claude]
    #[arg(long, value_enum)]
    pub agent: Option<Answerer>,

    /// The directory the agents work in [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
}

/// What can be changed when a run goes on.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Model of the states that name none: opus, sonnet or haiku
    #[arg(long, value_parser = model)]
    pub model: Option<Model>,

    /// What the run may spend in US dollars, in all; it pauses then and can go on with more
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub budget: Option<Usd>,

    /// How many Claude Code processes may run at the same time [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub max_procs: Option<u16>,

    /// How long a turn may take, such as 90s or 45m; a bare number is seconds [default: 30m]
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub timeout: Option<u64>,

    /// How often an agent is restarted within 10 minutes after a crash [default: 3]
    #[arg(long, value_name = "N")]
    pub max_restarts: Option<u32>,

    /// The wait before a restart, from the first to the longest [default: 1s..5m]
    #[arg(long, value_name = "MIN..MAX", value_parser = backoff)]
    pub backoff: Option<(u64, u64)>,

    /// How long running turns may go on after the first interrupt [default: 20s]
    #[arg(long, value_name = "TIME", value_parser = millis)]
    pub shutdown: Option<u64>,

    /// The program that is Claude Code [default: claude, on the PATH]
    #[arg(long, env = "RAYMOND_CLAUDE", value_name = "PATH", hide_env_values = true)]
    pub claude: Option<String>,

    /// What Claude Code may do without asking, one of its permission modes [default: acceptEdits]
    #[arg(long, value_name = "MODE", conflicts_with = "dangerously_skip_permissions")]
    pub permission_mode: Option<String>,

    /// Let Claude Code do everything without asking; only for places where nothing can be harmed
    #[arg(long)]
    pub dangerously_skip_permissions: bool,

    /// Keep every output of Claude Code and a log of the transitions under DIR/debug
    #[arg(long)]
    pub debug: bool,

    /// Print each record as a line of JSON
    #[arg(long)]
    pub json: bool,

    /// Further arguments for Claude Code, kept with the run: no secrets here
    #[arg(last = true, value_name = "CLAUDE ARGS")]
    pub claude_args: Vec<String>,
}

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Answerer {
    /// Claude Code
    Claude,
    /// The workflow's replies.yaml; no model is called
    Scripted,
}

/// Where the runs are.
#[derive(Debug, Clone, Args)]
pub struct Dir {
    /// The directory of all runs
    #[arg(long, env = "RAYMOND_DIR", default_value = ".raymond", hide_env_values = true)]
    pub dir: PathBuf,
}

/// A command about one run.
#[derive(Debug, Clone, Args)]
pub struct OneRun {
    /// The run's id
    #[arg(value_name = "RUN", value_parser = RunId::parse)]
    pub run: RunId,
    /// Where the runs are.
    #[command(flatten)]
    pub dir: Dir,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A command about all runs.
#[derive(Debug, Clone, Args)]
pub struct AllRuns {
    /// Where the runs are.
    #[command(flatten)]
    pub dir: Dir,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `log`.
#[derive(Debug, Clone, Args)]
pub struct LogArgs {
    /// Which run.
    #[command(flatten)]
    pub one: OneRun,
    /// Stay, and show what happens until the run ends or holds still
    #[arg(long, short)]
    pub follow: bool,
}

/// Options of `stop`.
#[derive(Debug, Clone, Args)]
pub struct StopArgs {
    /// Which run.
    #[command(flatten)]
    pub one: OneRun,
    /// Wait until it holds still
    #[arg(long)]
    pub wait: bool,
}

/// Options of `recover`.
#[derive(Debug, Clone, Args)]
pub struct RecoverArgs {
    /// Which runs.
    #[command(flatten)]
    pub all_runs: AllRuns,
    /// Let all of them go on, each in a process of its own, and wait for them
    #[arg(long)]
    pub all: bool,
}

/// Puts `run` in front of a command line that begins with a target or an option of `run`.
#[must_use]
pub fn with_default_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    use clap::CommandFactory;
    let command = Cli::command();
    let first = arguments.get(1).and_then(|first| first.to_str()).unwrap_or("--help").to_owned();
    let known = command.get_subcommands().any(|known| known.get_name() == first)
        || ["help", "-h", "--help", "-V", "--version"].contains(&first.as_str());
    if !known {
        arguments.insert(1, "run".into());
    }
    arguments
}

fn model(text: &str) -> Result<Model, String> {
    Model::from_name(text).ok_or_else(|| {
        format!(
            "use {}; a full model name can be passed on as it is: -- --model NAME",
            Model::ALL.map(Model::name).join(", ")
        )
    })
}

fn dollars(text: &str) -> Result<Usd, String> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount >= 0.0 => Ok(Usd::from_dollars(amount)),
        _ => Err("write an amount in US dollars, such as 2 or 0.50".to_owned()),
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, _)) if RESERVED.contains(&key) => {
            Err(format!("{{{{{key}}}}} is filled by raymond itself; choose another name"))
        }
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

fn some_time(text: &str) -> Result<u64, String> {
    match millis(text)? {
        0 => Err("no turn could end in no time; write for example 90s or 45m".to_owned()),
        time => Ok(time),
    }
}

fn backoff(text: &str) -> Result<(u64, u64), String> {
    let (min, max) = text.split_once("..").ok_or("write MIN..MAX, such as 1s..5m")?;
    let (min, max) = (millis(min)?, millis(max)?);
    if min <= max { Ok((min, max)) } else { Err("the first time is the shorter one".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn a_path_alone_means_run() {
        let shown = |line: &str| {
            let arguments = line.split(' ').map(OsString::from).collect();
            with_default_command(arguments).join(&OsString::from(" ")).into_string().expect("text")
        };
        assert_eq!(
            shown("raymond w/START.md --model sonnet"),
            "raymond run w/START.md --model sonnet"
        );
        assert_eq!(shown("raymond --model opus w"), "raymond run --model opus w");
        assert_eq!(shown("raymond status x"), "raymond status x");
        assert_eq!(shown("raymond --help"), "raymond --help");
        assert_eq!(shown("raymond"), "raymond");
    }

    #[test]
    fn values_are_checked() {
        assert_eq!(dollars("$0.50"), Ok(Usd::from_dollars(0.5)));
        assert!(dollars("-1").is_err() && dollars("nan").is_err() && dollars("x").is_err());
        assert_eq!(variable("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert!(variable("state=x").is_err() && variable("=x").is_err() && variable("x").is_err());
        assert_eq!(backoff("1ms..5s"), Ok((1, 5000)));
        assert!(backoff("5s..1s").is_err() && backoff("5s").is_err());
    }
}
