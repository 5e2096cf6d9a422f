//! The options of a run that can be given at its start and at each resume, and their values.

use std::ffi::OsString;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use strum::VariantArray as _;

use crate::cli::args::runs::QuestionArgs;
use crate::cli::logging::{LoggingArgs, name_of};
use crate::cli::on_event::OnEventCommand;
use crate::domain::admission::TurnOrder;
use crate::domain::allowed_address::AllowedAddress;
use crate::domain::model::ModelName;
use crate::domain::money::Usd;
use crate::domain::settings::PlugIn;
use crate::domain::settings::{MaxProcs, OnBudget, OnLimit};
use crate::domain::supervision::{OnExhausted, RestartPolicy};
use crate::domain::time::millis;
use crate::domain::turn_options::{ApprovalPolicy, PermissionMode};
use crate::language::manifest;
use crate::language::manifest::{ON_BUDGET, ON_LIMIT, dollars, max_procs};
use crate::language::plugins::{command, restarts, some_time};
use crate::language::prompt::forking::count as how_many_agents;
use crate::language::turn_options::{model, tool_rule};
use crate::plugin::console::Verbosity;
use crate::plugin::telemetry::export::url as collector;
use crate::runtime::PreparedRun;

const OTLP: &str = "Export a trace and metrics to the OpenTelemetry collector at URL, such as http://localhost:4318; \
    the standard OTEL_ variables enable it as well. Not stored with the run: give it each time";

/// Options that each resume of a run may change.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate switch")]
pub struct RunOptions {
    /// Model of states that name none: a name or alias that Claude Code accepts, such as opus,
    /// sonnet or haiku
    #[arg(long, value_parser = model)]
    pub model: Option<ModelName>,

    /// Budget of the whole run in US dollars; `budget` in a prompt's frontmatter gives a share of it
    /// to the agents that begin there and their forks
    #[arg(long, value_name = "USD", value_parser = budget, allow_negative_numbers = true)]
    pub budget: Option<Usd>,

    /// What to do when the budget is used up [default: pause]
    #[arg(long, value_name = "WHAT")]
    pub on_budget: Option<NamedValue<OnBudget>>,
    /// What to do when the account's usage limit is reached [default: wait]
    #[arg(long, value_name = "WHAT")]
    pub on_limit: Option<NamedValue<OnLimit>>,

    /// The Claude Code program [default: claude, on the PATH]
    #[arg(long, env = "RAYMOND_CLAUDE", value_name = "PATH", hide_env_values = true)]
    pub claude: Option<String>,

    /// Permission mode of Claude Code [default: acceptEdits]
    #[arg(long, value_name = "MODE", value_parser = mode(), hide_possible_values = true, conflicts_with = "dangerously_skip_permissions")]
    pub permission_mode: Option<String>,

    /// What to do when a tool call needs approval and the state does not say [default: refuse]
    #[arg(long, value_name = "WHAT")]
    pub permissions: Option<NamedValue<ApprovalPolicy>>,

    /// How long a process waits for a person to approve a tool call. After that it exits, and the turn continues once
    /// the call is answered [default: 2m]
    #[arg(long, value_name = "TIME", value_parser = millis)]
    pub approval_hold: Option<u64>,

    /// The permissions of the workflow's states beyond that.
    #[command(flatten)]
    pub consent: ConsentArgs,

    /// Read prompts again at each turn, while you write a workflow. Graphs, programs and keys that widen
    /// permissions stay as they were when the run started; stored with the run
    #[arg(long = "reread-prompts", alias = "live")]
    pub live: bool,

    /// Exit 1 at the end if any tool was refused in the run, or a join kept a failure, even before a resume;
    /// stored with the run
    #[arg(long)]
    pub strict: bool,

    /// Write all output of Claude Code and a log of the transitions to DIR/debug
    #[arg(long)]
    pub debug: bool,

    /// Print each record as a line of JSON, followed by the open questions, if any
    #[arg(long)]
    pub json: bool,

    /// Run this command when the run needs a person or ends. It is split into words as in a shell, but
    /// runs without a shell. Not stored with the run, and not read from raymond.yaml: give it each time
    #[arg(long, value_name = "CMD")]
    pub on_event: Option<OnEventCommand>,

