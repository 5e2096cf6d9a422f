//! The help of the commands whose arguments need little of it: examples.

pub(super) const RESUME_HELP: &str = "Examples:
  raymond resume tour-20260115-143022-1a2b
  raymond resume tour                    the only run whose id begins with tour
  raymond resume --last --budget 5       the most recently started run, with a larger budget
  raymond resume RUN --migrate           with the workflow's files as they are now";

pub(super) const STATUS_HELP: &str = "Examples:
  raymond status RUN
  raymond status --last                  the most recently started run
  raymond status RUN --json | jq -r .status";

pub(super) const STOP_HELP: &str = "Examples:
  raymond stop RUN
  raymond stop --last --wait             return when the run has stopped
  raymond stop RUN main.2                stop only this agent

Running turns may finish within --shutdown of the run. `raymond resume RUN` resumes it.

--json prints { run, asked, status }; with AGENT { run, agent, command, is_live }.";

pub(super) const PENDING_HELP: &str = "Examples:
  raymond pending                        questions, signals that programs wait for, parked agents
  raymond pending --json | jq -r '.[].command'

--json prints an array of { run, agent, kind, since, until, command } with the parts of each kind.";

pub(super) const RECOVER_HELP: &str = "Examples:
  raymond recover                        the runs that can be resumed
  raymond recover --all                  resume all of them, and wait for them
  raymond recover --all --dir /srv/work/.raymond

--json prints an array as `raymond list --json` does.";

pub(super) const SCHEMA_HELP: &str = "Examples:
  raymond schema                         the whole protocol of plug-ins
  raymond schema record                  a line of `raymond log --json`
  raymond schema graph > graph.schema.json";

pub(super) const COMPLETIONS_HELP: &str = "Examples:
  source <(raymond completions bash)     in ~/.bashrc; zsh the same in ~/.zshrc, after compinit
  raymond completions fish > ~/.config/fish/completions/raymond.fish

The script asks raymond, so it also completes runs, the agents of the run on the command line, and defined programs.";

pub(super) const DEFINE_HELP: &str = "Examples:
  raymond workflow define workflows/standing-reviewer
  raymond workflow define review.lisp    then: raymond workflow start review

--json prints { name, file, program }.";

pub(super) const WORKFLOW_LIST_HELP: &str = "Examples:
  raymond workflow list
  raymond workflow list --json | jq -r '.definitions[].name'

`raymond` lists the defined programs. --json prints { definitions, runs }.";

#[cfg(test)]
mod tests {
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
