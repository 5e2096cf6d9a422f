//! The arguments that name runs, the options fixed at a start, and the arguments of answers and of orders to agents.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use crate::cli::agent_selector::AgentSelector;
pub use crate::cli::candidates::DirArgs;
use crate::cli::candidates::{complete_agents, complete_runs};
use crate::cli::logging::LoggingArgs;
use crate::cli::on_event::OnEventCommand;
use crate::domain::id::{AgentId, RunId};
use crate::language::prompt::step::RESERVED;

const LIST_HELP: &str = "Examples:
  raymond list                           the newest runs, newest first
  raymond list --status running,paused   only runs that can still continue
  raymond list --limit 5
  raymond list --json | jq -r '.[] | select(.status == \"failed\") | .run'

--json prints an array of { run, status, started_at, pause, live, finished, total_cost_usd, scope_dir }, in the same
order. An unreadable run has only run, status, started_at and error.";

/// The run that a command is about.
#[derive(Debug, Clone, Default, Args)]
pub struct NamedRunArgs {
    /// The run's id, or the beginning of one [default: asks on a terminal]
    #[arg(value_name = "RUN", value_parser = RunId::parse, add = ArgValueCompleter::new(complete_runs))]
    pub run: Option<RunId>,
    /// Use the most recently started run
    #[arg(long, conflicts_with = "run")]
    pub last: bool,
}

/// A command about one run.
#[derive(Debug, Clone, Args)]
pub struct SingleRunArgs {
    /// The run.
    #[command(flatten)]
    pub named: NamedRunArgs,
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A command about all runs.
#[derive(Debug, Clone, Args)]
pub struct AllRunsArgs {
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The agent that a command is about.
#[derive(Debug, Clone, Default, Args)]
pub struct AgentArg {
    /// Only this agent, such as main.2
    #[arg(value_name = "AGENT", value_parser = AgentId::parse, add = ArgValueCompleter::new(complete_agents))]
    agent: Option<AgentId>,
    /// The same, as an option
    #[arg(long = "agent", value_name = "AGENT", hide = true, conflicts_with = "agent", value_parser = AgentId::parse, add = ArgValueCompleter::new(complete_agents))]
    agent_option: Option<AgentId>,
}

impl AgentArg {
    /// Returns the agent, if one is named.
    pub fn get(&self) -> Option<&AgentId> {
        self.agent.as_ref().or(self.agent_option.as_ref())
    }
}

const STOP_HELP: &str = "Examples:
  raymond stop RUN
  raymond stop --last --wait             return when the run has stopped
  raymond stop RUN main.2                stop only this agent

Running turns may finish within --shutdown of the run. `raymond resume RUN` resumes it.

--json prints { run, asked, status }; with AGENT { run, agent, command, is_live }.";

/// Options of `stop`.
#[derive(Debug, Clone, Args)]
#[command(after_help = STOP_HELP)]
pub struct StopArgs {
    /// The run.
    #[command(flatten)]
    pub target: SingleRunArgs,
    /// The agent to stop; it ends as failed, and agents that wait for it see that.
    #[command(flatten)]
    pub agent: AgentArg,
    /// Wait until the run has stopped
    #[arg(long, conflicts_with_all = ["agent", "agent_option"])]
    pub wait: bool,
}

const RECOVER_HELP: &str = "Examples:
  raymond recover                        the runs that can be resumed
  raymond recover --all                  resume all of them, and wait for them
  raymond recover --all --dir /srv/work/.raymond

--json prints an array as `raymond list --json` does.";

/// Options of `recover`.
#[derive(Debug, Clone, Args)]
#[command(after_help = RECOVER_HELP)]
pub struct RecoverArgs {
    /// The directory of the runs, and the output format.
    #[command(flatten)]
    pub all_runs: AllRunsArgs,
    /// Resume all of them, each in a separate process, and wait for them
    #[arg(long)]
    pub all: bool,

    /// Run this command when one of them needs a person or ends; see `raymond help run --all`
    #[arg(long, value_name = "CMD", requires = "all")]
    pub on_event: Option<OnEventCommand>,