    /// The collector of a trace and metrics.
    #[arg(long, value_name = "URL", value_parser = collector, help = OTLP)]
    pub otlp: Option<String>,

    /// Additional arguments for Claude Code; stored with the run, so pass no secrets
    #[arg(last = true, value_name = "CLAUDE ARGS")]
    pub claude_args: Vec<String>,

    /// The programs that run as plug-ins.
    #[command(flatten)]
    pub plugins: PluginArgs,

    /// Answers ahead of time, and the other options about questions and graphs.
    #[command(flatten)]
    pub answers: QuestionArgs,

    /// The options for processes.
    #[command(flatten)]
    pub processes: ProcessArgs,

    /// The options for supervision.
    #[command(flatten)]
    pub supervision: SupervisionArgs,

    /// The amount that is printed.
    #[command(flatten)]
    pub verbosity: VerbosityArgs,

    /// The logging options.
    #[command(flatten)]
    pub logging: LoggingArgs,
}

impl RunOptions {
    /// Returns the options that are not kept with the run, for another raymond that resumes it.
    pub fn not_kept(&self) -> Vec<OsString> {
        let mut arguments = self.logging.arguments();
        let flags = [
            ("--json", self.json),
            ("--migrate", self.answers.migrate),
            ("--verbose", self.verbosity.verbose),
            ("--quiet", self.verbosity.quiet),
        ];
        arguments
            .extend(flags.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag.into()));
        if let Some(on_wait) = &self.answers.on_wait {
            arguments.extend(["--on-wait".into(), name_of(on_wait).into()]);
        }
        if let Some(command) = &self.on_event {
            arguments.extend(["--on-event".into(), command.text().into()]);
        }
        if let Some(url) = &self.otlp {
            arguments.extend(["--otlp".into(), url.into()]);
        }
        arguments
    }
}

/// The amount that is printed about a run.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct VerbosityArgs {
    /// Print each step, and the result of every agent at the end
    #[arg(long, short)]
    pub verbose: bool,

    /// Print only the result of the first agent on stdout, unchanged; failures and how the run ends go to stderr
    #[arg(long, short, conflicts_with = "verbose")]
    pub quiet: bool,
}

impl VerbosityArgs {
    /// Returns the amount.
    pub fn verbosity(self) -> Verbosity {
        match (self.verbose, self.quiet) {
            (true, _) => Verbosity::Verbose,
            (false, true) => Verbosity::Quiet,
            (false, false) => Verbosity::Normal,
        }
    }
}

/// The permissions of a workflow's states beyond the permission mode.
#[derive(Debug, Clone, Default, Args)]
pub struct ConsentArgs {
    /// Allow a tool without asking, in every state that may use it: a rule such as `WebFetch` or
    /// `Bash(cargo test:*)`, which also covers longer commands; repeatable
    #[arg(long = "allow-tool", aliases = ["allow-tools", "allowed-tools", "allowedTools"], value_name = "RULE", value_parser = tool_rule)]
    pub allow_tools: Vec<String>,

    /// Allow graphs to fetch from this non-public address, network or host, such as `127.0.0.1`,
    /// `10.0.0.0/8`, `[::1]:8080` or `localhost:3000`; stored with the run; repeatable
    #[arg(long, value_name = "ADDR", value_parser = str::parse::<AllowedAddress>)]
    pub allow_address: Vec<AllowedAddress>,

    /// Trust the workflow's folder as it is now, or the run as its directory describes it: commands,
    /// plug-ins, rules, settings, servers, environment. Remembered: see `raymond trust`.
    /// `RAYMOND_TRUST=true` also trusts the folder
    #[arg(long, visible_alias = "trust-workflow")]
    pub trust: bool,

    /// Trust the workflow's folder, as `RAYMOND_TRUST` says; a run that is not as it was left needs --trust
    #[arg(long, hide = true, env = "RAYMOND_TRUST", value_parser = parse_switch)]
    pub trust_by_environment: bool,

    /// Let Claude Code do everything without asking; only for disposable machines
    #[arg(long)]
    pub dangerously_skip_permissions: bool,
}