    /// The logging options.
    #[command(flatten)]
    pub logging: LoggingArgs,
}

/// Options of `list`.
#[derive(Debug, Clone, Args)]
#[command(after_help = LIST_HELP)]
pub struct ListArgs {
    /// The directory of the runs, and the output format.
    #[command(flatten)]
    pub all_runs: AllRunsArgs,
    /// Only runs with this status; repeatable
    #[arg(long, value_enum, value_delimiter = ',')]
    pub status: Vec<RunStatusArg>,
    /// Maximum number of runs to show [default: all; on a terminal 50]
    #[arg(long, value_name = "N", value_parser = one_or_more)]
    pub limit: Option<usize>,
}

/// Reads a number that is not 0.
fn one_or_more(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| "write a number of 1 or more".to_owned())
}

/// The status of a run, as `list` and `status` print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RunStatusArg {
    /// Live: a raymond process has locked it
    Running,
    /// Not ended, and no raymond process has locked it
    Interrupted,
    /// Stopped for a reason
    Paused,
    /// All agents have finished
    Completed,
    /// All agents have ended, and at least one failed
    Failed,
    /// The run's directory cannot be read
    Unreadable,
}

/// Options that are fixed when a run starts.
#[derive(Debug, Clone, Default, Args)]
pub struct NewRunArgs {
    /// Name the run instead of letting raymond choose an id; programs read it as @label
    #[arg(long, alias = "label", value_parser = RunId::parse)]
    pub id: Option<RunId>,

    /// Text for {{input}} in the first state; - reads it from stdin
    #[arg(long, value_name = "TEXT", value_parser = input)]
    pub input: Option<String>,

    /// Text for {{KEY}} in every state; repeatable
    #[arg(long = "var", value_name = "KEY=VALUE", value_parser = variable)]
    pub variables: Vec<(String, String)>,

    /// The git branch that (artifact …) compares against; programs read it as @branch
    #[arg(long = "base-branch", alias = "branch", value_name = "BRANCH")]
    pub branch: Option<String>,

    /// Text for @context/KEY in programs; repeatable
    #[arg(long = "context", value_name = "KEY=VALUE", value_parser = context)]
    pub context: Vec<(String, String)>,

    /// The source of the answers: claude, scripted for the workflow's replies.yaml, or replay:DIR for the
    /// cassette that `raymond record` made; only claude calls a model [default: claude]
    #[arg(long, value_name = "WHO", value_parser = answerer, add = ArgValueCompleter::new(complete_answerers))]
    pub agent: Option<AnswererArg>,

    /// With --agent replay:DIR, fail an agent whose prompt differs from the recorded prompt
    #[arg(long)]
    pub strict_replay: bool,

    /// With --agent replay:DIR, answer only the turns up to this record of the recorded run from the cassette; `raymond
    /// log RUN --json` shows the numbers of records
    #[arg(long, value_name = "SEQ", requires = "then", value_parser = clap::value_parser!(u64).range(1..))]
    pub replay_until: Option<u64>,

    /// The source of the answers after --replay-until: claude, or scripted for the workflow's replies.yaml
    #[arg(long, value_name = "WHO", requires = "replay_until")]
    pub then: Option<LiveAnswererArg>,

    /// The directory the agents work in [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,

    /// With an engine: a directory that all hosts see under the same path, so that forks without a worktree can run on
    /// any host
    #[arg(long, value_name = "DIR")]
    pub shared_dir: Option<PathBuf>,

    /// With an engine: the git repository through which hosts without a shared disk exchange the work of agents, as an
    /// address or the name of a remote. Branches raymond/RUN/… are pushed there
    #[arg(long, value_name = "REMOTE", conflicts_with = "shared_dir")]
    pub git_exchange: Option<String>,

    /// Start the workflow even if `raymond check` finds errors in it
    #[arg(long)]
    pub no_check: bool,
}

fn input(text: &str) -> Result<String, String> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    std::io::read_to_string(std::io::stdin()).map_err(|error| format!("cannot read stdin: {error}"))
}

pub(super) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, _)) if RESERVED.contains(&key) => {
            Err(format!("{{{{{key}}}}} is set by raymond; choose another name"))
        }
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

fn context(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

// The source of the agents' answers, as it is given on the command line.

/// The word before the directory of a cassette.
const REPLAY: &str = "replay:";

/// The source of the agents' answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswererArg {
    /// Claude Code.
    Claude,
    /// The workflow's `replies.yaml`; no model is called.
    Scripted,
    /// The cassette in this directory; no model is called.
    Replay(PathBuf),
}

/// The source of the answers after the part that a cassette has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LiveAnswererArg {
    /// Claude Code
    #[value(alias = "live")]
    Claude,
    /// The workflow's `replies.yaml`; no model is called
    Scripted,
}

/// Reads the source of the answers.
pub(super) fn answerer(text: &str) -> Result<AnswererArg, String> {
    match text {
        "claude" => Ok(AnswererArg::Claude),
        "scripted" => Ok(AnswererArg::Scripted),
        _ => match text.strip_prefix(REPLAY) {
            Some("") => Err("name the directory of a cassette: replay:DIR".to_owned()),
            Some(dir) => Ok(AnswererArg::Replay(dir.into())),
            None => Err("write claude, scripted or replay:DIR".to_owned()),
        },
    }
}

/// Returns what a beginning can be completed to.
pub(super) fn complete_answerers(typed: &OsStr) -> Vec<CompletionCandidate> {
    let known = [
        ("claude", "Claude Code"),
        ("scripted", "The workflow's replies.yaml; no model is called"),
        (REPLAY, "The cassette in a directory; no model is called"),
    ];
    let typed = typed.to_string_lossy();
    let fitting = known.into_iter().filter(|(name, _)| name.starts_with(&*typed));
    fitting.map(|(name, help)| CompletionCandidate::new(name).help(Some(help.into()))).collect()
}

// The arguments that have to do with questions to people, and their help.

const ANSWER_HELP: &str = "Examples:
  raymond answer RUN                     show the open questions and their options
  raymond answer RUN ask_type=git        answer with an option's id, label or number
  raymond answer RUN main.2/ask_type=git if several agents ask under the same name
  raymond answer RUN a3 allow            approve the tool call with the id a3
  raymond answer RUN a3 deny --reason 'use the staging database'
                                         refuse it, and tell the agent why
  raymond answer RUN a3 allow --rule 'Bash(cargo test:*)'
                                         approve it, and all calls that this rule covers in its state
  raymond answer RUN REVIEWED.md=- < notes.txt
                                         a text from stdin; an <ask> is named by its `next`

The first valid answer to a question wins. It is stored when this command returns, even if the run is not
live. Resume such a run with `raymond resume RUN`.

A tool call of a state with `permissions: ask` accepts allow, allow-always (similar calls in this state run without
asking), allow-always-in-run or deny. `raymond rules RUN` shows the rules from such answers.

--json prints { run, locked, answered, questions }: accepted answers with agent, node and id, and open questions
with agent, node, question, header, options (id, label, description), free, asked_at, until, and for a tool call
approval (call, tool, input, edits, rules).";

pub(super) const RULES_HELP: &str = "Examples:
  raymond rules RUN
  raymond rules RUN --json | jq -r '.rules[].rule'

Answering a tool call that needs approval with allow-always or allow-always-in-run creates a rule. raymond keeps it in
the run, never in a settings file, and passes it to Claude Code for each turn of its state or of the run.

--json prints { run, rules }: each with rule, tool, content, state (null for the whole run), approval, by.";

/// Answers ahead of time, and what else a run does about questions and graphs.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Questions and graphs")]
pub struct QuestionArgs {
    /// Answer a question ahead of time: the node of a graph, or the `next` of a prompt's `<ask>`, and the id,
    /// label or number of an option, or a text. Repeatable: each repetition of the question uses the next answer
    #[arg(long = "answer", value_name = "NODE=TEXT", value_parser = answer)]
    pub answer: Vec<(String, String)>,

    /// Read answers from a YAML file of `NODE: TEXT`, or `NODE: [TEXT, …]`
    #[arg(long, value_name = "FILE")]
    pub answers: Option<PathBuf>,

    /// What to do while everything waits for a person, a signal or a time [default: exit if there are questions and
    /// no terminal to ask on, else stay]
    #[arg(long, value_name = "HOW", value_enum)]
    pub on_wait: Option<OnWait>,

    /// Resume with the workflow's files as they are now, including edited graphs. Shows the differences. What the
    /// files ask for must be trusted again
    #[arg(long)]
    pub migrate: bool,
}

/// The behaviour of a run that waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnWait {
    /// Keep running
    Stay,
    /// End with exit 2; `raymond resume RUN` resumes the run
    Exit,
}

/// Options of `answer`.
#[derive(Debug, Clone, Args)]
#[command(after_help = ANSWER_HELP)]
pub struct AnswerArgs {
    /// The run's id, or the beginning of one [default: asks on a terminal]
    #[arg(value_name = "RUN", value_parser = run_or_answer)]
    pub first: Option<RunOrAnswer>,
    /// Use the most recently started run
    #[arg(long)]
    pub last: bool,
    /// Answers: NODE=TEXT or AGENT/NODE=TEXT; NODE=- reads the text from stdin. For a tool call that needs approval:
    /// its name and allow, allow-always, allow-always-in-run or deny
    #[arg(value_name = "NODE=TEXT", value_parser = answer_word)]
    pub answers: Vec<AnswerWord>,
    /// The reason for a denial; the agent sees it
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Allow with a wider rule than Claude Code suggests, such as `Bash(cargo test:*)`: from now on for its state, or
    /// with allow-always-in-run for the run; agents that run already share it
    #[arg(long, value_name = "RULE", conflicts_with = "reason")]
    pub rule: Option<String>,
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The first argument of `answer`: no id of a run contains `=`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunOrAnswer {
    /// A word without `=`: the id of a run, or with `--last` the name of a tool call if an odd number of words follows.
    Run(RunId),
    /// The first answer, if no run is named.
    Answer(String, String),
}

/// A word of `answer`: a whole answer, or one word of two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerWord {
    /// A name and its answer.
    Answer(String, String),
    /// A name, or the answer after it.
    Word(String),
}