/// Returns the reader of a permission mode, which knows all of them.
pub(super) fn mode() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(PermissionMode::NAMES.map(|(name, _)| name))
}

/// Reads the switch of an environment variable. Any other word is an error: this one gives permissions.
pub(super) fn parse_switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "y" | "on" => Ok(true),
        "" | "false" | "0" | "no" | "n" | "off" => Ok(false),
        _ => Err("write true or false in RAYMOND_TRUST".to_owned()),
    }
}

/// The number and the lifetime of processes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Processes")]
pub struct ProcessArgs {
    /// Maximum number of Claude Code processes at a time: a number, or auto by cores and free memory
    /// [default: auto]
    #[arg(long, value_name = "N", value_parser = max_procs, allow_negative_numbers = true)]
    pub max_procs: Option<MaxProcs>,

    /// Maximum number of live agents; a fork that would exceed it is refused [default: 10000]
    #[arg(long, value_name = "N", value_parser = how_many_agents)]
    pub max_agents: Option<u32>,

    /// Head start for the first of several agents that one reply forks, to fill the model's prompt cache
    /// for the others; 0s for none [default: 3s]
    #[arg(long, value_name = "TIME", value_parser = millis)]
    pub stagger: Option<u64>,

    /// Order in which waiting agents get a process [default: depth]
    #[arg(long, value_name = "ORDER")]
    pub order: Option<NamedValue<TurnOrder>>,

    /// Waiting time after which an agent gets the next process before all others, so that looping agents do not
    /// starve it [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = millis)]
    pub patience: Option<u64>,

    /// Start a process for each turn instead of reusing one for the turns of a session
    #[arg(long)]
    pub no_warm: bool,

    /// How long to keep an idle process for its next turn [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = millis, conflicts_with = "no_warm")]
    pub warm_for: Option<u64>,

    /// Number of processes to start ahead of turns with a fresh session (fork, reset, function)
    #[arg(long, value_name = "N", conflicts_with = "no_warm", allow_negative_numbers = true)]
    pub prestart: Option<u16>,
}

/// The supervision of agents, unless the state that an agent starts in says otherwise.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Supervision")]
pub struct SupervisionArgs {
    /// When an agent is restarted [default: transient]
    #[arg(long, value_name = "POLICY")]
    pub restart: Option<NamedValue<RestartPolicy>>,

    /// Maximum number of restarts, and the period they are counted in: 3, or 3/10m [default: 3/10m]
    #[arg(long, value_name = "N[/TIME]", value_parser = restarts, allow_negative_numbers = true)]
    pub max_restarts: Option<(u32, Option<u64>)>,

    /// Delay before a restart: the first and the longest [default: 1s..5m]
    #[arg(long, value_name = "MIN..MAX", value_parser = backoff)]
    pub backoff: Option<(u64, u64)>,

    /// Time limit of a turn, such as 90s or 45m; a bare number is seconds [default: 30m]
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub timeout: Option<u64>,

    /// Time limit of a turn without progress; running tools and announced waits for the API are progress
    /// [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub idle_timeout: Option<u64>,

    /// Grace period of running turns after the first interrupt [default: 20s]
    #[arg(long, value_name = "TIME", value_parser = millis)]
    pub shutdown: Option<u64>,

    /// What to do when the restarts are used up [default: fail-agent]
    #[arg(long, value_name = "WHAT")]
    pub on_exhausted: Option<NamedValue<OnExhausted>>,
}

/// Reads a budget: an amount with which at least one turn can start.
pub(super) fn budget(text: &str) -> Result<Usd, String> {
    if text.starts_with('+') {
        return Err("write the total, such as 0.20, not an increase".to_owned());
    }
    match dollars(text)? {
        Usd::ZERO => Err("a run cannot do anything with a budget of 0; give a larger amount, or try the workflow without a model: --agent scripted".to_owned()),
        amount => Ok(amount),
    }
}

fn backoff(text: &str) -> Result<(u64, u64), String> {
    let (min, max) = text.split_once("..").ok_or("write MIN..MAX, such as 1s..5m")?;
    let (min, max) = (millis(min)?, millis(max)?);
    if min <= max {
        Ok((min, max))
    } else {
        Err("the first time must not be longer than the second".to_owned())
    }
}

// Values of options that are given by their names, with the help for each.

/// A value that is given by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedValue<T>(pub T);

/// Makes a type's values known by the names of a list, each with its help.
macro_rules! named_values {
    ($($kind:ident in $names:expr => { $($value:ident: $help:literal,)+ })+) => {
        $(impl ValueEnum for NamedValue<$kind> {
            fn value_variants<'a>() -> &'a [Self] {
                &[$(Self($kind::$value)),+]
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                let help = match self.0 {
                    $($kind::$value => $help,)+
                };
                let (name, _) = $names.into_iter().find(|(_, known)| *known == self.0)?;
                Some(PossibleValue::new(name).help(help))
            }
        })+
    };
}

named_values! {
    RestartPolicy in RestartPolicy::ALL => {
        Permanent: "after results and failures; it starts over in its first state",
        Transient: "after failures only",
        Temporary: "never",
    }
    OnExhausted in OnExhausted::ALL => {
        FailAgent: "the agent fails, the others continue",
        FailRun: "the whole run fails",
        Wait: "the agent waits until a person resumes the run",
    }
    ApprovalPolicy in ApprovalPolicy::VARIANTS.iter().map(|&policy| (<&'static str>::from(policy), policy)) => {
        Refuse: "it is refused",
        Ask: "a person is asked; see `raymond answer`",
    }
    TurnOrder in TurnOrder::ALL => {
        Depth: "run agents that have already started first (depth-first)",
        Breadth: "first come, first served",
    }
    OnLimit in ON_LIMIT => {
        Wait: "the run waits until the limit resets, and continues",
        Pause: "the run pauses (exit 75)",
        Fail: "the agent that reached it fails",
    }
    OnBudget in ON_BUDGET => {
        Pause: "the run pauses (exit 75), and can be resumed with more",
        End: "each agent fails before its next turn",
    }
}

// Options for programs as plug-ins, and the notices about those that a workflow asks for.

/// The programs that run as plug-ins.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Plug-ins")]
pub struct PluginArgs {
    /// A plug-in: a program that gets all events and may decide on some; stored with the run, so pass no
    /// secrets. Repeatable; on resume it replaces those given before
    #[arg(long, value_name = "CMD", value_parser = command)]
    pub plugin: Vec<PlugIn>,

    /// Start no plug-ins, neither those of raymond.yaml nor those the run had before
    #[arg(long)]
    pub no_plugins: bool,
}

/// Returns a line for each program that is started because the workflow asks for it.
pub(super) fn announced(prepared: &PreparedRun) -> Vec<String> {
    let settings = prepared.start.settings(&prepared.run);
    let by_workflow = settings.plugins.iter().filter(|plugin| plugin.by_workflow);
    by_workflow
        .map(|plugin| {
            let (name, command) = (&plugin.name, plugin.command.join(" "));
            format!("plug-in {name}: {command} (asked for by {})", manifest::FILE)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_dollars_or_backoff_is_refused() {
        assert_eq!(budget("$0.50"), Ok(Usd::from_dollars(0.5)));
        assert!(budget("+0.1").is_err_and(|why| why.contains("the total")));
        assert!(["-1", "nan", "x", "0", "$0.00"].iter().all(|text| budget(text).is_err()));
        assert_eq!(backoff("1ms..5s"), Ok((1, 5000)));
        assert!(backoff("5s..1s").is_err() && backoff("5s").is_err());
    }
}

#[cfg(test)]
mod named_value_tests {
    use super::*;

    #[test]
    fn each_named_value_has_help() {
        fn helps<T: ValueEnum>() -> bool {
            let values = T::value_variants().iter().map(ValueEnum::to_possible_value);
            values.into_iter().all(|value| value.is_some_and(|value| value.get_help().is_some()))
        }
        assert!(helps::<NamedValue<RestartPolicy>>() && helps::<NamedValue<OnExhausted>>());
        assert!(helps::<NamedValue<OnLimit>>());
    }
}