/// The error for words that are not answers.
const NOT_PAIRED: &str = "write NODE=TEXT, where NODE is the name of a question (`raymond status RUN` shows it, such as SAVE.md), or the name of a tool call that needs approval and allow, allow-always, allow-always-in-run or deny";

impl AnswerArgs {
    /// Returns the run that is named, and all answers.
    ///
    /// # Errors
    /// A text that says so if a run is named in two ways.
    pub fn parts(&self) -> Result<(NamedRunArgs, Vec<(String, String)>), String> {
        let mut words = self.answers.clone();
        let run = match &self.first {
            // With --last the first word is the name of a tool call.
            Some(RunOrAnswer::Run(name)) if self.last && self.answers.len() % 2 == 1 => {
                words.insert(0, AnswerWord::Word(name.to_string()));
                None
            }
            Some(RunOrAnswer::Run(run)) => Some(run.clone()),
            Some(RunOrAnswer::Answer(node, text)) => {
                words.insert(0, AnswerWord::Answer(node.clone(), text.clone()));
                None
            }
            None => None,
        };
        if let Some(run) = run.as_ref().filter(|_| self.last) {
            return Err(format!("{run} and --last name two runs; leave one of them out"));
        }
        let answers = with_reason(pairs(words)?, self.reason.as_deref())?;
        let answers = with_rule(answers, self.rule.as_deref())?;
        Ok((NamedRunArgs { run, last: self.last }, answers))
    }
}

/// Returns the answers that words are, each with its name.
fn pairs(words: Vec<AnswerWord>) -> Result<Vec<(String, String)>, String> {
    let mut answers = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        answers.push(match (word, words.as_slice().first()) {
            (AnswerWord::Answer(name, text), _) => (name, text),
            (AnswerWord::Word(name), Some(AnswerWord::Word(_))) => match words.next() {
                Some(AnswerWord::Word(text)) => (name, text),
                Some(AnswerWord::Answer(..)) | None => return Err(NOT_PAIRED.to_owned()),
            },
            (AnswerWord::Word(word), _) => {
                let quoted = |(name, text): &(String, String)| {
                    format!("put a text with spaces in quotes: '{name}={text} {word}'")
                };
                return Err(answers.last().map_or_else(|| NOT_PAIRED.to_owned(), quoted));
            }
        });
    }
    Ok(answers)
}

/// Adds the reason of a denial.
fn with_reason(
    mut answers: Vec<(String, String)>,
    reason: Option<&str>,
) -> Result<Vec<(String, String)>, String> {
    let Some(reason) = reason else { return Ok(answers) };
    match answers.as_mut_slice() {
        [(_, verdict)] if verdict == "deny" => {
            *verdict = format!("deny: {reason}");
            Ok(answers)
        }
        _ => Err("--reason goes with a single deny".to_owned()),
    }
}

/// Adds the rule of an approval.
fn with_rule(
    mut answers: Vec<(String, String)>,
    rule: Option<&str>,
) -> Result<Vec<(String, String)>, String> {
    let Some(rule) = rule else { return Ok(answers) };
    match answers.as_mut_slice() {
        [(_, verdict)] if verdict.starts_with("allow") => {
            if verdict == "allow" {
                verdict.push_str("-always");
            }
            *verdict = format!("{verdict}: {rule}");
            Ok(answers)
        }
        _ => Err("--rule goes with a single allow, allow-always or allow-always-in-run".to_owned()),
    }
}

fn run_or_answer(text: &str) -> Result<RunOrAnswer, String> {
    match answer(text) {
        Ok((node, text)) => Ok(RunOrAnswer::Answer(node, text)),
        Err(_) => RunId::parse(text).map(RunOrAnswer::Run).map_err(|error| error.to_string()),
    }
}

fn answer_word(text: &str) -> Result<AnswerWord, String> {
    match answer(text) {
        Ok((node, text)) => Ok(AnswerWord::Answer(node, text)),
        Err(_) if text.contains('=') || text.trim().is_empty() => Err("write NODE=TEXT".to_owned()),
        Err(_) => Ok(AnswerWord::Word(text.to_owned())),
    }
}

fn answer(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((node, text)) if !node.trim().is_empty() => {
            Ok((node.trim().to_owned(), text.to_owned()))
        }
        _ => Err("write NODE=TEXT".to_owned()),
    }
}

// The arguments of the commands about one agent: `tell`, `hold`, `release`, `edit` and `attach`.

const TELL_HELP: &str = "Examples:
  raymond tell RUN main.2 \"Leave the tests alone.\"
  git diff | raymond tell RUN main.2 -   the message is read from stdin

A running turn gets the message with its next request to the model. Otherwise, raymond appends it to the agent's next
prompt. The message survives a stop of the run. The log shows when it was given and delivered.

--json prints { run, agent, command, is_live }.";

const HOLD_HELP: &str = "Examples:
  raymond hold RUN main.2                main.2 starts nothing new until it is released
  raymond hold RUN 'main.2.*'            main.2 and its descendants
  raymond release RUN main.2

A running turn ends as usual. A hold survives a stop and resume of the run.

--json prints { run, agent, command, is_live }.";

pub(super) const EDIT_HELP: &str = "Examples:
  raymond edit RUN main.2                opens the next prompt of main.2 in $VISUAL or $EDITOR
  EDITOR='code --wait' raymond edit RUN main.2

raymond waits for a running turn of the agent, and holds the agent until the editor exits. The agent then gets the saved
text instead of its prompt. An empty or unchanged text changes nothing.";

pub(super) const ATTACH_HELP: &str = "Examples:
  raymond attach RUN main.2              opens the session of main.2 in Claude Code

raymond waits for a running turn of the agent, and holds the agent until you exit. Claude Code runs in the agent's
directory, in a branch of its session, and asks before it uses a tool. The agent then continues with what was said. If
nothing was said, nothing changes.";

/// Options of `tell`.
#[derive(Debug, Clone, Args)]
#[command(after_help = TELL_HELP)]
pub struct TellArgs {
    /// The run's id, or the beginning of one
    #[arg(value_name = "RUN", value_parser = RunId::parse, add = ArgValueCompleter::new(complete_runs))]
    pub run: RunId,
    /// The agent's id, as in `main.2`
    #[arg(value_name = "AGENT", value_parser = AgentId::parse, add = ArgValueCompleter::new(complete_agents))]
    pub agent: AgentId,
    /// The message; `-` reads it from stdin
    #[arg(value_name = "TEXT")]
    pub text: String,
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `edit` and `attach`.
#[derive(Debug, Clone, Args)]
pub struct VisitArgs {
    /// The run's id, or the beginning of one
    #[arg(value_name = "RUN", value_parser = RunId::parse, add = ArgValueCompleter::new(complete_runs))]
    pub run: RunId,
    /// The agent's id, as in `main.2`
    #[arg(value_name = "AGENT", value_parser = AgentId::parse, add = ArgValueCompleter::new(complete_agents))]
    pub agent: AgentId,
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
}

/// Options of `hold` and `release`.
#[derive(Debug, Clone, Args)]
#[command(after_help = HOLD_HELP)]
pub struct HoldArgs {
    /// The run's id, or the beginning of one
    #[arg(value_name = "RUN", value_parser = RunId::parse, add = ArgValueCompleter::new(complete_runs))]
    pub run: RunId,
    /// The agent's id, as in `main.2`, or `main.2.*` for it and its descendants
    #[arg(value_name = "AGENT", value_parser = AgentSelector::parse, add = ArgValueCompleter::new(complete_agents))]
    pub agent: AgentSelector,
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod new_run_tests {
    use super::*;

    #[test]
    fn variable_without_valid_name_is_refused() {
        assert_eq!(variable("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert!(variable("state=x").is_err() && variable("=x").is_err() && variable("x").is_err());
    }
}

#[cfg(test)]
mod answerer_tests {
    use super::*;

    #[test]
    fn directory_follows_the_word_replay() {
        assert_eq!(answerer("scripted"), Ok(AnswererArg::Scripted));
        assert_eq!(answerer("replay:a:b"), Ok(AnswererArg::Replay("a:b".into())));
        assert!(answerer("replay:").is_err() && answerer("replay").is_err());
        assert_eq!(complete_answerers(OsStr::new("re")).len(), 1);
    }
}
